package conformance_test

import "flag"

// runFlag is the value of -test.run.
func runFlag() string {
	if f := flag.Lookup("test.run"); f != nil {
		return f.Value.String()
	}
	return ""
}
