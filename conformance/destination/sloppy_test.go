package destination_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
)

// sloppy is a public endpoint as people write them: it obeys the published
// protocol, and each of its habits is one that published endpoints have. The
// zero value has none of them.
type sloppy struct {
	echoMethod        bool // "method" beside the result, as the published examples do
	noContentType     bool
	textHTML          bool // the default of several frameworks
	nullMessage       bool // "error_message": null on success
	messageIsObject   bool // the HTTP error body of the system behind, as it is
	optionalKeys      bool // identifiers with required false
	integerAsString   bool
	wholeBatchFails   bool // one bad record is an error for all
	dropsFractions    bool // of seconds
	strictParams      bool // extra params are -32602, as with a JSON-RPC library
	skipsAreSuccesses bool
	noDelete          bool // no mirror, so nothing can be cleaned up
	refusesAll        bool // every record fails; not sloppy but useless

	mu      sync.Mutex
	objects map[string]map[string]row
}

type row = map[string]json.RawMessage

// sloppyFields of the two objects, the identifier first.
func (s *sloppy) fields() map[string][]rpc.Field {
	field := func(name, kind string) rpc.Field {
		return rpc.Field{APIName: name, Label: name, Createable: true, Updateable: true, Type: kind}
	}
	key := func(name, kind string) rpc.Field {
		f := field(name, kind)
		f.Identifier, f.Required = true, !s.optionalKeys
		return f
	}
	name, tags := field("name", rpc.TypeString), field("tags", rpc.TypeString)
	name.Required, tags.Array = true, true
	return map[string][]rpc.Field{
		"contact": {key("email", rpc.TypeString), name, tags, field("city", rpc.TypeString), field("seen_at", rpc.TypeDateTime),
			field("age", rpc.TypeInteger), field("price", rpc.TypeDecimal), field("score", rpc.TypeFloat), field("active", rpc.TypeBoolean), field("born", rpc.TypeDate)},
		"order": {key("order_id", rpc.TypeInteger), field("note", rpc.TypeString), field("place", rpc.TypeString)},
	}
}

