package destination

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// TestBrokenHooksAreFoundBeforeTheFirstWrite: one problem that names the hook,
// what it answered and the fix; nothing is written.
func TestBrokenHooksAreFoundBeforeTheFirstWrite(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	answers := func(status int, text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/?key=hush-hush"
	}
	good := answers(200, `{"records":[],"complete":true}`)
	cases := []struct {
		name     string
		readback conformance.HookSpec
		hooks    conformance.Hooks
		words    []string
	}{
		{"no program", conformance.HookSpec{Command: []string{"no-such-program", "--read"}}, conformance.Hooks{}, []string{"readback", "cannot be started", "no-such-program", "make it executable"}},
		{"a program that fails", conformance.HookSpec{Command: []string{"/bin/sh", "-c", "echo no module named psycopg >&2; exit 1"}}, conformance.Hooks{}, []string{"readback", "exit status 1", "no module named psycopg"}},
		{"nothing listens", conformance.HookSpec{URL: gone.URL}, conformance.Hooks{}, []string{"readback", "nothing listens at 127.0.0.1:", "start the hook"}},
		{"a wrong path", conformance.HookSpec{URL: answers(404, "no such route")}, conformance.Hooks{}, []string{"readback", "HTTP status 404: no such route", "look at the path"}},
		{"not JSON", conformance.HookSpec{URL: answers(200, "<html>hi</html>")}, conformance.Hooks{}, []string{"readback", "did not answer one JSON value", "<html>hi</html>", `{"records": [`}},
		{"another shape", conformance.HookSpec{URL: answers(200, `{"rows":[]}`)}, conformance.Hooks{}, []string{"readback", "records is missing", `{"records": [`}},
		{"not complete", conformance.HookSpec{URL: answers(200, `{"records":[],"complete":false}`)}, conformance.Hooks{}, []string{"complete is false", "look every key"}},
		{"a key of its own", conformance.HookSpec{URL: answers(200, `{"records":[{"identifier":"ada@example.com","count":1,"fields":{}}]}`)}, conformance.Hooks{}, []string{`"ada@example.com", which was not asked for`}},
		{"a cleanup hook that is no program", conformance.HookSpec{URL: good}, conformance.Hooks{Cleanup: conformance.HookSpec{Command: []string{"./cleanup.sh"}}}, []string{"hook cleanup", "cannot be started", "./cleanup.sh"}},
		{"a cleanup hook that is not there", conformance.HookSpec{URL: good}, conformance.Hooks{Cleanup: conformance.HookSpec{URL: gone.URL}}, []string{"hook cleanup", "nothing listens at "}},
		{"a hook that a check calls", conformance.HookSpec{URL: good}, conformance.Hooks{Restart: conformance.HookSpec{URL: gone.URL}}, []string{"hook restart", "nothing listens at "}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := newSmall()
			server := httptest.NewServer(e)
			t.Cleanup(server.Close)
			path := filepath.Join(t.TempDir(), "run.ndjson")
			r, err := Run(context.Background(), Target{URL: server.URL}, conformance.Options{
				Write: true, Objects: []string{"contact"}, Readback: c.readback, Hooks: c.hooks, Journal: path,
				Select: []string{"SEM-001", "DUR-003", "CON-001"},
			})
			require.NoError(t, err)
			nothingJudged(t, r, "hook", append(c.words, "nothing was written")...)
			require.NotContains(t, r.Problems[0].Message+r.Problems[0].Fix, "hush-hush")
			batches, _ := e.sent()
			require.Zero(t, batches)
			_, err = os.Stat(path)
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// TestHooksThatAreNotCalledAreNotProbed: what this run does not need may be away.
func TestHooksThatAreNotCalledAreNotProbed(t *testing.T) {
	gone := conformance.HookSpec{Command: []string{"no-such-program"}}
	hooks := conformance.Hooks{Cleanup: gone, Restart: gone, AlterSchema: gone, BreakDownstream: gone, RotateToken: gone}
	r, err := Run(context.Background(), Target{Handler: newSmall()}, conformance.Options{Hooks: hooks, Select: []string{"CON-001"}})
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	hooks.Cleanup = conformance.HookSpec{}
	e := newSmall()
	opts := writing(e)
	opts.Hooks, opts.Select = hooks, []string{"CON-001"}
	r, err = Run(context.Background(), Target{Handler: e}, opts)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
}

// TestTheProbeTakesNoIntegerKey: the range may be short, and the probe writes
// nothing.
func TestTheProbeTakesNoIntegerKey(t *testing.T) {
	e := newSmall()
	e.fields[0].Type = "integer"
	var asked []string
	opts := writing(e)
	opts.KeyFrom, opts.KeyTo = 7, 9
	opts.ReadbackFunc = func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
		for _, id := range q.Identifiers {
			asked = append(asked, string(id))
		}
		return e.readback(ctx, q)
	}
	s := prepared(t, e, writeCheck, opts)
	c, err := s.Discover(context.Background())
	require.NoError(t, err)
	s.Catalog = c
	require.NoError(t, s.probeReadback(context.Background()))
	require.Equal(t, []string{"7"}, asked)
	next, ok := s.Keys.NextInteger()
	require.True(t, ok)
	require.EqualValues(t, 7, next)
}

// throughHook judges an endpoint with a read-back hook whose replies are edited.
func throughHook(t *testing.T, e *small, check string, edit func(reply string) string) *conformance.Report {
	t.Helper()
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q conformance.ReadbackRequest
		require.NoError(t, json.NewDecoder(r.Body).Decode(&q))
		reply, err := e.readback(r.Context(), q)
		require.NoError(t, err)
		fmt.Fprint(w, edit(encoded(reply)))
	}))
	t.Cleanup(hook.Close)
	// The hook is beyond the loopback of a handler, so the endpoint is a server.
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	r, err := Run(context.Background(), Target{URL: server.URL}, conformance.Options{
		Write: true, Objects: []string{"contact"}, Readback: conformance.HookSpec{URL: hook.URL}, Select: []string{check},
	})
	require.NoError(t, err)
	return r
}

