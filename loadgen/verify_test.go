package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// verified is a short load whose records are all read back.
func verified(url string) Options {
	o := against(url)
	o.Verify = &Verify{Hook: HookSpec{URL: url + "_control/readback"}, Share: 1}
	return o
}

// behind puts a handler of batches before a simulator: it gets the records and answers
// with success for all of them, whatever it forwards.
func behind(t *testing.T, forward func(records []json.RawMessage) []json.RawMessage) string {
	t.Helper()
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var call struct {
			Method string          `json:"method"`
			ID     json.RawMessage `json:"id"`
			Params struct {
				Plan    json.RawMessage   `json:"sync_plan"`
				Records []json.RawMessage `json:"records"`
			} `json:"params"`
		}
		if json.Unmarshal(body, &call) != nil || call.Method != rpc.MethodSyncBatch {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			sim.ServeHTTP(w, r)
			return
		}
		var results []rpc.RecordResult
		for _, text := range call.Params.Records {
			var record map[string]json.RawMessage
			_ = json.Unmarshal(text, &record)
			results = append(results, rpc.RecordResult{Identifier: record["email"], Success: true})
		}
		if kept := forward(call.Params.Records); len(kept) > 0 {
			inner, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": call.ID, "method": call.Method, "params": map[string]any{"sync_plan": call.Params.Plan, "records": kept}})
			if err != nil {
				return
			}
			again := r.Clone(r.Context())
			again.Body, again.ContentLength = io.NopCloser(strings.NewReader(string(inner))), int64(len(inner))
			sim.ServeHTTP(httptest.NewRecorder(), again)
		}
		w.Header().Set("Content-Type", "application/json")
		result, _ := json.Marshal(rpc.BatchResult{RecordResults: results})
		_, _ = w.Write(rpc.AppendResponse(nil, call.ID, result))
	}))
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	return server.URL + "/"
}

func TestVerifyOfWhatIsThere(t *testing.T) {
	url := simulator(t, destsim.Config{})
	mixes := map[string]func(*Options){
		"upserts":     func(*Options) {},
		"one a batch": func(o *Options) { o.Work.BatchSize = 1; o.Count = 200 },
		"two objects": func(o *Options) {
			o.Work.Objects = []Share{{Name: "contact"}, {Name: "order", Weight: 2}}
			o.Count = 60
		},
		"repeats": func(o *Options) { o.Work.Repeats, o.Count = 0.5, 300 },
		"mix": func(o *Options) {
			o.Work.Operations, o.Count = []Share{{"upsert", 3}, {"update", 3}, {"delete", 1}}, 300
		},
		"mix, repeats": func(o *Options) {
			o.Work.Operations, o.Count, o.Work.Repeats = []Share{{"upsert", 3}, {"update", 3}, {"delete", 1}}, 300, 0.3
		},
		"updates": func(o *Options) {
			o.Work.Operations, o.Work.Prime, o.Count = []Share{{Name: "update"}}, 40, 500
			o.Connections = 8
		},
		"updates and deletes": func(o *Options) {
			o.Work.Operations, o.Work.Prime, o.Count, o.Connections = []Share{{"update", 20}, {"delete", 1}}, 400, 200, 8
		},
		"warm-up":  func(o *Options) { o.WarmUp = 50 * time.Millisecond },
		"template": func(o *Options) { o.Work.Template = []byte(`{"last_name":"{{words}}"}`) },
		"standard": func(o *Options) { o.Transport.Standard = true },
	}
	for name, change := range mixes {
		t.Run(name, func(t *testing.T) {
			o := verified(url)
			o.Seed, o.RunID = 0, ""
			change(&o)
			r, err := Run(context.Background(), o)
			require.NoError(t, err)
			v := r.Verification
			require.NotNil(t, v)
			if name != "updates and deletes" { // where an update comes after the delete of another connection, and is refused
				require.Empty(t, r.ErrorMessages)
			}
			require.Zero(t, v.Findings(), "%v", r.ErrorMessages)
			require.EqualValues(t, 1, v.Share)
			require.Positive(t, v.Verified)
			require.Equal(t, v.Chosen, v.Verified+missed(v))
			if o.Work.Repeats == 0 { // else a key gives way to one that was used before
				require.Equal(t, v.Keys, v.Chosen, "every key was acknowledged")
			}
			for _, u := range v.Unverified {
				require.Contains(t, []string{whyRaced, whyRefused}, u.Reason)
			}
		})
	}
}

