package zoo_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// missesFile lists what the judge does not report well yet: a row in it counts as missed, and no
// test fails because of it. The whole zoo fails when a row in it is found after all. -update writes
// it.
const missesFile = "testdata/misses.txt"

// readMisses gives the known misses by language and name.
func readMisses() (map[string]string, error) {
	text, err := os.ReadFile(missesFile)
	misses := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, printed, _ := strings.Cut(strings.TrimSpace(line), ": ")
		misses[name] = printed
	}
	return misses, err
}

// missed is what a run with read-back does not report well about a mistake; "" when all is well.
func missed(r *conformance.Report, m Mistake, o outcome) string {
	if n := r.Counts[conformance.HarnessError]; n > 0 {
		return fmt.Sprintf("%d harness errors", n)
	}
	// FLAKY means that calls disturb each other, not that this rule is broken.
	var blamed []string
	for _, id := range failed(r, conformance.Fail) {
		if matches(m.Never, id) {
			blamed = append(blamed, id)
		}
	}
	switch wanted := o.status == conformance.Fail || m.Slip && o.status == conformance.Warn; {
	case o.status == "":
		return fmt.Sprintf("not found; FAIL %v WARN %v", failed(r, broken...), failed(r, conformance.Warn))
	case !wanted:
		return o.String()
	case len(blamed) > 0:
		return fmt.Sprintf("%v have nothing to do with it", blamed)
	case m.Cause != "" && !strings.Contains(strings.Join(observed(r), "\n"), m.Cause):
		return "not observed; " + o.printed()
	case o.cause(m) != right:
		return fmt.Sprintf("cause %s; %s", o.cause(m), o.printed())
	}
	return ""
}

// writeMisses writes the known misses again; what was not judged stays.
func (c *collected) writeMisses() error {
	known, err := readMisses()
	if err != nil {
		return err
	}
	for name, o := range c.mistakes {
		switch with, judged := o[true]; {
		case judged && with.missed == "":
			delete(known, name)
		case judged:
			known[name] = string([]rune(strings.Join(strings.Fields(with.missed), " ") + strings.Repeat(" ", 200))[:200])
		}
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(known)) {
		fmt.Fprintf(&text, "%s: %s\n", name, strings.TrimSpace(known[name]))
	}
	return os.WriteFile(missesFile, []byte(text.String()), 0o644)
}

// requireNoStale fails when a known miss is none any more.
func (c *collected) requireNoStale(t *testing.T) {
	t.Helper()
	misses, err := readMisses()
	require.NoError(t, err)
	for name := range misses {
		o, judged := c.mistakes[name][true]
		require.True(t, judged, "%s: there is no %s", missesFile, name)
		require.NotEmpty(t, o.missed, "%s: %s is found, and its cause is right: take it out, or make zoo UPDATE=1", missesFile, name)
	}
}
