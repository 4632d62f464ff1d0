package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A run counts only where both sides have counted the same.
func TestLoadAndSimulatorMustAgree(t *testing.T) {
	result := func(records, refused, other int64) *loaded {
		return &loaded{Records: records, Errors: refused + other, ErrorsByKind: map[string]int64{"record_refused": refused, "timeout": other}}
	}
	for _, c := range []struct {
		name  string
		load  *loaded
		sim   verdicts
		words string
	}{
		{"alike", result(1000, 10, 0), verdicts{990, 10}, ""},
		{"one lost", result(1000, 10, 0), verdicts{989, 10}, "the simulator 989 and 10"},
		{"one refusal missed", result(1000, 9, 0), verdicts{990, 10}, "991 stored and 9 refused"},
		{"other errors", result(1000, 10, 3), verdicts{990, 10}, "3 errors that are no refused records"},
		{"none refused", result(1000, 0, 0), verdicts{1000, 0}, "no record of 1000 was refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.load.agrees(c.sim); c.words == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.words)
			}
		})
	}
}
