package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/cleanup"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// withCleanup serves a cleanup hook next to the endpoint and notes its calls.
type withCleanup struct {
	*small
	asked []string
	reply string
}

func (h *withCleanup) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/cleanup" {
		h.small.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	h.asked = append(h.asked, string(body))
	fmt.Fprint(w, h.reply)
}

func cleanupHook() conformance.Hooks {
	return conformance.Hooks{Cleanup: conformance.HookSpec{URL: "http://destination.localhost/cleanup"}}
}

// writtenKeys are those of WRI-001 in the run abc.
var writtenKeys = []string{"zz-conf-abc-WRI-001-1@example.com", "zz-conf-abc-WRI-001-2@example.com", "zz-conf-abc-WRI-001-3@example.com"}

// TestOnlyJournalledKeysAreDeleted: the data of others stays, even under keys
// that look like ours.
func TestOnlyJournalledKeysAreDeleted(t *testing.T) {
	e := newSmall()
	others := map[string]rpc.Record{}
	for _, key := range []string{"ada@example.com", "zz-conf-abc-WRI-001-1", "zz-conf-abc-WRI-001-4@example.com", "zz-conf-abc-WRI-001-@example.com", "zz-conf-other-WRI-001-1@example.com"} {
		others[key] = rpc.Record{"email": values.Quote(key)}
	}
	e.stored["contact"] = others
	opts := writing(e)
	opts.RunID = "abc"
	r := judged(t, e, writeCheck, opts)
	require.Equal(t, conformance.Pass, resultOf(t, r, "WRI-001").Status)
	require.Equal(t, []string{"ada@example.com", "zz-conf-abc-WRI-001-1", "zz-conf-abc-WRI-001-4@example.com", "zz-conf-abc-WRI-001-@example.com", "zz-conf-other-WRI-001-1@example.com"}, e.keys("contact"))
	require.Subset(t, e.deleted, writtenKeys)
	for _, key := range e.deleted {
		require.True(t, strings.HasPrefix(key, "zz-conf-abc-"), key)
	}
	require.Equal(t, len(e.deleted), r.Residue.Cleaned)
	require.Empty(t, r.Residue.Refused)
	require.Empty(t, r.Residue.Unknown)
}

// TestLeftovers: without delete batches and without a hook the report names
// every key exactly; --require-clean makes it exit status 5.
func TestLeftovers(t *testing.T) {
	for _, clean := range []bool{false, true} {
		e := newSmall()
		e.operations = []string{"upsert"}
		opts := conformance.Options{Write: true, Objects: []string{"contact"}, RunID: "abc", SkipConvention: conformance.SkipSuccess, RequireClean: clean}
		r := judged(t, e, healthCheck+writeCheck, opts)
		var left []string
		for _, l := range r.Residue.Refused {
			require.Equal(t, "contact", l.Object)
			require.Equal(t, "email", l.Field)
			require.Contains(t, l.Reason, "takes no delete batches")
			left = append(left, exchange.KeyText([]byte(l.Identifier)))
		}
		require.Subset(t, left, writtenKeys)
		require.ElementsMatch(t, e.keys("contact"), left, "every record that is there is named, and no other")
		require.Zero(t, r.Residue.Cleaned)
		require.Empty(t, e.deleted)
		if clean {
			require.Equal(t, 5, r.ExitStatus)
			require.Contains(t, problemKinds(r), "residue")
		} else {
			require.Zero(t, r.ExitStatus, "%v", r.Problems)
		}
	}
}

// TestARefusedRecordIsNoResidue: what the endpoint refused to write needs no
// clean-up and counts as nothing.
func TestARefusedRecordIsNoResidue(t *testing.T) {
	e := newSmall()
	e.operations = []string{"upsert", "update"}
	e.answer = func(method string, _ int, body []byte) string {
		if method != rpc.MethodSyncBatch {
			return ""
		}
		return refuseAll(body)
	}
	r := judged(t, e, healthCheck+writeCheck, conformance.Options{Write: true, Objects: []string{"contact"}, RequireClean: true})
	require.Zero(t, r.ExitStatus, "%v", r.Problems)
	require.Zero(t, r.Residue.Cleaned)
	require.Empty(t, r.Residue.Refused)
	require.Empty(t, r.Residue.Unknown)
}