// TestAReadbackWrittenInPython answers floats as json.dumps does. The check reports the stored
// value, and the verdict is unaffected.
func TestAReadbackWrittenInPython(t *testing.T) {
	e := newSmall()
	e.fields[1].Type = "float"
	r := throughHook(t, e, "DAT-006", func(reply string) string { return strings.ReplaceAll(reply, "1e400", "Infinity") })
	got := resultOf(t, r, "DAT-006")
	require.Equal(t, conformance.Warn, got.Status, got.Reason)
	require.Equal(t, "it is Infinity", got.Findings[0].Actual)
	require.Zero(t, r.Counts[conformance.HarnessError])
	require.NotEqual(t, conformance.Unknown, r.Verdict, r.Summary)
}

// TestAHookWithoutCountsIsNoted: the report notes what such a hook cannot show.
func TestAHookWithoutCountsIsNoted(t *testing.T) {
	for _, counted := range []bool{true, false} {
		r := throughHook(t, newSmall(), "SEM-006", func(reply string) string {
			if counted {
				return reply
			}
			return strings.ReplaceAll(reply, `"count":1,`, "")
		})
		require.Equal(t, conformance.Pass, resultOf(t, r, "SEM-006").Status)
		require.Equal(t, counted, !strings.Contains(strings.Join(r.Notes, "\n"), uncountedNote))
	}
}

// TestAHookThatFailsBelowTheGate: a SHOULD does not cost the verdict.
func TestAHookThatFailsBelowTheGate(t *testing.T) {
	e := newSmall()
	opts := writing(e)
	asked := 0
	opts.Serial = true
	opts.ReadbackFunc = func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
		if asked++; asked > 2 {
			return conformance.ReadbackReply{}, errors.New("the replica is gone")
		}
		return e.readback(ctx, q)
	}
	r := judged(t, e, healthCheck+strings.Replace(writeCheck, "@must", "@should", 1), opts)
	got := resultOf(t, r, "WRI-001")
	require.Equal(t, conformance.HarnessError, got.Status)
	require.Contains(t, got.Reason, "the replica is gone")
	require.Equal(t, conformance.Conformant, r.Verdict, r.Summary)
	require.Zero(t, r.ExitStatus, "%v", r.Problems)
	require.Contains(t, strings.Join(r.Notes, "\n"), "failed in WRI-001, below the gate")
}

// TestHookIsNamedBeforeTheEndpoint: a database without booleans and lists gives 1 and
// text, and a hook that hands them on makes a right endpoint look wrong.
func TestHookIsNamedBeforeTheEndpoint(t *testing.T) {
	flag, list := rpc.Field{APIName: "active", Type: rpc.TypeBoolean}, rpc.Field{APIName: "tags", Type: rpc.TypeString, Array: true}
	for _, tt := range []struct {
		field        rpc.Field
		sent, stored string
		want         string
	}{
		{flag, `true`, `1`, "the read-back hook shows 1 for true and 0 for false, as the database keeps it; or the endpoint "},
		{flag, `false`, `0`, "the read-back hook shows 1 for true and 0 for false, "},
		{flag, `true`, `"t"`, "the read-back hook shows text for true and false, "},
		{list, `["a","b"]`, `"[\"a\", \"b\"]"`, "the read-back hook shows the text of a list for the list, "},
		{list, `["a","b"]`, `"{a,b}"`, "the read-back hook shows the text of a list for the list, "},
		{list, `[]`, `"[]"`, "the read-back hook shows the text of a list for the list, "},
		{flag, `true`, `0`, ""},
		{flag, `true`, `null`, ""},
		{list, `["a","b"]`, `"a,b"`, ""},
		{list, `["a","b"]`, `"[\"a\"]"`, ""},
		{rpc.Field{APIName: "n", Type: rpc.TypeInteger}, `1`, `"1"`, ""},
	} {
		p := values.Pair{Field: tt.field, Sent: json.RawMessage(tt.sent), Stored: json.RawMessage(tt.stored)}
		cause, fix := write.HookShows(p)
		require.Equal(t, tt.want == "", cause == "", "%s as %s", tt.sent, tt.stored)
		require.Contains(t, cause, tt.want)
		require.Equal(t, tt.want == "", fix == "")
		require.Equal(t, cause, judge.DifferenceOf(&write.Record{}, p).Cause)
	}
}
