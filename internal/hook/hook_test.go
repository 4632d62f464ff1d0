package hook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shell(script string, args ...string) Spec {
	return Spec{Command: append([]string{"/bin/sh", "-c", script, "hook"}, args...)}
}

// serve answers every POST with the text and keeps the last body.
func serve(t *testing.T, status int, text string) (Spec, *http.Client, func() string) {
	t.Helper()
	var last string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last = r.Method + " " + r.Header.Get("Content-Type") + " " + string(body)
		w.WriteHeader(status)
		io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return Spec{URL: server.URL + "/?key=hush"}, server.Client(), func() string { return last }
}

func TestCallOverBothTransports(t *testing.T) {
	spec, client, last := serve(t, 200, `{"ok": true, "more": {"a": 1}}`)
	reply, err := Call(t.Context(), spec, client, 0, "restart", map[string]any{"action": "begin", "object": "contact"})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, string(reply["more"]))
	require.Equal(t, `POST application/json {"action":"begin","hook":"restart","object":"contact"}`, last())

	// No shell takes the arguments apart, and the environment is inherited.
	t.Setenv("HOOK_WORD", "inherited")
	spec = shell(`printf '{"ok": true, "arg": "%s", "word": "%s", "in": ' "$1" "$HOOK_WORD"; cat; echo '}'`, "$(a) b")
	reply, err = Call(t.Context(), spec, nil, 0, "cleanup", map[string]any{"n": 1})
	require.NoError(t, err)
	require.Equal(t, `"$(a) b"`, string(reply["arg"]))
	require.Equal(t, `"inherited"`, string(reply["word"]))
	require.JSONEq(t, `{"hook":"cleanup","n":1}`, string(reply["in"]))
}

// TestAHookThatHasNothingToSay: the end of a command and the status of a URL say
// that it worked, as those of "docker compose restart" do.
func TestAHookThatHasNothingToSay(t *testing.T) {
	reply, err := Call(t.Context(), shell(`cat >/dev/null`), nil, 0, "restart", nil)
	require.NoError(t, err)
	require.Empty(t, reply)
	spec, client, _ := serve(t, 204, "")
	_, err = Call(t.Context(), spec, client, 0, "cleanup", nil)
	require.NoError(t, err)
	_, err = Call(t.Context(), shell(`cat >/dev/null; exit 3`), nil, 0, "restart", nil)
	require.Equal(t, KindExit, KindOf(err))
	// The read-back has to say something.
	_, err = shell(`cat >/dev/null`).Readback(nil, 0)(t.Context(), asks(`"a"`))
	require.Equal(t, KindNotJSON, KindOf(err))
	require.ErrorContains(t, err, "answered nothing")
}

