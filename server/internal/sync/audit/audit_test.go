package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// rowsOf is a source of the columns id and name, in no order.
type rowsOf [][2]string

// Rows implements source.Reader.
func (r rowsOf) Rows(_ context.Context, _ source.Object, columns, _ []string) (source.Rows, error) {
	return &given{rows: r, columns: columns}, nil
}

type given struct {
	rows    rowsOf
	columns []string
}

// Next implements source.Rows.
func (g *given) Next() (row [][]byte, err error) {
	if len(g.rows) == 0 {
		return nil, io.EOF
	}
	for _, column := range g.columns {
		row = append(row, []byte(g.rows[0][map[string]int{"id": 0, "name": 1}[column]]))
	}
	g.rows = g.rows[1:]
	return row, nil
}

// Close implements source.Rows.
func (g *given) Close() error { return nil }

// world is what an audit looks at, made by hand.
type world struct {
	t      testing.TB
	config api.SyncConfig
	books  *ledger.Sync
	source rowsOf
	stored map[string][]string // by key: the names of each copy
	runs   []api.SyncRun
}

func newWorld(t testing.TB, operation string) *world {
	l, err := ledger.Open(ledger.Options{})
	require.NoError(t, err)
	w := &world{t: t, books: l.Sync(1), stored: map[string][]string{}}
	w.config = api.SyncConfig{Operation: operation, DestinationAttributes: api.DestinationAttributes{ConnectionID: 1, Object: "person"}, Mappings: []api.Mapping{
		{From: api.MappingFrom{Type: api.FromColumn, Data: api.Raw("id")}, To: "id", IsPrimaryIdentifier: true},
		{From: api.MappingFrom{Type: api.FromColumn, Data: api.Raw("name")}, To: "name"},
	}}
	return w
}

// ran writes a run down: its verdicts, and counters that are right.
func (w *world) ran(status string, source, invalid int64, batches ...ledger.Batch) {
	w.t.Helper()
	id := int64(len(w.runs) + 1)
	log, err := w.books.Begin(id, ledger.Meta{})
	require.NoError(w.t, err)
	for _, b := range batches {
		require.NoError(w.t, log.Append(b))
	}
	require.NoError(w.t, log.Finish(ledger.Meta{}))
	c := log.Counters()
	deletes, processed, updates := int64(0), c.Updated+c.Failed, int64(0)
	last := map[string]bool{}
	for _, b := range batches {
		for _, r := range b.Records {
			last[string(r.Key)] = r.Delete
		}
	}
	for _, deleted := range last {
		if deleted {
			deletes++
		}
	}
	updates = processed - deletes
	w.runs = append(w.runs, api.SyncRun{
		ID: id, Status: status, RecordsUpdated: &c.Updated, RecordsFailed: &c.Failed, RecordsProcessed: &processed, RecordsInvalid: &c.Invalid,
		SourceRecordCount: &source, SourceRecordInvalids: &invalid, SourceRecordUpdates: &updates, SourceRecordDeletes: &deletes,
	})
}

// job is the audit of this world; list reads the destination as a whole.
func (w *world) job(list bool) Job {
	w.t.Helper()
	object := &api.DestinationObject{FullName: "person", Fields: []api.DestinationField{
		{FullName: "id", Type: rpc.TypeInteger, Createable: true, Updateable: true}, {FullName: "name", Type: rpc.TypeString, Createable: true, Updateable: true},
	}}
	plan, problems := mapping.Compile(w.config, object, []api.Column{{Name: "id", Kind: api.KindInteger}, {Name: "name", Kind: api.KindString}}, mapping.Env{DestinationType: api.TypeCustomAPI})
	require.Empty(w.t, problems)
	fields := func(key, name string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"id": json.RawMessage(key), "name": rawjson.AppendString(nil, name)}
	}
	j := Job{Sync: 1, Config: w.config, Plan: plan, Ledger: w.books, Runs: w.runs, Source: w.source, Limit: 1 << 20, Scratch: w.t.TempDir()}
	if list {
		j.Destination.List = func(_ context.Context, fn func(map[string]json.RawMessage) error) error {
			for key, copies := range w.stored {
				for _, name := range copies {
					if err := fn(fields(key, name)); err != nil {
						return err
					}
				}
			}
			return nil
		}
		return j
	}
	j.Destination.Lookup = func(_ context.Context, identifiers [][]byte) (found []Stored, err error) {
		require.LessOrEqual(w.t, len(identifiers), LookupSize)
		for _, key := range identifiers {
			if copies := w.stored[string(key)]; len(copies) > 0 {
				found = append(found, Stored{Identifier: key, Count: int64(len(copies)), Fields: fields(string(key), copies[0])})
			}
		}
		return found, nil
	}
	return j
}

