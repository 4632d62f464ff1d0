package outputs

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
)

func TestProgressIsALineEveryTenSecondsWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		step, done := Progress(&out, false)
		time.Sleep(11 * time.Second)
		step(conformance.Progress{Done: 3, Total: 92, Result: conformance.CheckResult{ID: "RES-002"}})
		step(conformance.Progress{Done: 4, Total: 92, Result: conformance.CheckResult{ID: "X\n::error::y"}})
		time.Sleep(20 * time.Second)
		done()
		done()
		time.Sleep(time.Minute)
		require.Equal(t, "judging for 10s: no check is done yet\n"+
			"judging for 20s: 4 of 92 checks, the last was X ::error::y\n"+
			"judging for 30s: 4 of 92 checks, the last was X ::error::y\n", out.String())

		out.Reset()
		step, done = Progress(&out, true)
		time.Sleep(time.Minute)
		done()
		require.Nil(t, step)
		require.Empty(t, out.String())
	})
}

func TestColoursAreDecidedInOnePlace(t *testing.T) {
	for _, name := range []string{"NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct {
		name, value string
		refused     bool
		want        bool
	}{
		{"TERM", "xterm", false, false},
		{"FORCE_COLOR", "1", false, true}, {"FORCE_COLOR", "0", false, false}, {"FORCE_COLOR", "1", true, false},
		{"CLICOLOR_FORCE", "1", false, true}, {"CLICOLOR_FORCE", "0", false, false},
	} {
		t.Setenv(c.name, c.value)
		require.Equal(t, c.want, command.Colourful(&bytes.Buffer{}, c.refused), "%+v", c)
		t.Setenv(c.name, "")
	}
	t.Setenv("FORCE_COLOR", "1")
	t.Setenv("NO_COLOR", "1")
	require.False(t, command.Colourful(&bytes.Buffer{}, false), "NO_COLOR wins")
}