func TestVerifyFindsOneOfTenThousand(t *testing.T) {
	matrixtest.Long(t)
	var seen atomic.Int64
	url := behind(t, func(records []json.RawMessage) (kept []json.RawMessage) {
		for _, r := range records {
			if seen.Add(1)%10_000 != 0 {
				kept = append(kept, r)
			}
		}
		return kept
	})
	o := verified(url)
	o.Work.BatchSize, o.Count = 1000, 12
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.EqualValues(t, 12_000, r.Acknowledged)
	require.EqualValues(t, 12_000, r.Verification.Verified)
	require.EqualValues(t, 1, r.Verification.Lost)
	require.EqualValues(t, 1, r.Errors)
	require.Equal(t, map[string]int64{wire.KindLost: 1}, r.ErrorsByKind)
	limit, err := ParseThreshold("lost>0")
	require.NoError(t, err)
	limit.Check(r)
	require.True(t, limit.Failed)
}

func TestVerifyOfAnEndpointThatStoresNothing(t *testing.T) {
	url := behind(t, func([]json.RawMessage) []json.RawMessage { return nil })
	o := verified(url)
	o.Verify.Share = 0
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.EqualValues(t, 100, r.Acknowledged)
	require.EqualValues(t, 100, r.Errors)
	require.EqualValues(t, 100, r.Verification.Lost)
	require.Contains(t, strings.Join(r.Notes, "\n"), "the read-back hook shows not one of 100 acknowledged records")
}

func TestVerifyFindsWhatIsWrong(t *testing.T) {
	answer := func(change func(*hook.ReadbackReply)) hook.Readback {
		url := ""
		return func(ctx context.Context, q hook.ReadbackRequest) (hook.ReadbackReply, error) {
			url = ctx.Value(urlKey{}).(string)
			reply, err := HookSpec{URL: url + "_control/readback"}.Readback(nil, 0)(ctx, q)
			change(&reply)
			return reply, err
		}
	}
	cases := map[string]struct {
		change func(*hook.ReadbackReply)
		kind   string
		want   string
	}{
		"doubled": {func(r *hook.ReadbackReply) {
			for i := range r.Records {
				r.Records[i].Count = 2
			}
		}, wire.KindDoubled, "stored 2 times"},
		"missing field": {func(r *hook.ReadbackReply) {
			for i := range r.Records {
				delete(r.Records[i].Fields, "last_name")
			}
		}, wire.KindWrong, "another value of last_name"},
		"other type": {func(r *hook.ReadbackReply) {
			for i := range r.Records {
				r.Records[i].Fields["last_name"] = json.RawMessage("5")
			}
		}, wire.KindWrong, "another value of last_name"},
		"lost": {func(r *hook.ReadbackReply) { r.Records = r.Records[:0] }, wire.KindLost, "is not there"},
	}
	url := simulator(t, destsim.Config{})
	ctx := context.WithValue(context.Background(), urlKey{}, url)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := verified(url)
			o.Seed = 0
			o.Verify = &Verify{Func: answer(c.change), Share: 1}
			r, err := Run(ctx, o)
			require.NoError(t, err)
			require.Equal(t, map[string]int64{c.kind: 100}, r.ErrorsByKind)
			require.EqualValues(t, 100, r.Errors)
			require.Len(t, r.ErrorMessages, 1)
			require.Contains(t, r.ErrorMessages[0].Message, c.want)
			require.NotEmpty(t, r.ErrorMessages[0].Example.Identifier)
			require.Equal(t, c.kind == wire.KindWrong, r.ErrorMessages[0].Example.Detail != "")
		})
	}
}

type urlKey struct{}

func TestVerifySaysWhatItCannotKnow(t *testing.T) {
	url := simulator(t, destsim.Config{})
	arm(t, url, `{"kind":"record_failure","message":"no room for it","when":{"method":"sync_batch","every":5},"records":1}`)
	o := verified(url)
	o.Work.Operations, o.Count = []Share{{"upsert", 1}, {"update", 3}}, 200
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Positive(t, r.Errors)
	require.Zero(t, r.Verification.Findings())
	require.Positive(t, missed(r.Verification))
	require.Equal(t, r.Verification.Chosen, r.Verification.Verified+missed(r.Verification))
	require.Equal(t, whyRefused, r.Verification.Unverified[0].Reason)
}

// missed counts the chosen keys that could not be verified.
func missed(v *Verification) (n int64) {
	for _, u := range v.Unverified {
		n += u.Count
	}
	return n
}

func TestVerifyWithAHookThatFails(t *testing.T) {
	url := simulator(t, destsim.Config{})
	asked := 0
	o := verified(url)
	o.Work.BatchSize, o.Count = 1000, 10
	o.Verify = &Verify{Share: 1, Func: func(context.Context, hook.ReadbackRequest) (hook.ReadbackReply, error) {
		if asked++; asked == 1 {
			return hook.ReadbackReply{Complete: true}, nil
		}
		return hook.ReadbackReply{}, errors.New("the database is away")
	}}
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Verification.Verified)
	require.EqualValues(t, 10_000, missed(r.Verification))
	require.Equal(t, "the database is away", r.Verification.Unverified[0].Reason)
	require.Equal(t, 1+2*mostFailures, asked, "it is not asked for ever")

	o = verified(url)
	o.Verify.Hook.URL = url + "nothing"
	_, err = Run(context.Background(), o)
	require.ErrorContains(t, err, "nothing was written")

	o.Verify = &Verify{Func: func(_ context.Context, q hook.ReadbackRequest) (hook.ReadbackReply, error) {
		return hook.ReadbackReply{Complete: true, Records: []hook.ReadbackRecord{{Identifier: q.Identifiers[0], Count: 1}}}, nil
	}}
	_, err = Run(context.Background(), o)
	require.ErrorContains(t, err, "which was never used")
}