type sloppyCall struct {
	JSONRPC string          `json:"jsonrpc"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      json.RawMessage `json:"id"`
}

type refusal struct {
	code    int
	message string
}

func (r *refusal) Error() string { return r.message }

func (s *sloppy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var c sloppyCall
	reply := map[string]any{"jsonrpc": "2.0", "id": nil}
	fail := func(code int, message string) {
		reply["error"] = map[string]any{"code": code, "message": message}
	}
	err := json.NewDecoder(r.Body).Decode(&c)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err != nil && !errors.As(err, &wrongType):
		fail(-32700, "Parse error")
	case err != nil || c.JSONRPC != "2.0" || c.Method == nil:
		reply["id"] = c.ID
		fail(-32600, "Invalid Request")
	default:
		reply["id"] = c.ID
		result, err := s.call(*c.Method, c.Params)
		var why *refusal
		if errors.As(err, &why) {
			fail(why.code, why.message)
		} else {
			reply["result"] = result
		}
		if s.echoMethod {
			reply["method"] = c.Method
		}
	}
	switch {
	case s.noContentType:
		w.Header()["Content-Type"] = nil
	case s.textHTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	default:
		w.Header().Set("Content-Type", "application/json")
	}
	if reply["id"] == nil || len(c.ID) == 0 {
		reply["id"] = nil
	}
	_ = json.NewEncoder(w).Encode(reply) // the judge may be gone
}

// keysOf are the params that each method knows.
var keysOf = map[string][]string{
	"test_connection": {}, "list_objects": {}, "get_sync_speed": {},
	"list_fields": {"object"}, "supported_operations": {"object"}, "sync_batch": {"sync_plan", "records"},
}

func (s *sloppy) call(method string, raw json.RawMessage) (any, error) {
	known, ok := keysOf[method]
	if !ok {
		return nil, &refusal{-32601, "Method not found"}
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(raw, &params) != nil {
		return nil, &refusal{-32602, "params must be an object"}
	}
	for name := range params {
		if s.strictParams && !slices.Contains(known, name) {
			return nil, &refusal{-32602, "got an unexpected keyword argument '" + name + "'"}
		}
	}
	switch method {
	case "test_connection":
		return map[string]any{"success": true}, nil
	case "list_objects":
		return map[string]any{"objects": []rpc.Object{{APIName: "contact", Label: "Contacts"}, {APIName: "order", Label: "Orders"}}}, nil
	case "get_sync_speed":
		return rpc.Speed{MaximumBatchSize: 100, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 20_000}, nil
	case "sync_batch":
		return s.batch(raw)
	}
	var p struct {
		Object struct {
			Name string `json:"object_api_name"`
		} `json:"object"`
	}
	if json.Unmarshal(raw, &p) != nil || s.fields()[p.Object.Name] == nil {
		return nil, &refusal{-32602, "no such object"}
	}
	if method == "list_fields" {
		return map[string]any{"fields": s.fields()[p.Object.Name]}, nil
	}
	return map[string]any{"operations": s.operations()}, nil
}

func (s *sloppy) operations() []string {
	if s.noDelete {
		return []string{"upsert", "insert", "update"}
	}
	return []string{"upsert", "insert", "update", "mirror"}
}

func (s *sloppy) batch(raw json.RawMessage) (any, error) {
	var p struct {
		Plan    rpc.SyncPlan `json:"sync_plan"`
		Records []row        `json:"records"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, &refusal{-32602, "sync_plan and records are needed"}
	}
	fields := s.fields()[p.Plan.Object.APIName]
	key := ""
	for name, f := range p.Plan.Schema {
		if f.ActiveIdentifier {
			key = name
		}
	}
	deletes := p.Plan.Operation == "delete" && !s.noDelete
	if fields == nil || fields[0].APIName != key || p.Plan.Operation == "mirror" || !deletes && !slices.Contains(s.operations(), p.Plan.Operation) {
		return nil, &refusal{-32602, "the plan names an object, an operation or an identifier that does not exist"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wholeBatchFails {
		for _, r := range p.Records {
			if why := unfit(fields, r, p.Plan.Operation); why != "" {
				return nil, &refusal{-32000, why}
			}
		}
	}
	results := []map[string]any{}
	for _, r := range p.Records {
		results = append(results, s.answer(fields, r, s.write(p.Plan.Object.APIName, fields, r, p.Plan.Operation)))
	}
	return map[string]any{"record_results": results}, nil
}

// answer makes one record result.
func (s *sloppy) answer(fields []rpc.Field, r row, why string) map[string]any {
	id := r[fields[0].APIName]
	if s.integerAsString && fields[0].Type == rpc.TypeInteger && id != nil {
		id = json.RawMessage(`"` + string(id) + `"`)
	}
	res := map[string]any{"identifier": id, "success": why == ""}
	switch {
	case why != "" && s.messageIsObject:
		res["error_message"] = map[string]any{"status": 422, "body": why}
	case why != "":
		res["error_message"] = why
	case s.nullMessage:
		res["error_message"] = nil
	}
	return res
}

// unfit says why a record does not fit.
func unfit(fields []rpc.Field, r row, operation string) string {
	if id := r[fields[0].APIName]; len(id) == 0 || string(id) == "null" {
		return fields[0].APIName + " is missing"
	}
	for _, f := range fields {
		raw, ok := r[f.APIName]
		if f.Required && operation != "delete" && ok && string(raw) == "null" {
			return f.APIName + " is required"
		}
	}
	return ""
}

var fraction = regexp.MustCompile(`\.\d+Z"$`)

// write carries out one record and says why it did not.
func (s *sloppy) write(object string, fields []rpc.Field, r row, operation string) string {
	if why := unfit(fields, r, operation); why != "" {
		return why
	}
	if s.refusesAll {
		return "the system behind is read-only"
	}
	key := canonical(r[fields[0].APIName])
	if s.objects == nil {
		s.objects = map[string]map[string]row{"contact": {}, "order": {}}
	}
	rows := s.objects[object]
	old, there := rows[key]
	switch {
	case operation == "delete":
		delete(rows, key)
		return ""
	case operation == "insert" && there, operation == "update" && !there:
		if s.skipsAreSuccesses {
			return ""
		}
		return "skipped"
	case !there:
		old = row{}
	}
	for name, raw := range r {
		if s.dropsFractions && name == "seen_at" {
			raw = fraction.ReplaceAll(raw, []byte(`Z"`))
		}
		old[name] = raw
	}
	rows[key] = old
	return ""
}

// canonical is an identifier without the freedoms of JSON.
func canonical(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return "s" + text
	}
	return "n" + string(bytes.TrimSpace(raw))
}

// readback is the hook of the sloppy endpoint.
func (s *sloppy) readback(_ context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := conformance.ReadbackReply{Complete: true}
	for _, id := range q.Identifiers {
		if r, ok := s.objects[q.Object][canonical(id)]; ok {
			fields := row{}
			for name, raw := range r {
				fields[name] = slices.Clone(raw)
			}
			out.Records = append(out.Records, conformance.ReadbackRecord{Identifier: id, Count: 1, Fields: fields})
		}
	}
	return out, nil
}

