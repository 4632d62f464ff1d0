package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/cleanup"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/destsim/rpc"
)

// ignoresDeletes acknowledges every delete and does nothing.
func ignoresDeletes(operations ...string) *small {
	e := newSmall()
	e.operations = operations
	e.treat = map[string]string{"delete": "nothing"}
	e.keep = func(operation, _ string) bool { return operation != "delete" }
	return e
}

// pendingIn lists the keys that a journal still holds.
func pendingIn(t *testing.T, path string) []string {
	t.Helper()
	j, err := journal.Read(path)
	require.NoError(t, err)
	var out []string
	for _, k := range j.Pending() {
		out = append(out, string(k.Identifier))
	}
	return out
}

// TestDeletesThatDoNothing: an acknowledged record that still exists is left behind, in whatever
// way that shows; the journal knows it.
func TestDeletesThatDoNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		e      *small
		change func(e *small, o *conformance.Options)
		why    string
	}{
		{"shown by the read-back", ignoresDeletes("upsert", "mirror"), func(e *small, o *conformance.Options) { o.ReadbackFunc = e.readback },
			"acknowledged the delete, and the read-back still shows it"},
		{"shown as copies", ignoresDeletes("upsert", "mirror"), func(e *small, o *conformance.Options) {
			o.ReadbackFunc = func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
				r, err := e.readback(ctx, q)
				for i := range r.Records {
					r.Records[i].Count = 2
				}
				return r, err
			}
		}, "acknowledged the delete, and the read-back still shows it (2 copies)"},
		{"found by an update", ignoresDeletes("update", "upsert", "mirror"), func(*small, *conformance.Options) {},
			"acknowledged the delete, and an update still finds it"},
		{"found by an update, one record in a batch", ignoresDeletes("update", "upsert", "mirror"), func(e *small, _ *conformance.Options) { e.speed.MaximumBatchSize = 1 },
			"acknowledged the delete, and an update still finds it"},
	} {
		for _, clean := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, clean), func(t *testing.T) {
				e := c.e
				e.stored = map[string]map[string]rpc.Record{}
				path := filepath.Join(t.TempDir(), "run.ndjson")
				opts := conformance.Options{Write: true, Objects: []string{"contact"}, RunID: "abc", Journal: path, RequireClean: clean}
				c.change(e, &opts)
				r := judged(t, e, healthCheck+writeCheck, opts)
				require.NotEmpty(t, r.Residue.Refused)
				for _, l := range r.Residue.Refused {
					require.Equal(t, c.why, l.Reason)
				}
				require.Len(t, r.Residue.Refused, len(e.keys("contact")), "every row that is there is named")
				require.Zero(t, r.Residue.Unverified)
				require.Contains(t, r.Summary, fmt.Sprintf("%d records left behind", len(r.Residue.Refused)))
				require.Len(t, pendingIn(t, path), len(r.Residue.Refused), "the journal stays")
				if clean {
					require.Equal(t, 5, r.ExitStatus, r.Summary)
					require.Contains(t, problemKinds(r), "residue")
				}
				for _, a := range e.arrivals {
					require.LessOrEqual(t, int64(a.records), e.speed.MaximumBatchSize, "clean-up keeps the size of batches")
				}
			})
		}
	}
}

// TestACleanupHookThatLies is held to what the read-back shows.
func TestACleanupHookThatLies(t *testing.T) {
	e := newSmall()
	e.operations = []string{"upsert"}
	opts := writing(e)
	opts.Hooks, opts.RequireClean = cleanupHook(), true
	r := judged(t, &withCleanup{small: e, reply: `{"ok":true}`}, writeCheck, opts)
	require.Len(t, r.Residue.Refused, len(e.keys("contact")))
	require.Equal(t, "the cleanup hook said that it is gone, and the read-back still shows it", r.Residue.Refused[0].Reason)
	require.Equal(t, 5, r.ExitStatus)
}

