package destination

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

// small is a well-behaved endpoint in a few lines. Tests change one thing of it;
// it counts what reaches it.
type small struct {
	objects    []string
	fields     []rpc.Field
	operations []string
	speed      rpc.Speed
	rateLimit  string // X-RateLimit-Limit, "" sends none
	// answer replaces the reply to a call: a body, or "" for the ordinary one.
	answer    func(method string, nth int, body []byte) string
	answering sync.Mutex
	// before is called when a batch has arrived, outside the lock.
	before func(method string)
	// keep decides whether an acknowledged record is stored; nil stores all.
	keep func(operation, key string) bool
	// treat carries out one operation as another one.
	treat map[string]string
	// fold changes the key under which a record is stored; nil stores it as it is.
	fold func(key string) string
	// refuse gives the message for a record by its place in a batch, "" for none.
	refuse func(place, of int) string

	mu       sync.Mutex
	stored   map[string]map[string]rpc.Record // by object and text of the key
	calls    map[string]int
	arrivals []arrival
	deleted  []string
	atOnce   int
	mostOnce int
}

// trialOfSmall is the number of records by which the judge learns what the object
// takes: some fields, the same values again, all fields, and nulls.
const trialOfSmall = 4

type arrival struct {
	at      time.Time
	method  string
	records int
}

func newSmall() *small {
	text := func(name string) rpc.Field {
		return rpc.Field{APIName: name, Label: name, Createable: true, Updateable: true, Type: rpc.TypeString}
	}
	id := text("email")
	id.Identifier, id.Required = true, true
	return &small{
		objects: []string{"contact"}, fields: []rpc.Field{id, text("name")},
		operations: []string{"insert", "update", "upsert", "mirror"},
		speed:      rpc.Speed{MaximumBatchSize: 100, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 100_000},
		stored:     map[string]map[string]rpc.Record{}, calls: map[string]int{},
	}
}

// ServeHTTP answers one call.
func (e *small) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	if e.rateLimit != "" {
		w.Header().Set("X-RateLimit-Limit", e.rateLimit)
	}
	req, err := rpc.DecodeRequest(body)
	if err != nil {
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}`)
		return
	}
	nth := e.arrive(req)
	if req.Method == rpc.MethodSyncBatch {
		defer e.depart()
	}
	if e.before != nil {
		e.before(req.Method)
	}
	if e.answer != nil {
		if text := e.answerAlone(req.Method, nth, body); text != "" {
			fmt.Fprint(w, strings.ReplaceAll(text, "$ID", cmp.Or(string(req.RawID), "null")))
			return
		}
	}
	fmt.Fprint(w, e.reply(req))
}

// answerAlone lets answer keep its counts without a separate lock.
func (e *small) answerAlone(method string, nth int, body []byte) string {
	e.answering.Lock()
	defer e.answering.Unlock()
	return e.answer(method, nth, body)
}

func (e *small) arrive(req rpc.Request) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	var p rpc.BatchParams
	if req.Method == rpc.MethodSyncBatch {
		_ = json.Unmarshal(req.Params, &p)
		e.atOnce++
		e.mostOnce = max(e.mostOnce, e.atOnce)
	}
	e.arrivals = append(e.arrivals, arrival{time.Now(), req.Method, len(p.Records)})
	e.calls[req.Method]++
	return e.calls[req.Method]
}

func (e *small) depart() { e.mu.Lock(); e.atOnce--; e.mu.Unlock() }

func (e *small) reply(req rpc.Request) string {
	result := ""
	switch req.Method {
	case rpc.MethodTestConnection:
		result = `{"success":true}`
	case rpc.MethodListObjects:
		var list []rpc.Object
		for _, name := range e.objects {
			list = append(list, rpc.Object{APIName: name, Label: name})
		}
		result = `{"objects":` + encoded(list) + `}`
	case rpc.MethodListFields:
		result = `{"fields":` + encoded(e.fields) + `}`
	case rpc.MethodSupportedOperations:
		result = `{"operations":` + encoded(e.operations) + `}`
	case rpc.MethodGetSyncSpeed:
		result = encoded(e.speed)
	case rpc.MethodSyncBatch:
		result = e.batch(req.Params)
	default:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, cmp.Or(string(req.RawID), "null"))
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, cmp.Or(string(req.RawID), "null"), result)
}

func (e *small) batch(params []byte) string {
	var p rpc.BatchParams
	_ = json.Unmarshal(params, &p)
	e.mu.Lock()
	defer e.mu.Unlock()
	results := []rpc.RecordResult{}
	for i, r := range p.Records {
		for name, f := range p.SyncPlan.Schema {
			if !f.ActiveIdentifier {
				continue
			}
			if e.refuse != nil && e.refuse(i, len(p.Records)) != "" {
				results = append(results, rpc.RecordResult{Identifier: r[name], ErrorMessage: e.refuse(i, len(p.Records))})
				continue
			}
			results = append(results, e.one(p.SyncPlan, r, r[name]))
		}
	}
	return encoded(rpc.BatchResult{RecordResults: results})
}

func (e *small) one(plan rpc.SyncPlan, r rpc.Record, key json.RawMessage) rpc.RecordResult {
	table := e.stored[plan.Object.APIName]
	if table == nil {
		table = map[string]rpc.Record{}
		e.stored[plan.Object.APIName] = table
	}
	k := exchange.KeyText(key)
	if e.fold != nil {
		k = e.fold(k)
		r = maps.Clone(r)
		for name, f := range plan.Schema {
			if f.ActiveIdentifier {
				r[name] = json.RawMessage(encoded(k))
			}
		}
	}
	_, there := table[k]
	skip := rpc.RecordResult{Identifier: key, ErrorMessage: "skipped"}
	operation := plan.Operation
	if other := e.treat[operation]; other != "" {
		operation = other
	}
	switch operation {
	case rpc.OperationDelete:
		e.deleted = append(e.deleted, k)
		delete(table, k)
		return rpc.RecordResult{Identifier: key, Success: true}
	case rpc.OperationInsert:
		if there {
			return skip
		}
	case rpc.OperationUpdate:
		if !there {
			return skip
		}
	}
	if e.keep == nil || e.keep(plan.Operation, k) {
		merged := maps.Clone(table[k])
		if merged == nil {
			merged = rpc.Record{}
		}
		maps.Copy(merged, r)
		table[k] = merged
	}
	return rpc.RecordResult{Identifier: key, Success: true}
}

// readback shows the stored records, as an honest hook does.
func (e *small) readback(_ context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := conformance.ReadbackReply{Records: []conformance.ReadbackRecord{}, Complete: true}
	for _, raw := range q.Identifiers {
		if r, ok := e.stored[q.Object][exchange.KeyText(raw)]; ok {
			out.Records = append(out.Records, conformance.ReadbackRecord{Identifier: raw, Count: 1, Fields: maps.Clone(r)})
		}
	}
	return out, nil
}

// keys are the keys that an object holds.
func (e *small) keys(object string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.stored[object]))
}

// sent is the number of sync_batch calls and of records in them.
func (e *small) sent() (batches, records int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.arrivals {
		if a.method == rpc.MethodSyncBatch {
			batches, records = batches+1, records+a.records
		}
	}
	return batches, records
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Tiny catalogues for the tests: real steps, few checks.
const (
	healthCheck = `
  @AAA-001 @must @spec @spec-4.2
  Scenario: success is a boolean
    The service reads it.
    When the service calls "test_connection"
    Then every result of test_connection has a boolean "success"
