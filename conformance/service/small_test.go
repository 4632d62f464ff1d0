package service_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/matrixtest"
)

// small starts the service of another make, with its mistakes.
func small(t *testing.T, mistakes ...string) *bench {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		matrixtest.Missing(t, "python3", "the second service is written in Python: install python3")
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"testdata/service.py"}, mistakes...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return &bench{
		target: service.Target{BaseURL: strings.TrimSpace(address), PersonalAccessToken: "pat_small", WorkspaceAPIKey: "secret-token:small"},
		opts:   service.Options{Options: conformance.Options{Seed: 1}, NewSimulator: simulator, Listen: listen},
	}
}

// status is the status of one check of a report.
func status(r *conformance.Report, id string) conformance.Status {
	for _, c := range r.Checks {
		if c.ID == id {
			return c.Status
		}
	}
	return ""
}

// TestServiceOfAnotherMake judges a service that shares no code with ours, right
// and with several mistakes at once: each is found, and nothing else comes up.
func TestServiceOfAnotherMake(t *testing.T) {
	sound := []string{"TOK-008", "CALL-001", "CALL-002"}
	judge := func(b *bench) *conformance.Report {
		b.opts.Select = sound
		r, err := service.Run(context.Background(), b.target, b.opts)
		require.NoError(t, err)
		return r
	}
	r := judge(small(t))
	for _, id := range sound {
		require.Equal(t, conformance.Pass, status(r, id), "%s\n%s", id, explain(r))
	}
	require.Empty(t, r.Residue.Refused)
	r = judge(small(t, "open-door", "one-id", "no-version", "no-clamp", "missing-is-success", "sends-all", "big-batches"))
	require.Equal(t, conformance.NonConformant, r.Verdict)
	for _, id := range sound {
		require.Equal(t, conformance.Fail, status(r, id), "%s\n%s", id, explain(r))
	}
	require.Equal(t, 1, r.ExitStatus)
}