func TestRepliesOfACommandThatFail(t *testing.T) {
	cases := map[string]struct {
		spec Spec
		kind Kind
		want []string
	}{
		"no transport":   {Spec{}, KindSetup, []string{"call hook restart", "neither a url nor a command"}},
		"two transports": {Spec{URL: "http://x", Command: []string{"x"}}, KindSetup, []string{"both a url and a command"}},
		"not found":      {Spec{Command: []string{"no-such-hook-anywhere"}}, KindSetup, []string{"cannot be started", "no-such-hook-anywhere"}},
		"exit status":    {shell(`echo first >&2; echo second >&2; exit 7`), KindExit, []string{"exit status 7", "first\nsecond"}},
		"signal":         {shell(`kill -TERM $$`), KindExit, []string{"signal: terminated"}},
		"not JSON":       {shell(`echo done`), KindNotJSON, []string{"did not answer one JSON value", "done"}},
		"two values":     {shell(`echo '{"ok":true}{"ok":true}'`), KindNotJSON, []string{"one JSON value"}},
		"Latin-1":        {shell(`printf '{"ok":true,"a":"\351"}'`), KindNotJSON, []string{"not UTF-8"}},
		"array":          {shell(`echo '[]'`), KindShape, []string{"reply is an array, not an object"}},
		"no ok":          {shell(`echo '{}'`), KindShape, []string{"ok is missing"}},
		"Ok":             {shell(`echo '{"Ok":true}'`), KindShape, []string{"ok is missing"}},
		"ok twice":       {shell(`echo '{"ok":false,"ok":true}'`), KindShape, []string{`the member "ok" twice`}},
		"ok a string":    {shell(`echo '{"ok":"true"}'`), KindShape, []string{"ok is a string, not a boolean"}},
		"refused":        {shell(`echo '{"ok":false,"message":"no such object"}'`), KindRefused, []string{"answered ok: false: no such object"}},
		"refused object": {shell(`echo '{"ok":false,"error":{"code":3}}'`), KindRefused, []string{`{"code":3}`}},
		"too large":      {shell(`head -c 17000000 /dev/zero; sleep 60`), KindTooLarge, []string{"more than 16777216 bytes"}},
		"too slow":       {shell(`echo busy >&2; sleep 60`), KindTimeout, []string{"no complete answer within", "busy"}},
		"deaf":           {shell(`exec sleep 60 <&-`), KindTimeout, []string{"no complete answer within"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := 20 * time.Second
			if c.kind == KindTimeout {
				timeout = 300 * time.Millisecond
			}
			_, err := Call(t.Context(), c.spec, nil, timeout, "restart", nil)
			require.Equal(t, c.kind, KindOf(err), "%v", err)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestRepliesOfAURLThatFail(t *testing.T) {
	spec, client, _ := serve(t, 503, "<h1>down</h1>")
	_, err := Call(t.Context(), spec, client, 0, "restart", nil)
	require.Equal(t, KindStatus, KindOf(err))
	require.ErrorContains(t, err, "HTTP status 503: <h1>down</h1>")

	spec, client, _ = serve(t, 200, strings.Repeat(" ", MaxReply+1))
	_, err = Call(t.Context(), spec, client, 0, "restart", nil)
	require.Equal(t, KindTooLarge, KindOf(err))

	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err = Call(t.Context(), Spec{URL: server.URL + "/?key=hush"}, nil, 0, "restart", nil)
	require.Equal(t, KindUnreachable, KindOf(err))
	require.NotContains(t, err.Error(), "hush")

	_, err = Call(t.Context(), Spec{URL: "http://a b/?key=hush"}, nil, 0, "restart", nil)
	require.Equal(t, KindSetup, KindOf(err))
	require.NotContains(t, err.Error(), "hush")
}

func TestAURLThatStalls(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"ok":`)
		w.(http.Flusher).Flush()
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	_, err := Call(t.Context(), Spec{URL: server.URL}, server.Client(), 100*time.Millisecond, "restart", nil)
	require.Equal(t, KindTimeout, KindOf(err))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Call(ctx, Spec{URL: server.URL}, server.Client(), 0, "restart", nil)
	require.Equal(t, KindCanceled, KindOf(err))
	require.ErrorIs(t, err, context.Canceled)
	_, err = Call(ctx, shell(`sleep 60`), nil, 0, "restart", nil)
	require.Equal(t, KindCanceled, KindOf(err))
}

func TestTheWholeGroupIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := Call(ctx, shell(`sleep 60 & echo $! >"$1.new"; mv "$1.new" "$1"; wait`, file), nil, time.Minute, "restart", nil)
		ended <- err
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, time.Minute, time.Millisecond)
	cancel()
	require.Equal(t, KindCanceled, KindOf(<-ended))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !alive(child) }, time.Minute, time.Millisecond, "a child of the hook lives on")
}

// alive is false for a zombie: whoever inherited the child has yet to reap it.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestAHookMayLeaveAServerBehind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	reply, err := Call(t.Context(), shell(`sleep 60 & echo $! >"$1"; echo '{"ok":true}'`, file), nil, 20*time.Second, "restart", nil)
	require.NoError(t, err)
	require.Equal(t, "true", string(reply["ok"]))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.True(t, alive(child))
	require.NoError(t, syscall.Kill(child, syscall.SIGKILL))
}

func TestDetailIsBounded(t *testing.T) {
	_, err := Call(t.Context(), shell(`i=0; while [ $i -lt 3000 ]; do echo "line $i" >&2; i=$((i+1)); done; exit 1`), nil, 0, "restart", nil)
	require.ErrorContains(t, err, "line 2999")
	require.NotContains(t, err.Error(), "line 2989\n")
	require.Less(t, len(err.Error()), 3<<10)
	require.Equal(t, strings.Repeat("é", 1024)+"…", bounded(strings.Repeat("é", 5000)))
	require.Equal(t, Kind(""), KindOf(errors.New("other")))
}

func FuzzDecodeReply(f *testing.F) {
	f.Add([]byte(`{"records":[{"identifier":"a","count":1,"fields":{"x":null}}],"complete":true}`))
	f.Add([]byte(`{"ok":true,"ok":1}`))
	f.Add([]byte(`[{"identifier":"NaN","fields":{"x":[-Infinity,"Infinity"]}}]`))
	f.Fuzz(func(t *testing.T, reply []byte) {
		got, err := decodeReply("readback", reply)
		if err != nil {
			return
		}
		decoded, err := decodeReadback(got)
		if err != nil {
			return
		}
		for _, record := range decoded.Records {
			if record.Count < 1 || !json.Valid(record.Identifier) && wordAt(record.Identifier, 0) == nil {
				t.Fatalf("record %+v", record)
			}
		}
	})
}

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
