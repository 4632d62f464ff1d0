package destsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	pages "github.com/destkit/destkit/destsim/internal/console"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/reach"
)

// controlBody bounds the body of a control call.
const controlBody = 64 << 20

// controlRoutes builds /_control and /healthz. They go around the pipeline:
// no violation, fault or token of the endpoint touches them.
func (s *Sim) controlRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"ok": true})
	})
	inner := http.NewServeMux()
	s.console = pages.New(pages.Simulator{
		Control: console.Caller{Handler: inner}, Token: s.config.ControlToken,
		Stamp: s.stamp,
	})
	mux.Handle(console.Path, s.console)
	mux.Handle(console.Path+"/", s.console)
	endpoints := slices.Clone(controlEndpoints)
	for _, e := range s.extensions {
		endpoints = append(endpoints, e.endpoints...)
	}
	if profile := s.config.Profile; profile != nil {
		endpoints = append(endpoints, endpoint{"GET", "/_control/pprof/", "profiles of this process for go tool pprof, also below it: profile, heap, goroutine, trace …"})
		inner.Handle("GET /_control/pprof", profile)
		inner.Handle("GET /_control/pprof/", profile)
	}
	index := func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"endpoints": endpoints})
	}
	inner.HandleFunc("GET /_control", index)
	inner.HandleFunc("GET /_control/{$}", index)
	inner.HandleFunc("POST /_control/readback", take(s.readback))
	inner.HandleFunc("GET /_control/records", s.records)
	inner.HandleFunc("GET /_control/counts", s.counts)
	inner.HandleFunc("GET /_control/objects", s.objects)
	inner.HandleFunc("POST /_control/reset", func(w http.ResponseWriter, _ *http.Request) { answer(w, okReply{OK: true}, s.Reset()) })
	inner.HandleFunc("GET /_control/snapshot", s.serveSnapshot)
	inner.HandleFunc("POST /_control/restore", func(w http.ResponseWriter, r *http.Request) { answer(w, okReply{OK: true}, s.Restore(r.Body)) })
	inner.HandleFunc("POST /_control/schema", take(s.changeSchema))
	inner.HandleFunc("POST /_control/hooks/{name}", s.hook)
	for _, e := range s.extensions {
		if e.routes != nil {
			e.routes(inner)
		}
	}
	guarded := s.guard(worded(inner, endpoints))
	mux.Handle("/_control", guarded)
	mux.Handle("/_control/", guarded)
	return worded(mux, endpoints)
}

// controlEndpoints is what GET /_control/ lists; extensions add their own.
var controlEndpoints = []endpoint{
	{"GET", "/healthz", "tells that the program runs"},
	{"POST", "/_control/readback", `{"object","identifier_field","identifiers":[…]} gives the stored records`},
	{"GET", "/_control/records", "?object=&after=&limit= pages through all records of an object"},
	{"GET", "/_control/objects", "objects with their fields and numbers of records, and the declared speed"},
	{"GET", "/_control/counts", "records by object, calls by method"},
	{"POST", "/_control/reset", "forgets records, custom fields and every change made here"},
	{"GET", "/_control/snapshot", "everything that the destination knows, one JSON object per line"},
	{"POST", "/_control/restore", "replaces everything by a snapshot, or refuses it and changes nothing"},
	{"POST", "/_control/schema", `{"action":"add_field|remove_field|rename_field|change_field|add_object|remove_object|set_operations|set_speed|set_rate_limit", …}`},
	{"POST", "/_control/hooks/{name}", "cleanup, restart, alter_schema, break_downstream, rotate_token"},
}

type endpoint struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Does   string `json:"does"`
}

type okReply struct {
	OK bool `json:"ok"`
}

// guard lets in whoever has the control token, and callers on this machine
// that are neither passed on by a proxy nor a page in a browser.
func (s *Sim) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A user of a service's API has chosen the address.
		if reach.OwnOrigin(r) {
			reply(w, http.StatusForbidden, controlError{reach.ErrOutbound.Error()})
			return
		}
		if !s.hasControlToken(r) {
			if err := reach.AdmitLoopback(r); err != nil {
				reply(w, http.StatusForbidden, controlError{"the control endpoints are open on loopback only: " + err.Error() + "; or set a control token and send it"})
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// hasControlToken takes the token from two headers, or from the query for
// hooks that are given as a bare URL.
func (s *Sim) hasControlToken(r *http.Request) bool {
	token := s.config.ControlToken
	if token == "" {
		return false
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return same(bearer, token) || same(r.Header.Get("X-Control-Token"), token) ||
		same(r.URL.Query().Get("control_token"), token)
}

type controlError struct {
	Error string `json:"error"`
}

// reply writes a JSON answer of a control endpoint.
func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(encode(value), '\n'))
}

// answer writes a value, or the error as 400.
func answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		reply(w, http.StatusBadRequest, controlError{err.Error()})
		return
	}
	reply(w, http.StatusOK, value)
}

// take decodes the body strictly into the argument of fn.
func take[T any](fn func(T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var arg T
		if err := decodeControl(r, &arg); err != nil {
			answer(w, nil, err)
			return
		}
		value, err := fn(arg)
		answer(w, value, err)
	}
}

// Reset forgets all records, custom fields and changes of the schema, heals
// the downstream and restores the configured token, speed and limits.
func (s *Sim) Reset() error {
	s.world.Lock()
	defer s.world.Unlock()
	if err := s.store.Drop(""); err != nil {
		return fmt.Errorf("reset store: %w", err)
	}
	s.tally.reset()
	for _, e := range s.extensions {
		if e.reset != nil {
			e.reset()
		}
	}
	return s.initial()
}

