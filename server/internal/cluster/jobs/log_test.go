package jobs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// River's warnings and errors are logged, each once a minute.
func TestRiverIsQuiet(t *testing.T) {
	said := &records{}
	h := newQuiet(said).WithAttrs([]slog.Attr{slog.String("by", "river")})
	start := time.Now()
	say := func(after time.Duration, level slog.Level, text string) {
		if h.Enabled(context.Background(), level) {
			require.NoError(t, h.Handle(context.Background(), slog.NewRecord(start.Add(after), level, text, 0)))
		}
	}
	say(0, slog.LevelInfo, "started")
	say(0, slog.LevelError, "no database")
	say(time.Second, slog.LevelWarn, "slow")
	for i := 1; i <= 70; i++ {
		say(time.Duration(i)*time.Second, slog.LevelError, "no database")
	}
	require.Empty(t, said.told("started"))
	require.Len(t, said.told("slow"), 1)
	told := said.told("no database")
	require.Len(t, told, 2)
	require.Equal(t, map[string]string{"by": "river"}, told[0])
	require.Equal(t, map[string]string{"by": "river", "times_before": "59"}, told[1])
}