// TestSloppyEndpointMatrix judges all habits together: each is a warning at most in the
// default profile, and none hides another.
func TestSloppyEndpointMatrix(t *testing.T) {
	matrixtest.NotEveryDay(t)
	all := map[string]struct {
		endpoint *sloppy
		warnings []string
	}{
		"none": {endpoint: &sloppy{}},
		"all of it": {
			endpoint: &sloppy{echoMethod: true, noContentType: true, nullMessage: true, messageIsObject: true, optionalKeys: true, integerAsString: true,
				wholeBatchFails: true, dropsFractions: true, strictParams: true},
			warnings: []string{"FLD-005", "HTTP-002", "RES-006", "RES-017", "RES-018", "RPC-013"},
		},
		"all of it, skips are successes": {
			endpoint: &sloppy{echoMethod: true, textHTML: true, nullMessage: true, messageIsObject: true, optionalKeys: true, integerAsString: true,
				wholeBatchFails: true, dropsFractions: true, strictParams: true, skipsAreSuccesses: true, noDelete: true},
			// Nothing fails record by record here, so no message is seen.
			warnings: []string{"FLD-005", "HTTP-002", "RES-017", "RES-018", "RPC-013"},
		},
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := c.endpoint
			readOnly := judgeSloppy(t, e, conformance.Options{})
			require.Subset(t, c.warnings, tripped(readOnly), explain(readOnly, tripped(readOnly)))
			write := conformance.Options{Write: true, Objects: []string{"contact", "order"}, MaxRecords: 20_000}
			blind := judgeSloppy(t, e, write)
			require.ElementsMatch(t, c.warnings, tripped(blind), "without read-back\n"+explain(blind, append(tripped(blind), c.warnings...)))
			write.ReadbackFunc = e.readback
			full := judgeSloppy(t, e, write)
			require.ElementsMatch(t, c.warnings, tripped(full), explain(full, append(tripped(full), c.warnings...)))
		})
	}
}

// judgeSloppy judges in the default profile, where nothing may gate.
func judgeSloppy(t *testing.T, e *sloppy, opts conformance.Options) *conformance.Report {
	t.Helper()
	opts.PlanningTimeout, opts.BatchTimeout = 5*time.Second, 10*time.Second
	r, err := destination.Run(context.Background(), destination.Target{Handler: e}, opts)
	require.NoError(t, err)
	require.NotEqual(t, conformance.NonConformant, r.Verdict, "%s\n%s", r.Summary, explain(r, r.Failed))
	require.Empty(t, r.Failed)
	require.Zero(t, r.ExitStatus, "%s %v", r.Summary, r.Problems)
	return r
}

// TestMatrixSkipsAreDeclared holds a declared skip convention against the endpoint.
func TestMatrixSkipsAreDeclared(t *testing.T) {
	matrixtest.Long(t)
	if testing.Short() {
		t.Skip("whole runs of the judge, as others are")
	}
	for _, c := range []struct {
		skips    bool
		declared string
		want     []string
	}{
		{false, conformance.SkipFailure, nil},
		{true, conformance.SkipSuccess, nil},
		{false, conformance.SkipSuccess, []string{"SEM-015"}},
	} {
		e := &sloppy{skipsAreSuccesses: c.skips}
		r := judgeSloppy(t, e, conformance.Options{
			Write: true, Objects: []string{"contact"}, ReadbackFunc: e.readback, SkipConvention: c.declared, MaxRecords: 20_000,
		})
		require.ElementsMatch(t, c.want, tripped(r), "%+v\n%s", c, explain(r, tripped(r)))
	}
}

// TestNothingIsProvenByRefusals: an endpoint that refuses every record breaks no
// rule that can be named, and yet none of its operations was seen to work.
func TestNothingIsProvenByRefusals(t *testing.T) {
	if testing.Short() {
		t.Skip("whole runs of the judge, as others are")
	}
	e := &sloppy{refusesAll: true}
	r, err := destination.Run(t.Context(), destination.Target{Handler: e}, conformance.Options{
		Write: true, Objects: []string{"order"}, ReadbackFunc: e.readback, MaxRecords: 20_000,
	})
	require.NoError(t, err)
	require.Equal(t, conformance.Unknown, r.Verdict)
	require.Equal(t, 3, r.ExitStatus, r.Summary)
	for _, id := range []string{"SEM-001", "SEM-006", "SEM-008", "DUR-001"} {
		require.Equal(t, conformance.Inconclusive, statusOf(r, id), id)
	}
}

// statusOf is the status of one check.
func statusOf(r *conformance.Report, id string) conformance.Status {
	for _, c := range r.Checks {
		if c.ID == id {
			return c.Status
		}
	}
	return ""
}