`
	writeCheck = `
  @WRI-001 @must @spec @spec-4.2 @write @readback-decides @records-3 @each-object
  Scenario: upsert creates
    What is lost is never sent again.
    Given an object that accepts "upsert"
    When the service sends 3 new records with operation "upsert"
    Then every acknowledged record is stored exactly
`
)

// prepared is a session over a catalogue of the test's own.
func prepared(t *testing.T, e http.Handler, scenarios string, opts conformance.Options) *session {
	t.Helper()
	files := fstest.MapFS{"a.feature": {Data: []byte("Feature: Tests\n" + scenarios)}}
	cat, err := conformance.ReadCatalogue(files, ".", false)
	require.NoError(t, err)
	if opts.Seed == 0 {
		opts.Seed = 7
	}
	s, err := newSession(Target{Handler: e, Token: "the-token-of-the-tests"}, opts)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	s.Cat = cat
	require.Empty(t, s.suite().Undefined())
	return s
}

// judged runs a catalogue of the test's own.
func judged(t *testing.T, e http.Handler, scenarios string, opts conformance.Options) *conformance.Report {
	t.Helper()
	s := prepared(t, e, scenarios, opts)
	r, err := s.run(context.Background())
	require.NoError(t, err)
	return r
}

// writing are the options of a run that writes and reads back.
func writing(e *small) conformance.Options {
	return conformance.Options{Write: true, Objects: []string{"contact"}, ReadbackFunc: e.readback, LateWait: 200 * time.Millisecond}
}

func resultOf(t *testing.T, r *conformance.Report, id string) conformance.CheckResult {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c conformance.CheckResult) bool { return c.ID == id })
	require.GreaterOrEqual(t, i, 0, "no check %s", id)
	return r.Checks[i]
}

func problemKinds(r *conformance.Report) []string {
	var out []string
	for _, p := range r.Problems {
		out = append(out, p.Kind)
	}
	return out
}

func requireUsage(t *testing.T, err error, words string) {
	t.Helper()
	var u *conformance.UsageError
	require.ErrorAs(t, err, &u)
	require.Contains(t, u.Message, words)
}

// TestTest judges inside a Go test: every check is a subtest, undecided ones are skipped.
func TestTest(t *testing.T) {
	e := newSmall()
	opts := writing(e)
	opts.Select = []string{"OBJ-*", "SEM-001"}
	r := Test(t, Target{Handler: e}, opts)
	require.Equal(t, conformance.Pass, resultOf(t, r, "SEM-001").Status)
	require.Empty(t, e.keys("contact"))

	r = Test(t, Target{Handler: e}, conformance.Options{Select: []string{"SEM-001"}})
	require.Equal(t, conformance.NotRun, resultOf(t, r, "SEM-001").Status)
}

func TestDescribeNamesExpectedActualAndFix(t *testing.T) {
	c := conformance.CheckResult{Title: "results", Findings: []conformance.Finding{{Expected: "a result", Actual: "none", Fix: "send one"}, {Expected: "two", Actual: "one"}}}
	require.Equal(t, "results\n  expected a result\n  actual   none\n  fix      send one\n  expected two\n  actual   one", describe(c))
}