// refuseAll fails every record of a batch.
func refuseAll(body []byte) string {
	var req struct{ Params rpc.BatchParams }
	_ = json.Unmarshal(body, &req)
	var results []rpc.RecordResult
	for _, r := range req.Params.Records {
		results = append(results, rpc.RecordResult{Identifier: r["email"], ErrorMessage: "no"})
	}
	return `{"jsonrpc":"2.0","id":$ID,"result":` + encoded(rpc.BatchResult{RecordResults: results}) + `}`
}

// TestRefusedDeletesAreNamed with the words of the endpoint.
func TestRefusedDeletesAreNamed(t *testing.T) {
	e := newSmall()
	e.answer = func(method string, _ int, body []byte) string {
		if method == rpc.MethodSyncBatch && strings.Contains(string(body), `"operation":"delete"`) {
			return strings.ReplaceAll(refuseAll(body), `"no"`, `"on hold for audit"`)
		}
		return ""
	}
	r := judged(t, e, writeCheck, conformance.Options{Write: true, Objects: []string{"contact"}, SkipConvention: conformance.SkipSuccess})
	require.Len(t, r.Residue.Refused, 3+trialOfSmall)
	require.Contains(t, r.Residue.Refused[0].Reason, "on hold for audit")
	require.Len(t, e.keys("contact"), 3+trialOfSmall)
}

func TestCleanupHook(t *testing.T) {
	e := newSmall()
	e.operations = []string{"upsert"}
	opts := conformance.Options{Write: true, Objects: []string{"contact"}, RunID: "abc", SkipConvention: conformance.SkipSuccess, Hooks: cleanupHook()}

	h := &withCleanup{small: e, reply: `{"ok":true}`}
	r := judged(t, h, writeCheck, opts)
	require.Zero(t, r.Residue.Cleaned, "the hook does nothing, and without a read-back its word is all there is")
	require.Equal(t, 3+trialOfSmall, r.Residue.Unverified)
	require.Empty(t, r.Residue.Refused)
	require.Len(t, h.asked, 1)
	var got struct {
		Hook            string   `json:"hook"`
		Object          string   `json:"object"`
		IdentifierField string   `json:"identifier_field"`
		Identifiers     []string `json:"identifiers"`
	}
	require.NoError(t, json.Unmarshal([]byte(h.asked[0]), &got))
	require.Equal(t, "cleanup", got.Hook)
	require.Equal(t, "contact", got.Object)
	require.Equal(t, "email", got.IdentifierField)
	require.Subset(t, got.Identifiers, writtenKeys)
	require.ElementsMatch(t, e.keys("contact"), got.Identifiers)

	h = &withCleanup{small: e, reply: `{"ok":false,"message":"read only"}`}
	r = judged(t, h, writeCheck, opts)
	require.Zero(t, r.Residue.Cleaned)
	require.Len(t, r.Residue.Refused, 3+trialOfSmall)
	require.Contains(t, r.Residue.Refused[0].Reason, "read only")
}

// killedKey is a key of that run.
func killedKey(name string) string { return "zz-conf-abc-WRI-001-1-" + name }

// killed is the journal of a run that was killed in the middle: two keys were
// acknowledged, one is unknown, one was refused.
func killed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.ndjson")
	j, err := journal.Create(path, journal.Header{Run: "abc", Target: "http://destination.localhost/"})
	require.NoError(t, err)
	raw := func(keys ...string) []json.RawMessage {
		var out []json.RawMessage
		for _, k := range keys {
			out = append(out, values.Quote(killedKey(k)))
		}
		return out
	}
	seq, err := j.Begin("contact", "email", "upsert", raw("a", "b", "c"))
	require.NoError(t, err)
	require.NoError(t, j.Finish(seq, raw("a", "b"), raw("c")))
	_, err = j.Begin("contact", "email", "upsert", raw("d")) // killed here
	require.NoError(t, err)
	require.NoError(t, j.Close())
	return path
}

func TestCleanResumes(t *testing.T) {
	path := killed(t)
	e := newSmall()
	e.stored["contact"] = map[string]rpc.Record{killedKey("a"): {}, killedKey("b"): {}, killedKey("d"): {}, "somebody": {}}
	res, err := Clean(context.Background(), Target{Handler: e}, conformance.Options{Journal: path})
	require.NoError(t, err)
	require.Equal(t, []string{"somebody"}, e.keys("contact"))
	require.Equal(t, 3, res.Cleaned)
	require.Empty(t, res.Refused)
	require.Empty(t, res.Unknown)
	require.Equal(t, path, res.Journal)

	before := len(e.deleted)
	res, err = Clean(context.Background(), Target{Handler: e}, conformance.Options{Journal: path})
	require.NoError(t, err)
	require.Zero(t, res.Cleaned, "a second clean-up has nothing left to do")
	require.Len(t, e.deleted, before)
}

