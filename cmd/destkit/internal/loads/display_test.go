package loads

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen"
)

// middle is a load in the middle.
func middle() loadgen.Moment {
	return loadgen.Moment{
		Phase: "load", Elapsed: 12 * time.Second, Of: time.Minute, Requests: 600_000, Records: 600_000, Errors: 3, InFlight: 4, Asked: 50_000,
		Latest: loadgen.Point{RequestsPerSecond: 50_012, RecordsPerSecond: 50_012, P50: 0.31, P95: 0.8, P99: 1.7, Max: 123.4, ServiceP50: 0.2, ServiceP99: 1.1},
	}
}

func TestDisplay(t *testing.T) {
	text := block(middle(), 60)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		require.Less(t, len([]rune(line)), 60, "a line that is broken cannot be drawn over")
	}
	require.Contains(t, text, "load 12s of 1m0s [####")
	require.Contains(t, text, "50,012 requests/s")
	require.Contains(t, text, "p99 1.70  max 123 ms")

	var screen bytes.Buffer
	view := NewDisplay(&screen, false)
	m := middle()
	for range 30 {
		view.Moment(m)
		m.Elapsed += 500 * time.Millisecond
	}
	view.Note("careful")
	view.Done()
	require.Equal(t, 3, strings.Count(screen.String(), "load "), "a line every six seconds of a minute")
	require.NotContains(t, screen.String(), "\x1b", "nothing is drawn over where no terminal is")
	require.Contains(t, screen.String(), "note: careful")
	screen.Reset()
	NewDisplay(&screen, true).Moment(m)
	require.Empty(t, screen.String())
}

func TestALongLoadHasALineEveryTenSeconds(t *testing.T) {
	var out bytes.Buffer
	v := NewDisplay(&out, false)
	for s := range 61 {
		v.Moment(loadgen.Moment{Phase: "measure", Elapsed: time.Duration(s) * time.Second, Of: time.Hour})
	}
	require.Equal(t, 7, bytes.Count(out.Bytes(), []byte("\n")))
}
