package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServeLogsRequestsWhenAsked: where standard error is no terminal, a line for each
// request comes with --log-level alone.
func TestServeLogsRequestsWhenAsked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags []string
		paths []string
	}{
		"as it is": {[]string{"--log-format", "json"}, nil},
		"info":     {[]string{"--log-level", "info", "--log-format", "json"}, []string{"/api/v1"}},
		"debug":    {[]string{"--log-level", "debug", "--log-format", "json"}, []string{"/api/v1", "/healthz"}},
		"off":      {[]string{"--log-level", "off"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			cmd := exec.Command("destkit", append([]string{"serve", "--addr", "127.0.0.1:0"}, tc.flags...)...)
			cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+t.TempDir()), &log
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewReader(out)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			address := strings.TrimPrefix(strings.TrimSpace(line), "listening ")
			for _, path := range []string{"/api/v1", "/healthz"} {
				answer, err := http.Get(address + path)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				require.Equal(t, 200, answer.StatusCode)
			}
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			_, err = lines.WriteTo(new(bytes.Buffer))
			require.NoError(t, err)
			require.NoError(t, cmd.Wait())
			var paths []string
			for line := range strings.Lines(log.String()) {
				var one struct{ Msg, Path string }
				require.NoError(t, json.Unmarshal([]byte(line), &one), line)
				if one.Msg == "request" {
					paths = append(paths, one.Path)
				}
			}
			require.Equal(t, tc.paths, paths, log.String())
		})
	}
}