// TestDeletesByAcknowledgementOnly: where nothing shows the end of records, it is
// not claimed, and --require-clean is not met.
func TestDeletesByAcknowledgementOnly(t *testing.T) {
	t.Parallel()
	fails := func(after int) func(e *small) conformance.ReadbackFunc {
		return func(e *small) conformance.ReadbackFunc {
			asked := 0
			return func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
				if asked++; asked > after {
					return conformance.ReadbackReply{}, errors.New("the replica is gone")
				}
				return e.readback(ctx, q)
			}
		}
	}
	for _, c := range []struct {
		name       string
		operations []string
		change     func(e *small, o *conformance.Options)
		why        string
	}{
		{"nothing shows it", []string{"upsert", "mirror"}, func(*small, *conformance.Options) {}, "give a read-back hook (--readback-url or --readback-command)"},
		{"skips cannot be seen", []string{"update", "upsert", "mirror"}, func(_ *small, o *conformance.Options) { o.SkipConvention = conformance.SkipSuccess }, "give a read-back hook"},
		{"updates that create", []string{"update", "upsert", "mirror"}, func(e *small, _ *conformance.Options) {
			e.treat = map[string]string{"update": "upsert"}
		}, "give a read-back hook"},
		{"updates that are all refused", []string{"update", "upsert", "mirror"}, func(e *small, _ *conformance.Options) { e.answer = refusesUpdates("no updates today") }, "give a read-back hook"},
		{"a read-back that shows nothing", []string{"upsert", "mirror"}, func(_ *small, o *conformance.Options) { o.ReadbackFunc = empty }, `has shown no record of "contact"`},
		{"a read-back that fails at the end", []string{"upsert", "mirror"}, func(e *small, o *conformance.Options) { o.ReadbackFunc = fails(5)(e) }, "the read-back hook failed: the replica is gone"},
		{"a read-back that fails in the middle", []string{"upsert", "mirror"}, func(e *small, o *conformance.Options) { o.ReadbackFunc = fails(2)(e) }, "failed its own test"},
	} {
		for _, clean := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, clean), func(t *testing.T) {
				e := newSmall()
				e.operations = c.operations
				path := filepath.Join(t.TempDir(), "run.ndjson")
				opts := conformance.Options{Write: true, Objects: []string{"contact"}, RunID: "abc", Journal: path, RequireClean: clean}
				c.change(e, &opts)
				r := judged(t, e, healthCheck+writeCheck, opts)
				require.Positive(t, r.Residue.Unverified)
				require.Contains(t, r.Residue.UnverifiedReason, c.why)
				require.Zero(t, r.Residue.Cleaned)
				require.Contains(t, r.Summary, fmt.Sprintf("%d records deleted by acknowledgement only (not verified)", r.Residue.Unverified))
				require.NotContains(t, r.Summary, "left behind")
				require.Len(t, slices.DeleteFunc(pendingIn(t, path), func(key string) bool { return strings.Contains(key, "CLEAN") }),
					r.Residue.Unverified, "the journal stays")
				if clean {
					require.Contains(t, problemKinds(r), "residue")
				} else {
					require.NotContains(t, problemKinds(r), "residue")
				}
			})
		}
	}
}

// refusesUpdates answers every update with a failure of each record.
func refusesUpdates(why string) func(string, int, []byte) string {
	return func(method string, _ int, body []byte) string {
		if method == rpc.MethodSyncBatch && strings.Contains(string(body), `"operation":"update"`) {
			return strings.ReplaceAll(refuseAll(body), `"no"`, encoded(why))
		}
		return ""
	}
}

// twoProcesses takes turns between two endpoints that share no memory.
type twoProcesses struct {
	turn  atomic.Int64
	parts [2]*small
}

func (p *twoProcesses) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.parts[p.turn.Add(1)%2].ServeHTTP(w, r)
}

