package destination

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
)

// empty is a hook that looks where nothing is ever written.
func empty(context.Context, conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
	return conformance.ReadbackReply{Complete: true}, nil
}

// echoes shows every requested key.
func echoes(_ context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
	out := conformance.ReadbackReply{Complete: true}
	for _, raw := range q.Identifiers {
		out.Records = append(out.Records, conformance.ReadbackRecord{Identifier: raw, Count: 1, Fields: map[string]json.RawMessage{}})
	}
	return out, nil
}

// TestLyingHooks: a hook that lies is no evidence against the endpoint. A lie that shows before the
// first write is one problem of the run; one that shows only later is an error of each check that
// needs the hook.
func TestLyingHooks(t *testing.T) {
	cases := []struct {
		name  string
		hook  func(e *small) conformance.ReadbackFunc
		want  string
		later bool
	}{
		{"shows a key that was never used", func(*small) conformance.ReadbackFunc { return echoes }, "which was never used", false},
		{"shows every key once something is there", func(e *small) conformance.ReadbackFunc {
			return func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
				if len(e.keys("contact")) == 0 {
					return empty(ctx, q)
				}
				return echoes(ctx, q)
			}
		}, "which was never used", true},
		{"shows nothing although an update finds the record", func(*small) conformance.ReadbackFunc { return empty }, "which an update found", true},
		{"lists a key twice", func(e *small) conformance.ReadbackFunc {
			return func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
				r, err := e.readback(ctx, q)
				r.Records = append(r.Records, r.Records...)
				return r, err
			}
		}, "for the second time", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := newSmall()
			opts := writing(e)
			opts.ReadbackFunc = c.hook(e)
			r := judged(t, e, healthCheck+writeCheck, opts)
			require.Equal(t, conformance.Unknown, r.Verdict)
			require.Equal(t, 3, r.ExitStatus)
			require.Empty(t, e.keys("contact"), "the records of the hook's own test are cleaned")
			got := resultOf(t, r, "WRI-001")
			require.Empty(t, got.Findings, "the endpoint is not blamed")
			if c.later {
				require.Equal(t, conformance.HarnessError, got.Status)
				require.Contains(t, got.Reason, c.want)
				require.Equal(t, conformance.Pass, resultOf(t, r, "AAA-001").Status, "what needs no hook is judged")
				require.LessOrEqual(t, r.Records, discover.HookRecords+trialOfSmall)
				return
			}
			require.Equal(t, []string{"hook"}, problemKinds(r))
			require.Contains(t, r.Problems[0].Message, c.want)
			require.Equal(t, conformance.NotRun, got.Status)
			batches, _ := e.sent()
			require.Zero(t, batches, "nothing is written")
		})
	}
}

// TestALyingHookDoesNotHideAFailedGate: exit status 1 comes before 3.
func TestALyingHookDoesNotHideAFailedGate(t *testing.T) {
	e := failing(2, 3)
	opts := writing(e)
	opts.ReadbackFunc = func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
		if batches, _ := e.sent(); batches == 0 {
			return empty(ctx, q)
		}
		return echoes(ctx, q)
	}
	r := judged(t, e, healthCheck+writeCheck, opts)
	require.Equal(t, conformance.HarnessError, resultOf(t, r, "WRI-001").Status)
	require.Equal(t, conformance.NonConformant, r.Verdict)
	require.Equal(t, 1, r.ExitStatus)
}

func TestAHookThatTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newSmall()
		never := make(chan struct{})
		both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/readback" {
				<-never
				return
			}
			e.ServeHTTP(w, r)
		})
		r := judged(t, both, writeCheck, conformance.Options{
			Write: true, Objects: []string{"contact"}, Readback: conformance.HookSpec{URL: "http://destination.test/readback"},
			Hooks: conformance.Hooks{Timeout: 3 * time.Second},
		})
		close(never)
		require.Equal(t, []string{"hook"}, problemKinds(r))
		require.Contains(t, r.Problems[0].Message, "no complete answer within 3s")
		require.Equal(t, 3, r.ExitStatus)
	})
}

