package wire

import (
	"math"
	"time"
)

// TimestampInvalid is what some senders write for "no time".
const TimestampInvalid Timestamp = math.MaxUint64

// TimestampFromUnix converts nanoseconds since the Unix epoch. Times before 1970 become 0, those after February 2106
// the last one that fits. Unix gives back exactly ns.
func TimestampFromUnix(ns int64) Timestamp {
	if ns < 0 {
		return 0
	}
	sec, frac := uint64(ns)/1e9, uint64(ns)%1e9
	if sec > math.MaxUint32 {
		return TimestampInvalid - 1
	}
	return Timestamp(sec<<32 | (frac<<32+1e9-1)/1e9)
}

// Unix is the time in nanoseconds since the Unix epoch, rounded down.
func (t Timestamp) Unix() int64 {
	return int64(uint64(t)>>32)*1e9 + int64((uint64(t)&math.MaxUint32)*1e9>>32)
}

// infinite is how an endless duration is held where 0 has another meaning.
const infinite = time.Duration(math.MaxInt64)

// wireDuration splits d into seconds and 2^-32 s as DDS writes durations; infinite and anything over 68 years become
// 7fffffff ffffffff.
func wireDuration(d time.Duration) (sec int32, frac uint32) {
	if d < 0 {
		d = 0
	}
	if int64(d)/1e9 >= math.MaxInt32 {
		return math.MaxInt32, math.MaxUint32
	}
	return int32(int64(d) / 1e9), uint32((uint64(int64(d)%1e9)<<32 + 1e9 - 1) / 1e9)
}

// duration is the reverse of wireDuration. Negative ones (DDS knows an "invalid" duration) count as infinite.
func duration(sec int32, frac uint32) time.Duration {
	if sec < 0 || sec == math.MaxInt32 {
		return infinite
	}
	return time.Duration(int64(sec)*1e9 + int64(uint64(frac)*1e9>>32))
}
