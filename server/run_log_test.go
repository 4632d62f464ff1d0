package server

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinesOfARun: what is logged of a run names it, its sync and its workspace.
func TestLinesOfARun(t *testing.T) {
	var said sayings
	w := newWorld(t, func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	id := w.newSync()
	run := w.trigger(id)
	w.control("POST", "/settle", nil).want(200)
	told := 0
	for lines := bufio.NewScanner(strings.NewReader(said.String())); lines.Scan(); {
		var line struct {
			Msg                  string
			Run, Sync, Workspace int64
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Run == 0 && !strings.Contains(line.Msg, "run") {
			continue
		}
		told++
		require.Equal(t, []int64{run, id, w.s.FirstTokens().WorkspaceID}, []int64{line.Run, line.Sync, line.Workspace}, lines.Text())
	}
	require.Positive(t, told)
	require.Contains(t, said.String(), `"msg":"sync run ended"`)
}