const faultNote = "the hook itself may be at fault"

// TestUndecidedHooks: where nothing distinguishes a fault of the hook from one of the endpoint, the
// checks judge, and report that the hook may be at fault.
func TestUndecidedHooks(t *testing.T) {
	t.Parallel()
	nothing := func(string, string) bool { return false }
	cases := []struct {
		name   string
		change func(e *small, o *conformance.Options)
		want   conformance.Status
		note   bool
	}{
		{"an empty hook, and no witness", func(e *small, o *conformance.Options) {
			e.operations, o.ReadbackFunc = []string{"upsert"}, empty
		}, conformance.Fail, true},
		{"an empty hook, and updates that create", func(e *small, o *conformance.Options) {
			e.treat = map[string]string{"update": "upsert"}
			o.ReadbackFunc = empty
		}, conformance.Fail, true},
		{"an endpoint that keeps nothing", func(e *small, o *conformance.Options) { e.keep = nothing }, conformance.Fail, true},
		{"an endpoint that keeps no upserts", func(e *small, o *conformance.Options) {
			e.keep = func(op, _ string) bool { return op != "upsert" }
		}, conformance.Fail, false},
		{"an endpoint that keeps no inserts", func(e *small, o *conformance.Options) {
			e.keep = func(op, _ string) bool { return op != "insert" }
		}, conformance.Pass, false},
		{"a hook that lags behind and catches up", func(e *small, o *conformance.Options) {
			var asked atomic.Int64
			o.ReadbackFunc = func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
				if asked.Add(1) < 3 {
					return empty(ctx, q)
				}
				return e.readback(ctx, q)
			}
		}, conformance.Pass, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newSmall()
			opts := writing(e)
			c.change(e, &opts)
			r := judged(t, e, writeCheck, opts)
			got := resultOf(t, r, "WRI-001")
			require.Equal(t, c.want, got.Status, got.Reason)
			require.Equal(t, c.note, strings.Contains(strings.Join(got.Notes, "\n"), faultNote), "%v", got.Notes)
		})
	}
}

// TestHookTestWritesForItsChecksOnly: without a check that queries the hook, the run does not test
// it, and a test that the budget does not allow is no fault of the hook.
func TestHookTestWritesForItsChecksOnly(t *testing.T) {
	e := newSmall()
	opts := writing(e)
	judged(t, e, healthCheck, opts)
	batches, _ := e.sent()
	require.Zero(t, batches)

	opts.MaxRecords = 1
	r := judged(t, e, writeCheck, opts)
	got := resultOf(t, r, "WRI-001")
	require.Equal(t, conformance.NotRun, got.Status, got.Reason)
	require.Equal(t, "--max-records", got.Decider)
}

func TestReadbackWindow(t *testing.T) {
	for _, c := range []struct {
		window time.Duration
		want   conformance.Status
	}{{0, conformance.Fail}, {time.Second, conformance.Fail}, {3 * time.Second, conformance.Pass}} {
		synctest.Test(t, func(t *testing.T) {
			e := newSmall()
			opts := writing(e)
			opts.ReadbackWindow = c.window
			first := map[string]time.Time{} // a key shows two seconds after its first request
			opts.ReadbackFunc = func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
				r, err := e.readback(ctx, q)
				kept := r.Records[:0]
				for _, rec := range r.Records {
					k := string(rec.Identifier)
					if first[k].IsZero() {
						first[k] = time.Now()
					}
					if time.Since(first[k]) >= 2*time.Second {
						kept = append(kept, rec)
					}
				}
				r.Records = kept
				return r, err
			}
			e.operations = []string{"upsert"}
			r := judged(t, e, writeCheck, opts)
			require.Equal(t, c.want, resultOf(t, r, "WRI-001").Status, "window %s", c.window)
		})
	}
}
