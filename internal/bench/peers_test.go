package main

import (
	"os"
	"path/filepath"
	"slices"
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
	} {
		t.Run(c.peer+"/"+c.sample, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", c.peer+"."+c.sample+".txt"))
			require.NoError(t, err)
			got, err := called(c.peer).parse(text)
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
		_, err = called(name).parse(text)
		require.ErrorContains(t, err, "read the output", sample)
	}
}

func called(name string) peer {
	return peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == name })]
}