// record is a verdict on "name of key", or on a delete.
func record(key string, verdict ledger.Verdict, deleted bool) ledger.Record {
	r := ledger.Record{Key: []byte(key), Verdict: verdict, Delete: deleted, Print: ledger.Fingerprint{1}}
	if r.Payload = fmt.Appendf(nil, `{"id":%s,"name":"name %s"}`, key, key); deleted {
		r.Payload, r.Print = fmt.Appendf(nil, `{"id":%s}`, key), ledger.Fingerprint{}
	}
	if verdict == ledger.Rejected {
		r.Message = "no"
	}
	return r
}

// under is the note of a record that is about to be sent.
func under(key string, deleted bool) ledger.Record {
	return ledger.Record{Key: []byte(key), Verdict: ledger.Rejected, Message: executor.InDoubt, Delete: deleted}
}

// TestAuditOfAnyWorld makes worlds out of thousands of records, each with its own
// history, and the audit names every false claim among them and no other.
func TestAuditOfAnyWorld(t *testing.T) {
	const ack, no = ledger.Acknowledged, ledger.Rejected
	type story struct {
		name   string // in the source; "" it has none
		before []ledger.Record
		last   []ledger.Record // of the last run
		stored []string
		want   string
	}
	stories := func(key string) []story {
		name := "name " + key
		sent, gone := record(key, ack, false), record(key, ack, true)
		return []story{
			{name, []ledger.Record{under(key, false), sent}, nil, []string{name}, ""},
			{name, nil, []ledger.Record{under(key, false), record(key, no, false), sent}, []string{name}, ""},
			{name, nil, []ledger.Record{sent}, nil, Lost},
			{name, []ledger.Record{sent}, nil, nil, Lost},
			{name, []ledger.Record{sent}, nil, []string{"other"}, Changed},
			{"new " + key, []ledger.Record{sent}, nil, []string{name}, Changed}, // the source has another one
			{name, nil, []ledger.Record{sent}, []string{name, name}, Duplicate},
			{name, nil, []ledger.Record{under(key, false), record(key, no, false)}, nil, Refused},
			{name, nil, []ledger.Record{under(key, false), record(key, no, false)}, []string{name}, Unacknowledged},
			{name, nil, []ledger.Record{under(key, false)}, []string{name}, Unacknowledged},
			{name, []ledger.Record{sent}, []ledger.Record{under(key, false)}, []string{"who knows"}, Unacknowledged},
			{name, nil, []ledger.Record{record(key, no, false)}, []string{"foreign"}, Refused}, // it met a foreign record
			{name, nil, nil, nil, Missing},
			{"", []ledger.Record{sent}, []ledger.Record{under(key, true), gone}, nil, ""},
			{"", []ledger.Record{sent}, []ledger.Record{gone}, []string{name}, Leftover},
			{"", []ledger.Record{sent}, nil, []string{name}, Leftover},
			{"", []ledger.Record{sent}, []ledger.Record{record(key, no, true)}, []string{name}, Refused},
			{"", []ledger.Record{sent}, []ledger.Record{under(key, true)}, nil, Unacknowledged},
			{name, []ledger.Record{sent, gone}, []ledger.Record{sent}, []string{name}, ""},
			{name, []ledger.Record{gone}, []ledger.Record{under(key, false)}, []string{name}, Unacknowledged},
		}
	}
	records := 3000 // several pages of look-ups
	if testing.Short() {
		records = LookupSize + 1
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, list := range []bool{false, true} {
		w, want := newWorld(t, api.OperationMirror), map[string]string{}
		var before, last []ledger.Batch
		spread := func(into *[]ledger.Batch, records []ledger.Record) {
			for i, r := range records { // a batch for each step of a story
				for len(*into) <= i {
					*into = append(*into, ledger.Batch{Operation: rpc.OperationUpsert, StartedAt: time.Unix(1, 0), CompletedAt: time.Unix(2, 0)})
				}
				(*into)[i].Records = append((*into)[i].Records, r)
			}
		}
		for i := range records {
			key := fmt.Sprint(100_000 + i)
			all := stories(key)
			s := all[random.IntN(len(all))]
			if s.name != "" {
				w.source = append(w.source, [2]string{key, string(rawjson.AppendString(nil, s.name))})
			}
			spread(&before, s.before)
			spread(&last, s.last)
			w.stored[key] = s.stored
			if s.want != "" {
				want[key] = s.want
			}
		}
		w.source = append(w.source, [2]string{"null", `"nobody"`}, [2]string{"7", `"twin"`}, [2]string{"7", `"twin"`})
		random.Shuffle(len(w.source), func(i, j int) { w.source[i], w.source[j] = w.source[j], w.source[i] })
		w.ran(api.RunCompleted, 0, 0, before...)
		w.ran(api.RunCompleted, int64(len(w.source)), 3, append(last, ledger.Batch{Operation: rpc.OperationUpsert, Skipped: 3})...)
		report, err := Audit(t.Context(), w.job(list))
		require.NoError(t, err)
		got := map[string]string{}
		for _, f := range report.Findings {
			require.NotContains(t, got, string(f.Identifier), "one finding for each record")
			got[string(f.Identifier)] = f.Kind
		}
		require.Equal(t, want, got)
		require.False(t, report.Clean)
		require.EqualValues(t, len(w.source), report.Checked.Source)
		require.EqualValues(t, 2, report.Checked.Runs)
	}
}

// TestAuditOfAFailedRun: a run that did not come to its end has promised nothing
// of the source, and its claims still hold.
func TestAuditOfAFailedRun(t *testing.T) {
	w := newWorld(t, api.OperationMirror)
	w.source = rowsOf{{"1", `"name 1"`}, {"2", `"name 2"`}, {"3", `"name 3"`}}
	w.stored["1"], w.stored["9"] = []string{"name 1"}, []string{"name 9"}
	w.ran(api.RunFailed, 3, 0, ledger.Batch{Operation: rpc.OperationUpsert, Records: []ledger.Record{record("1", ledger.Acknowledged, false), record("2", ledger.Acknowledged, false), record("9", ledger.Acknowledged, false)}})
	report, err := Audit(t.Context(), w.job(false))
	require.NoError(t, err)
	require.Equal(t, map[string]int64{Lost: 1}, report.Totals)
	require.JSONEq(t, `{"id":2,"name":"name 2"}`, string(report.Findings[0].Expected))
	w.runs[0].Status = api.RunCompleted
	report, err = Audit(t.Context(), w.job(false))
	require.NoError(t, err)
	require.Equal(t, map[string]int64{Lost: 1, Missing: 1, Leftover: 1}, report.Totals)
	job := w.job(false)
	job.Active = true
	report, err = Audit(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{Lost: 1}, report.Totals, "another run is under way")
}

// TestAuditTellsWhatItCannotRead: an end that fails is no finding.
func TestAuditTellsWhatItCannotRead(t *testing.T) {
	w := newWorld(t, api.OperationUpsert)
	w.ran(api.RunCompleted, 0, 0, ledger.Batch{Operation: rpc.OperationUpsert, Records: []ledger.Record{record("1", ledger.Acknowledged, false)}})
	job := w.job(true)
	job.Destination.List = func(context.Context, func(map[string]json.RawMessage) error) error { return io.ErrUnexpectedEOF }
	_, err := Audit(t.Context(), job)
	var end *ReadError
	require.ErrorAs(t, err, &end)
	require.Equal(t, "destination", end.What)
	job = w.job(false)
	job.Destination.Lookup = func(context.Context, [][]byte) ([]Stored, error) { return nil, &HookError{"is away"} }
	_, err = Audit(t.Context(), job)
	require.ErrorContains(t, err, "the hook is away")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Audit(ctx, w.job(false))
	require.ErrorIs(t, err, context.Canceled)
}
