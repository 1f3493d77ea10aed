//go:build linux

package lab

// Run is where a sequence of running numbers is not the whole of first…last, each once and ascending.
type Run struct {
	First, Last int64 // -1 where there is none
	Missing     int64 // numbers between First and Last that are not there
	Disorder    int64 // numbers not above the highest before them
}

// Sequence examines running numbers.
func Sequence(numbers []int64) Run {
	r := Run{First: -1, Last: -1}
	for i, n := range numbers {
		switch {
		case i == 0:
			r.First, r.Last = n, n
		case n <= r.Last:
			r.Disorder++
		default:
			r.Missing += n - r.Last - 1
			r.Last = n
		}
	}
	return r
}
