package fileformat

// What tests go by.
const (
	Sampled       = sampled
	LongestRecord = longestRecord
)