// TestTwoProcessesAreNotVerified: an update that denies a record which was acknowledged shows
// nothing of the end of records.
func TestTwoProcessesAreNotVerified(t *testing.T) {
	t.Parallel()
	p := &twoProcesses{parts: [2]*small{newSmall(), newSmall()}}
	path := filepath.Join(t.TempDir(), "run.ndjson")
	r, err := Run(context.Background(), Target{Handler: p}, conformance.Options{
		Write: true, Objects: []string{"contact"}, RunID: "abc", Journal: path, Serial: true, Select: []string{"SEM-*"},
	})
	require.NoError(t, err)
	left := len(p.parts[0].keys("contact")) + len(p.parts[1].keys("contact"))
	require.Positive(t, left)
	require.Zero(t, r.Residue.Cleaned)
	require.GreaterOrEqual(t, r.Residue.Unverified, left)
	require.Contains(t, r.Summary, "deleted by acknowledgement only (not verified)")
	require.GreaterOrEqual(t, len(pendingIn(t, path)), left, "the journal stays")
}

// TestCleanIsSaidWhenItIsSeen: by the read-back, and by a witness without one.
func TestCleanIsSaidWhenItIsSeen(t *testing.T) {
	for by, change := range map[string]func(e *small, o *conformance.Options){
		cleanup.ByReadback: func(e *small, o *conformance.Options) { o.ReadbackFunc = e.readback },
		cleanup.ByWitness:  func(*small, *conformance.Options) {},
	} {
		e := newSmall()
		opts := conformance.Options{Write: true, Objects: []string{"contact"}, RequireClean: true, Journal: filepath.Join(t.TempDir(), "run.ndjson")}
		change(e, &opts)
		r := judged(t, e, healthCheck+writeCheck, opts)
		require.Zero(t, r.ExitStatus, "%s: %v", by, r.Problems)
		require.Equal(t, []string{by}, r.Residue.VerifiedBy)
		require.Positive(t, r.Residue.Cleaned)
		require.Zero(t, r.Residue.Unverified)
		require.Empty(t, e.keys("contact"))
		require.Contains(t, r.Summary, "0 records left behind")
		require.Empty(t, pendingIn(t, opts.Journal))
	}
}

// TestAWitnessThatChangesItsWords: after the deletion every update fails for another reason, which
// is no evidence of what exists.
func TestAWitnessThatChangesItsWords(t *testing.T) {
	e := newSmall()
	deleted := false
	locked := refusesUpdates("database is locked")
	e.answer = func(method string, nth int, body []byte) string {
		deleted = deleted || strings.Contains(string(body), `"operation":"delete"`)
		if deleted {
			return locked(method, nth, body)
		}
		return ""
	}
	r := judged(t, e, healthCheck+writeCheck, conformance.Options{Write: true, Objects: []string{"contact"}})
	require.Equal(t, 3+trialOfSmall, r.Residue.Unverified)
	require.Contains(t, r.Residue.UnverifiedReason, "not answered as before")
}

// TestTheReadbackCorrectsTheAnswers, in both directions.
func TestTheReadbackCorrectsTheAnswers(t *testing.T) {
	// Deletes that are refused, since the records are gone already.
	e := newSmall()
	e.operations = []string{"upsert", "mirror"}
	e.answer = func(method string, _ int, body []byte) string {
		if method == rpc.MethodSyncBatch && strings.Contains(string(body), `"operation":"delete"`) {
			e.mu.Lock()
			defer e.mu.Unlock()
			clear(e.stored["contact"])
			return strings.ReplaceAll(refuseAll(body), `"no"`, `"not found"`)
		}
		return ""
	}
	opts := writing(e)
	opts.RequireClean = true
	r := judged(t, e, healthCheck+writeCheck, opts)
	require.Zero(t, r.ExitStatus, "%v %v", r.Problems, r.Residue)
	require.Positive(t, r.Residue.Cleaned)
	require.Empty(t, r.Residue.Refused)

	// Writes that are refused and stored.
	e = newSmall()
	e.operations = []string{"upsert"}
	e.answer = func(method string, _ int, body []byte) string {
		if method == rpc.MethodSyncBatch && strings.Contains(string(body), "WRI-001") {
			var req struct{ Params json.RawMessage }
			require.NoError(t, json.Unmarshal(body, &req))
			e.batch(req.Params)
			return refuseAll(body)
		}
		return ""
	}
	r = judged(t, e, healthCheck+writeCheck, writing(e))
	require.Len(t, r.Residue.Refused, len(e.keys("contact")))
	said := ""
	for _, l := range r.Residue.Refused {
		said += l.Reason + "\n"
	}
	require.Contains(t, said, "refused to write it, and the read-back still shows it")
}

