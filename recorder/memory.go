package recorder

const (
	maxDefaultCache = 100 << 20
	minDefaultCache = 4 << 20
	cacheShare      = 20 // one part in so many of the memory
)

// DefaultCacheSize returns the cache size used when none is given: 100 MiB or 5 % of the memory this process may use,
// whichever is less, in bytes. On Linux that memory is the smaller of RAM and the limits of the control groups; elsewhere
// it is not asked for and 100 MiB is the answer.
func DefaultCacheSize() int64 {
	mem := memoryLimit()
	if mem <= 0 {
		return maxDefaultCache
	}
	return min(maxDefaultCache, max(minDefaultCache, mem/cacheShare))
}