// records pages through a table in the order in which records were created.
func (s *Sim) records(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, limit, err := recordsPage(q)
	if err != nil {
		answer(w, nil, err)
		return
	}
	list, total, err := s.Records(q.Get("object"), after, limit)
	page := struct {
		Records []StoredRecord `json:"records"`
		Total   int            `json:"total"`
		Next    *int64         `json:"next"` // the value for after, null at the end
	}{Records: list, Total: total}
	if len(list) == limit {
		page.Next = &list[limit-1].ID
	}
	answer(w, page, err)
}

// recordsPage is which records a query asks for.
func recordsPage(q url.Values) (after int64, limit int, err error) {
	if err := onlyParameters(q, "object", "after", "limit"); err != nil {
		return 0, 0, err
	}
	if v := q.Get("after"); v != "" {
		if after, err = numberParameter(v); err != nil {
			return 0, 0, fmt.Errorf("after: %w", err)
		}
	}
	most := int64(1000)
	if v := q.Get("limit"); v != "" {
		if most, err = numberParameter(v); err == nil && (most < 1 || most > 100000) {
			err = fmt.Errorf("must be between 1 and 100000, not %d", most)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("limit: %w", err)
		}
	}
	return after, int(most), nil
}

// StoredRecord is one record as the destination holds it.
type StoredRecord struct {
	ID     int64           `json:"id"`     // ascending in the order of creation
	Fields json.RawMessage `json:"fields"` // one JSON object
}

// Records gives at most limit records of an object whose id is above after, in
// the order in which they were created, and the number of all its records. A
// limit of 0 only counts. An object that does not exist is an error.
func (s *Sim) Records(object string, after int64, limit int) ([]StoredRecord, int, error) {
	if s.catalogue.Load().byName[object] == nil {
		return nil, 0, s.unknownObject(object)
	}
	if limit < 0 {
		return nil, 0, fmt.Errorf("limit %d is negative", limit)
	}
	rows, total, err := s.store.Scan(object, after, limit)
	list := make([]StoredRecord, len(rows))
	for i, row := range rows {
		list[i] = StoredRecord{row.ID, row.Data}
	}
	return list, total, err
}

// RecordsJSON is Records for callers that only pass them on.
func (s *Sim) RecordsJSON(object string, after int64, limit int) ([]json.RawMessage, int, error) {
	stored, total, err := s.Records(object, after, limit)
	if err != nil {
		return nil, 0, err
	}
	records := make([]json.RawMessage, len(stored))
	for i, record := range stored {
		if records[i], err = json.Marshal(record); err != nil {
			return nil, 0, fmt.Errorf("show record %d: %w", record.ID, err)
		}
	}
	return records, total, nil
}

func (s *Sim) unknownObject(name string) error {
	known := s.catalogue.Load().names()
	if name == "" {
		return fmt.Errorf("object: %w", unknownWord("object", name, known))
	}
	return fmt.Errorf("unknown object %q%s", name, didYouMean(name, known))
}

// objectShown is an object with all that the planning calls tell of it.
type objectShown struct {
	rpc.Object
	Operations []string     `json:"operations"`
	Fields     []fieldShown `json:"fields"`
	Records    int          `json:"records"`
}

type fieldShown struct {
	rpc.Field
	Unique    bool `json:"unique"`
	MaxLength int  `json:"max_length"` // 0: unbounded
	Custom    bool `json:"custom"`     // created on write
}

// objects shows the schema as it is now, past violations and faults.
func (s *Sim) objects(w http.ResponseWriter, _ *http.Request) {
	list := []objectShown{}
	for _, o := range s.catalogue.Load().objects {
		_, n, err := s.store.Scan(o.APIName, 0, 0)
		if err != nil {
			answer(w, nil, err)
			return
		}
		shown := objectShown{Object: o.Object, Operations: o.operations, Fields: []fieldShown{}, Records: n}
		for _, f := range o.fields {
			shown.Fields = append(shown.Fields, fieldShown{f.Field, f.unique, f.maxLength, f.custom})
		}
		list = append(list, shown)
	}
	reply(w, http.StatusOK, map[string]any{
		"objects": list, "speed": s.speed.Load(), "rate_limit": s.rateLimit.Load(), "enforced": s.config.EnforceLimits, "downstream_broken": s.broken.Load(),
	})
}

// counts tells how many records each object has and how many calls came.
func (s *Sim) counts(w http.ResponseWriter, _ *http.Request) {
	records := map[string]int{}
	for _, name := range s.catalogue.Load().names() {
		_, n, err := s.store.Scan(name, 0, 0)
		if err != nil {
			answer(w, nil, err)
			return
		}
		records[name] = n
	}
	calls, total := s.tally.counts()
	reply(w, http.StatusOK, map[string]any{"records": records, "calls": map[string]any{"total": total, "by_method": calls}})
}

// tally counts the calls of the endpoint by method.
type tally struct {
	mu      sync.Mutex
	methods map[string]int64
	total   int64
}

// tallied bounds the number of different methods, since clients choose them.
const tallied = 64

func (t *tally) add(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total++
	if t.methods == nil {
		t.methods = map[string]int64{}
	}
	if _, known := t.methods[c.method]; known || len(t.methods) < tallied {
		t.methods[c.method]++
	}
}

func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.methods, t.total = nil, 0
}

// set goes on from counts that a snapshot has kept.
func (t *tally) set(methods map[string]int64, total int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.methods, t.total = methods, total
}

func (t *tally) counts() (map[string]int64, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]int64{}
	for m, n := range t.methods {
		out[m] = n
	}
	return out, t.total
}
