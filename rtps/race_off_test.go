//go:build !race

package rtps

const raceDetector = false
