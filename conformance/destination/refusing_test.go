package destination

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/destsim/rpc"
)

// The settings of runs against a refuser.
const (
	scriptToken = "the-token-A1"
	scriptRun   = "00ab12"
)

// attempt is one record as an endpoint sees it that refuses some.
type attempt struct {
	operation string
	there     bool // a record with its key is stored
	record    rpc.Record
	key       string
	plan      rpc.SyncPlan
}

// fates are what became of the records of one check, as the endpoint counts them.
type fates struct{ created, changed, deleted, skipped, refused int }

// refuser is a small endpoint that refuses records one by one, and keeps count.
type refuser struct {
	*small
	refuse func(a attempt) string // the message, "" accepts
	token  string

	mu    sync.Mutex
	fates map[string]*fates // by check
}

// newRefuser has a field of every type.
func newRefuser(refuse func(a attempt) string) *refuser {
	e := &refuser{small: newSmall(), refuse: refuse, token: scriptToken, fates: map[string]*fates{}}
	for _, f := range []rpc.Field{
		{APIName: "notes", Type: rpc.TypeString}, {APIName: "points", Type: rpc.TypeInteger}, {APIName: "score", Type: rpc.TypeFloat},
		{APIName: "balance", Type: rpc.TypeDecimal}, {APIName: "active", Type: rpc.TypeBoolean}, {APIName: "born", Type: rpc.TypeDate},
		{APIName: "seen", Type: rpc.TypeDateTime}, {APIName: "tags", Type: rpc.TypeString, Array: true},
	} {
		f.Label, f.Createable, f.Updateable = f.APIName, true, true
		e.fields = append(e.fields, f)
	}
	e.answer = e.batchOf
	return e
}

// ServeHTTP adds what a run of the whole catalogue requests besides records, so that the run can
// find only the refusals.
func (e *refuser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	failed := func(status, code int, id json.RawMessage, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, model.OrNull(id), code, message)
	}
	req, err := rpc.DecodeRequest(body)
	var of struct {
		Object   rpc.ObjectRef
		SyncPlan rpc.SyncPlan `json:"sync_plan"`
	}
	odd := json.Unmarshal(req.Params, &of) != nil
	switch object := cmp.Or(of.Object.APIName, of.SyncPlan.Object.APIName); {
	case r.Header.Get("Authorization") != "Bearer "+e.token:
		failed(http.StatusUnauthorized, -32001, req.RawID, "Unauthorized")
	case r.Method != http.MethodPost:
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
	case err != nil && json.Valid(body):
		failed(http.StatusOK, -32600, req.RawID, "Invalid Request")
	case err == nil && (odd || slices.Contains([]string{rpc.MethodListFields, rpc.MethodSupportedOperations, rpc.MethodSyncBatch}, req.Method) && !slices.Contains(e.objects, object)):
		failed(http.StatusOK, -32602, req.RawID, "no such object")
	case req.Method == rpc.MethodSyncBatch && !e.matches(of.SyncPlan):
		failed(http.StatusOK, -32602, req.RawID, "the active field is no identifier")
	default:
		e.small.ServeHTTP(w, r)
	}
}

// matches reports whether the active field of a plan is an identifier.
func (e *refuser) matches(plan rpc.SyncPlan) bool {
	return slices.ContainsFunc(e.fields, func(f rpc.Field) bool { return f.Identifier && plan.Schema[f.APIName].ActiveIdentifier })
}

// batchOf refuses what it must and leaves the rest to the small endpoint.
func (e *refuser) batchOf(method string, _ int, body []byte) string {
	if method != rpc.MethodSyncBatch {
		return ""
	}
	var req struct{ Params rpc.BatchParams }
	if json.Unmarshal(body, &req) != nil {
		return ""
	}
	active := ""
	for name, f := range req.Params.SyncPlan.Schema {
		if f.ActiveIdentifier {
			active = name
		}
	}
	results := []rpc.RecordResult{}
	for _, r := range req.Params.Records {
		results = append(results, e.record(req.Params.SyncPlan, r, r[active]))
	}
	return `{"jsonrpc":"2.0","id":$ID,"result":` + encoded(rpc.BatchResult{RecordResults: results}) + `}`
}

func (e *refuser) record(plan rpc.SyncPlan, r rpc.Record, key json.RawMessage) rpc.RecordResult {
	e.small.mu.Lock()
	defer e.small.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	text := exchange.KeyText(key)
	if string(model.OrNull(key)) == "null" {
		return rpc.RecordResult{Identifier: json.RawMessage("null"), ErrorMessage: "a record has no identifier"}
	}
	_, there := e.stored[plan.Object.APIName][text]
	count := e.of(checkOfKey(text))
	if said := e.refuse(attempt{plan.Operation, there, r, text, plan}); said != "" {
		count.refused++
		return rpc.RecordResult{Identifier: key, ErrorMessage: said}
	}
	result := e.one(plan, r, key)
	switch {
	case !result.Success:
		count.skipped++
	case plan.Operation == rpc.OperationDelete:
		count.deleted++
	case there:
		count.changed++
	default:
		count.created++
	}
	return result
}

// of is the count of a check; the caller holds the lock.
func (e *refuser) of(check string) *fates {
	if e.fates[check] == nil {
		e.fates[check] = &fates{}
	}
	return e.fates[check]
}

// checkOfKey reads the check from a key of the default form.
func checkOfKey(key string) string {
	parts := strings.Split(strings.ToUpper(strings.TrimSpace(key)), "-")
	for i, p := range parts {
		if p == strings.ToUpper(scriptRun) && i+2 < len(parts) {
			return parts[i+1] + "-" + parts[i+2]
		}
	}
	return ""
}