func TestCleanNamesWhatItCannotRemove(t *testing.T) {
	path := killed(t)
	e := newSmall()
	e.operations = []string{"upsert"}
	res, err := Clean(context.Background(), Target{Handler: e}, conformance.Options{Journal: path})
	require.NoError(t, err)
	names := func(list []conformance.Leftover) []string {
		var out []string
		for _, l := range list {
			out = append(out, strings.TrimPrefix(strings.Trim(l.Identifier, `"`), killedKey("")))
		}
		return out
	}
	require.Equal(t, []string{"a", "b"}, names(res.Refused))
	require.Equal(t, []string{"d"}, names(res.Unknown))
	require.Zero(t, res.Cleaned)
	read, err := journal.Read(path)
	require.NoError(t, err)
	require.Len(t, read.Pending(), 4, "the journal still knows them")
}

func TestCleanThroughTheHookAlone(t *testing.T) {
	path := killed(t)
	e := newSmall()
	e.objects = nil // the object is gone from the list
	h := &withCleanup{small: e, reply: `{"ok":true}`}
	res, err := Clean(context.Background(), Target{Handler: h}, conformance.Options{Journal: path, Hooks: cleanupHook()})
	require.NoError(t, err)
	require.Zero(t, res.Cleaned)
	require.Equal(t, 3, res.Unverified)
	require.Len(t, h.asked, 1)
}

func TestCleanMistakes(t *testing.T) {
	_, err := Clean(context.Background(), Target{Handler: newSmall()}, conformance.Options{})
	requireUsage(t, err, "the journal is missing")
	_, err = Clean(context.Background(), Target{Handler: newSmall()}, conformance.Options{Journal: filepath.Join(t.TempDir(), "none")})
	requireUsage(t, err, "none")
	e := newSmall()
	e.objects = nil
	_, err = Clean(context.Background(), Target{Handler: e}, conformance.Options{Journal: killed(t)})
	require.ErrorContains(t, err, "read the objects of the endpoint")
}

// TestDeletingTime: a slow endpoint gets as much time as its speed requires.
func TestDeletingTime(t *testing.T) {
	for _, test := range []struct {
		keys  int
		speed int64
		hook  bool
		want  time.Duration
	}{
		{400, 1000, false, cleanup.CleanUpTime},
		{400, 5, false, 160 * time.Second},
		{400, 5, true, cleanup.CleanUpTime},
		{400, 0, false, cleanup.CleanUpTime},
		{1_000_000, 1, false, cleanup.MostCleanUpTime},
	} {
		s := &session{}
		s.Catalog = &write.Catalog{Speed: &rpc.Speed{MaximumRecordsPerSecond: test.speed}}
		if test.hook {
			s.Opts.Hooks = cleanupHook()
		}
		require.Equal(t, test.want, s.DeletingTime(test.keys), "%+v", test)
	}
	s := &session{}
	s.Catalog = &write.Catalog{}
	require.Equal(t, cleanup.CleanUpTime, s.DeletingTime(400))
}

// TestTheCleanupHookHasItsOwnTime: delete batches that took all of theirs leave it.
func TestTheCleanupHookHasItsOwnTime(t *testing.T) {
	e := &withCleanup{small: newSmall(), reply: `{"ok":true}`}
	opts := writing(e.small)
	opts.RunID, opts.Hooks = "abc", cleanupHook()
	over, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	server := httptest.NewServer(e)
	defer server.Close()
	s := &session{}
	s.Opts, s.Hooks = opts, server.Client()
	s.Opts.Hooks.Cleanup.URL = server.URL + "/cleanup"
	sc := s.Cleanup.NewScenario(over, line.CleanUpCheck, nil)
	g := &cleanup.Cleaning{Name: "contact", Field: "email", Keys: []journal.Key{{Object: "contact", Field: "email", Identifier: values.Quote("a@example.com")}}, Answers: map[string]cleanup.Deletion{}}
	sc.HookKeys(g, g.Keys)
	require.Len(t, e.asked, 1)
	require.True(t, g.Answers["a@example.com"].Acknowledged, "%+v", g.Answers)
}
