//go:build race

package columnar

// raceDetector makes long tests shorter.
const raceDetector = true
