//go:build unix && !linux

package testkit

// memory is a folder in memory; none is known here.
func memory() string { return "" }
