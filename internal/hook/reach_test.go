package hook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReach(t *testing.T) {
	called := 0
	count := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ })
	plain, secure := httptest.NewServer(count), httptest.NewTLSServer(count)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	gone := httptest.NewServer(count)
	gone.Close()
	file := filepath.Join(t.TempDir(), "hook.py")
	require.NoError(t, os.WriteFile(file, []byte("print()"), 0o600))
	cases := []struct {
		name   string
		spec   Spec
		client *http.Client
		kind   Kind // "" when it can be reached
		want   string
	}{
		{"a command of PATH", Spec{Command: []string{"sh", "-c", "exit 3"}}, nil, "", ""},
		{"a command by its path", Spec{Command: []string{"/bin/sh"}}, nil, "", ""},
		{"no such command", Spec{Command: []string{"no-such-hook-anywhere"}}, nil, KindSetup, "no-such-hook-anywhere"},
		{"a file that is no program", Spec{Command: []string{file}}, nil, KindSetup, "cannot be started"},
		{"a folder", Spec{Command: []string{filepath.Dir(file)}}, nil, KindSetup, "cannot be started"},
		{"a url", Spec{URL: plain.URL + "/?key=hush"}, nil, "", ""},
		{"nothing listens", Spec{URL: gone.URL + "/?key=hush"}, nil, KindUnreachable, "nothing listens at 127.0.0.1:"},
		{"no such host", Spec{URL: "http://hook.invalid/?key=hush"}, nil, KindUnreachable, "the host name hook.invalid "},
		{"https", Spec{URL: secure.URL}, secure.Client(), "", ""},
		{"https of a stranger", Spec{URL: secure.URL + "/?key=hush"}, &http.Client{Transport: &http.Transport{}}, KindUnreachable, "certificate"},
		{"https where http is spoken", Spec{URL: "https" + plain.URL[4:] + "/?key=hush"}, secure.Client(), KindUnreachable, "plain http is spoken on this port"},
		{"both", Spec{URL: plain.URL, Command: []string{"sh"}}, nil, KindSetup, "both a url and a command"},
		{"neither", Spec{}, nil, KindSetup, "neither"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.spec.Reach(t.Context(), c.client, 10*time.Second, "cleanup")
			require.Equal(t, c.kind, KindOf(err), "%v", err)
			if c.kind == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "call hook cleanup")
			require.NotContains(t, err.Error(), "hush")
		})
	}
	require.Zero(t, called, "a hook may change the destination: it is not called")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, KindCanceled, KindOf(Spec{URL: plain.URL}.Reach(ctx, nil, 0, "cleanup")))
}
