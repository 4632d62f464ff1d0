package loads

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDisplay(t *testing.T) {
	text := block(someMoment(), 60)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		require.Less(t, len([]rune(line)), 60, "a line that is broken cannot be drawn over")
	}
	require.Contains(t, text, "load 12s of 1m0s [####")
	require.Contains(t, text, "50,012 requests/s")
	require.Contains(t, text, "p99 1.70  max 123 ms")

	var screen bytes.Buffer
	view := NewDisplay(&screen, false)
	m := someMoment()
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