func TestVerifyWaitsForTheWindow(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := verified(url)
	asked := 0
	o.Verify = &Verify{Share: 1, Window: time.Hour, Func: func(ctx context.Context, q hook.ReadbackRequest) (hook.ReadbackReply, error) {
		if asked++; asked < 4 {
			return hook.ReadbackReply{Complete: true}, nil
		}
		return HookSpec{URL: url + "_control/readback"}.Readback(nil, 0)(ctx, q)
	}}
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Errors)
	require.EqualValues(t, 100, r.Verification.Verified)
}

func TestAcksStayWithinTheirMemory(t *testing.T) {
	url := simulator(t, destsim.Config{})
	s, err := newSession(context.Background(), verified(url))
	require.NoError(t, err)
	defer s.e.close()
	log := s.e.acks
	log.most = 64 << 10
	log.next.Store(log.most)
	w := s.e.newWorker(0)
	task := s.e.plan.tasks[0]
	for range 20_000 {
		b, _, ok := w.prepare(task)
		require.True(t, ok)
		w.acknowledge(task, b, 1, 2, false)
	}
	require.Less(t, log.used.Load(), 3*log.most)
	require.Less(t, log.share(), 0.1)
	all := s.e.remembers()
	require.Empty(t, all, "a connection of the run alone remembers")
	s.e.workers = append(s.e.workers, w)
}

// TestWhatOverlapsMayBeLast: of writes that were under way at the same time each can be
// the last, and one that was sent after the reply to another one replaces it.
func TestWhatOverlapsMayBeLast(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := verified(url)
	o.Work.Operations = []Share{{Name: "upsert"}, {Name: "delete"}}
	s, err := newSession(context.Background(), o)
	require.NoError(t, err)
	defer s.e.close()
	upsert, remove := s.e.plan.tasks[0], s.e.plan.tasks[1]
	at := func(t *task, row int, start, end int64, state records.State) write {
		return write{a: &ack{start: start, end: end, state: state}, task: t, key: 7, row: row}
	}
	name := func(row int) string { return string(write{task: upsert, row: row, key: 7}.members()["last_name"]) }
	expectOf := func(writes ...write) (*expected, string) { return expect(s.e.plan.grounds[0], writes) }

	x, why := expectOf(at(upsert, 1, 0, 10, records.Acked), at(upsert, 2, 10, 20, records.Acked))
	require.Empty(t, why)
	require.Equal(t, s.e.plan.keys.Text(7), strings.Trim(string(x.key), `"`))
	require.Equal(t, []string{name(2)}, texts(x.fields["last_name"].any), "the second was sent after the reply to the first")
	x, _ = expectOf(at(upsert, 1, 0, 10, records.Acked), at(upsert, 2, 9, 20, records.Acked), at(upsert, 3, 5, 8, records.Acked))
	require.Equal(t, []string{name(1), name(2)}, texts(x.fields["last_name"].any))
	x, why = expectOf(at(upsert, 1, 0, 10, records.Acked), at(remove, 1, 11, 12, records.Acked))
	require.Empty(t, why)
	require.True(t, x.absent)
	_, why = expectOf(at(upsert, 1, 0, 10, records.Acked), at(remove, 1, 9, 12, records.Acked))
	require.Equal(t, whyRaced, why)
	_, why = expectOf(at(upsert, 1, 0, 10, records.Acked), at(upsert, 1, 11, 12, records.Unknown))
	require.Equal(t, whyUnknown, why)
	_, why = expectOf(at(upsert, 1, 0, 10, records.Acked), at(remove, 1, 11, 12, records.Refused))
	require.Equal(t, whyRefused, why)
}

func texts(values []json.RawMessage) (list []string) {
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// TestAWrongReadbackURLIsNamed as such, and not as the URL of the endpoint.
func TestAWrongReadbackURLIsNamed(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no route for "+r.URL.Path, http.StatusNotFound)
	}))
	t.Cleanup(hook.Close)
	o := verified(simulator(t, destsim.Config{}))
	o.Verify.Hook.URL = hook.URL + "/mistaken-readback-path"
	_, err := Run(context.Background(), o)
	require.ErrorContains(t, err, "no route for $DESTKIT_READBACK_URL_PATH")
	require.NotContains(t, err.Error(), "mistaken")
}
