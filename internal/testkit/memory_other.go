//go:build unix && !linux

package testkit

// memory is a folder that lies in memory; nothing is known of one here.
func memory() string { return "" }