// TestCleanVerifies: a separate clean-up looks before and after.
func TestCleanVerifies(t *testing.T) {
	path := killed(t)
	e := ignoresDeletes("upsert", "mirror")
	e.stored["contact"] = map[string]rpc.Record{killedKey("a"): {}, killedKey("b"): {}, killedKey("d"): {}, "other": {}}
	res, err := Clean(context.Background(), Target{Handler: e}, conformance.Options{Journal: path})
	require.NoError(t, err)
	require.Equal(t, 3, res.Unverified)
	require.Len(t, pendingIn(t, path), 3, "all but the one that was refused")

	res, err = Clean(context.Background(), Target{Handler: e}, conformance.Options{Journal: path, ReadbackFunc: e.readback})
	require.NoError(t, err)
	require.Zero(t, res.Cleaned)
	require.Len(t, res.Refused, 3, "what the read-back shows is known, whatever was answered")
	require.Equal(t, "acknowledged the delete, and the read-back still shows it", res.Refused[0].Reason)

	e.treat, e.keep = nil, nil
	res, err = Clean(context.Background(), Target{Handler: e}, conformance.Options{Journal: path, ReadbackFunc: e.readback})
	require.NoError(t, err)
	require.Equal(t, 3, res.Cleaned)
	require.Equal(t, []string{cleanup.ByReadback}, res.VerifiedBy)
	require.Equal(t, []string{"other"}, e.keys("contact"))
	require.Empty(t, pendingIn(t, path))
}

// deletesOnePage does the first ten deletes of a batch and acknowledges all.
type deletesOnePage struct{ *refuser }

func (h deletesOnePage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var call struct {
		ID     string          `json:"id"`
		Params rpc.BatchParams `json:"params"`
	}
	if err := json.Unmarshal(body, &call); err == nil && call.Params.SyncPlan.Operation == "delete" && len(call.Params.Records) > 10 {
		var results []rpc.RecordResult
		for _, record := range call.Params.Records {
			results = append(results, rpc.RecordResult{Identifier: record["email"], Success: true})
		}
		answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": call.ID, "result": map[string]any{"record_results": results}})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.refuser.ServeHTTP(w, r)
}

// TestDeletesOfLargeBatches: a leftover that the clean-up sees is a finding of the check about
// deletes, also where its own small batch was deleted.
func TestDeletesOfLargeBatches(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{true, false} {
		e := newRefuser(func(attempt) string { return "" })
		var h http.Handler = e
		if !whole {
			h = deletesOnePage{e}
		}
		r, err := Run(context.Background(), Target{Handler: h, Token: scriptToken}, conformance.Options{
			Write: true, Objects: e.objects, Select: []string{"SEM-009", "RES-004", "SEM-010"}, Seed: 7, RunID: scriptRun, ReadbackFunc: e.readback,
		})
		require.NoError(t, err)
		got := resultOf(t, r, "SEM-009")
		if whole {
			require.Equal(t, conformance.Pass, got.Status, got.Reason)
			require.Empty(t, r.Residue.Refused)
			continue
		}
		require.Equal(t, conformance.Fail, got.Status, foundBy(r))
		require.Contains(t, got.Findings[0].Actual, "the read-back still shows it")
		require.Contains(t, got.Findings[0].Cause, "could be the size of the batches")
		require.NotEmpty(t, got.Findings[0].Exchanges, "the delete that was acknowledged is shown")
		require.Equal(t, 1, r.ExitStatus)
	}
}
