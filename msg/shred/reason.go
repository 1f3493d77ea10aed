package shred

import "fmt"

// Reason is what keeps a payload from being the one that its values give.
type Reason uint8

// Reasons. Those up to Structure are of the form only: AppendLoose takes such a payload.
const (
	Canonical    Reason = iota // nothing
	DirtyPadding               // a padding byte is not zero
	BadBool                    // a bool is neither 0 nor 1
	NoNUL                      // a string has no NUL at its end, or no length for one
	BadUTF8                    // a string is not UTF-8
	BadUTF16                   // a wide string has unpaired surrogates or units above 0xffff
	BadNanosec                 // a time or duration has 10⁹ ns or more beside its seconds
	BadOptions                 // the encapsulation header has unknown options
	DirtyTail                  // a byte behind the value is not zero
	Trailing                   // there are more than 3 bytes behind the value
	Structure                  // not a reason: what follows cannot be walked
	Short                      // it ends too early
	Delimiter                  // the extra length of XCDR2 is not that of the collection
	Encoding                   // neither XCDR1 nor plain XCDR2
	lastReason
)

var reasonNames = [lastReason]string{"canonical", "padding byte not zero", "bool neither 0 nor 1", "string without NUL at its end",
	"string not UTF-8", "wide string not UTF-16", "nanoseconds of a second or more", "unknown encapsulation options",
	"trailing byte not zero", "more than 3 trailing bytes", "", "payload too short", "wrong delimiter", "unknown encoding"}

func (r Reason) String() string {
	if r < lastReason {
		return reasonNames[r]
	}
	return "unknown reason"
}

// NotCanonical says why a payload was refused: the first thing found.
type NotCanonical struct {
	Reason Reason
	Offset int // in the payload, the encapsulation header included
}

func (e *NotCanonical) Error() string {
	return fmt.Sprintf("shred payload: %v at offset %d", e.Reason, e.Offset)
}
