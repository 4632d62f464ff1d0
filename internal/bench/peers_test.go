package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The samples are what the peers have put out: against a simulator (good), a path
// that answers 404 (bad), a port without a listener (refused) and a server
// that was killed meanwhile.
func TestOutputsOfPeersAreRead(t *testing.T) {
	for _, c := range []struct {
		peer, sample string
		want         tally
	}{
		{"wrk", "good", tally{rate: 21398.67, bad: 0}},
		{"wrk", "bad", tally{rate: 26218.50, bad: 28877}},
		{"wrk", "killed", tally{rate: 26811.76, bad: 21542}},
		{"fortio", "good", tally{rate: 24278.8, bad: 0}},
		{"fortio", "killed", tally{rate: 17662.3, bad: 5633}},
		{"h2load", "good", tally{rate: 24752, bad: 0}},
		{"h2load", "bad", tally{rate: 21975, bad: 21975}},
		{"h2load", "refused", tally{rate: 0, bad: 0}},
		{"hey", "good", tally{rate: 13509.09, bad: 0}},
		{"hey", "bad", tally{rate: 17988.3335, bad: 18000}},
		{"hey", "refused", tally{rate: 6586.9536, bad: 4}},
		{"k6", "good", tally{rate: 5724.866062, bad: 0}},
		{"k6", "bad", tally{rate: 5859.136387, bad: 5873}},
		{"k6", "refused", tally{rate: 354.611721, bad: 4}},
	} {
		t.Run(c.peer+"/"+c.sample, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", c.peer+"."+c.sample+".txt"))
			require.NoError(t, err)
			got, err := peerCalled(c.peer).parse(text)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// What gave up has no rate; that is an error and no rate of zero.
func TestOutputsWithoutARate(t *testing.T) {
	for _, sample := range []string{"wrk.refused.txt", "fortio.refused.txt", "fortio.bad.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", sample))
		require.NoError(t, err)
		name, _, _ := strings.Cut(sample, ".")
		_, err = peerCalled(name).parse(text)
		require.ErrorContains(t, err, "read the output", sample)
	}
}
