package serve

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// TestMistakesOfServe are told before anything is opened, and without a secret.
func TestMistakesOfServe(t *testing.T) {
	folder := t.TempDir()
	for want, c := range map[string]struct {
		token, key string
		args       []string
	}{
		"hold the same value":                       {"hush-hush-hush-hush", "hush-hush-hush-hush", nil},
		"--max-row must be above 0, not 0":          {args: []string{"--max-row", "0"}},
		"--max-row must be above 0, not -5":         {args: []string{"--max-row", "-5"}},
		"is a URL: give its host alone: x":          {args: []string{"--allow-hosts", "http://x"}},
		"--to " + folder + " is a folder; name the": {args: []string{"backup", "--data", folder, "--to", folder}},
	} {
		t.Setenv(command.AccessTokenVariable, c.token)
		t.Setenv(command.WorkspaceKeyVariable, c.key)
		cmd := New()
		cmd.SetArgs(append(c.args, []string{"--data", folder}...))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hush-hush")
		var ended *exit.Error
		require.ErrorAs(t, err, &ended)
		require.Equal(t, exit.BadUsage, ended.Status)
	}
}
