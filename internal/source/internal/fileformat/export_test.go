package fileformat

// Exports for tests.
const (
	Sampled       = sampled
	LongestRecord = longestRecord
)
