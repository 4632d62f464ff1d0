package destsim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
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
	inner := http.NewServeMux()
	s.console = pages.New(pages.Simulator{
		Control: console.Caller{Handler: inner}, Token: s.config.ControlToken,
		Stamp: s.stamp,
	})
	mux.Handle(console.Path, s.console)
	mux.Handle(console.Path+"/", s.console)
	endpoints := s.endpoints()
	for _, e := range s.extensions {
		endpoints = append(endpoints, e.endpoints...)
	}
	if profile := s.config.Profile; profile != nil {
		endpoints = append(endpoints, endpoint{"GET", "/_control/pprof/", "profiles of this process for go tool pprof, also below it: profile, heap, goroutine, trace …", profile})
		inner.Handle("GET /_control/pprof", profile)
	}
	for _, e := range endpoints[1:] { // the first is outside of what is guarded
		inner.Handle(e.Method+" "+e.Path, e.handler)
	}
	index := give(func(*http.Request) (any, error) { return map[string]any{"endpoints": endpoints}, nil })
	inner.HandleFunc("GET /_control", index)
	inner.HandleFunc("GET /_control/{$}", index)
	mux.Handle("GET /healthz", endpoints[0].handler)
	guarded := s.guard(worded(inner, endpoints))
	mux.Handle("/_control", guarded)
	mux.Handle("/_control/", guarded)
	return worded(mux, endpoints)
}

// endpoints are those of a simulator itself; extensions add their own.
func (s *Sim) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/healthz", "tells that the program runs", give(func(*http.Request) (any, error) { return okReply{OK: true}, nil })},
		{"POST", "/_control/readback", `{"object","identifier_field","identifiers":[…]} gives the stored records`, take(s.readback)},
		{"GET", "/_control/records", "?object=&after=&limit= pages through all records of an object", give(s.records)},
		{"GET", "/_control/objects", "objects with their fields and numbers of records, and the declared speed", give(s.objects)},
		{"GET", "/_control/counts", "records by object, calls by method", give(s.counts)},
		{"POST", "/_control/reset", "forgets records, custom fields and every change made here", give(func(*http.Request) (any, error) { return okReply{OK: true}, s.Reset() })},
		{"GET", "/_control/snapshot", "everything that the destination knows, one JSON object per line", http.HandlerFunc(s.serveSnapshot)},
		{"POST", "/_control/restore", "replaces everything by a snapshot, or refuses it and changes nothing", give(func(r *http.Request) (any, error) { return okReply{OK: true}, s.Restore(r.Body) })},
		{"POST", "/_control/schema", `{"action":"add_field|remove_field|rename_field|change_field|add_object|remove_object|set_operations|set_speed|set_rate_limit", …}`, take(s.changeSchema)},
		{"POST", "/_control/hooks/{name}", "cleanup, restart, alter_schema, break_downstream, rotate_token", give(s.hook)},
	}
}

// endpoint is one of the control endpoints, as GET /_control lists them.
type endpoint struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Does    string `json:"does"`
	handler http.Handler
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

// give answers with a value, or with an error as 400, as 404 where the path names
// something that does not exist.
func give(fn func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := fn(r)
		switch {
		case errors.Is(err, errNoCall), errors.Is(err, ErrUnknownFault):
			reply(w, http.StatusNotFound, controlError{err.Error()})
		case err != nil:
			reply(w, http.StatusBadRequest, controlError{err.Error()})
		default:
			reply(w, http.StatusOK, value)
		}
	}
}

// take is give for an endpoint that decodes its body strictly.
func take[T any](fn func(T) (any, error)) http.HandlerFunc {
	return give(func(r *http.Request) (any, error) {
		var arg T
		if err := decodeControl(r, &arg); err != nil {
			return nil, err
		}
		return fn(arg)
	})
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
func (s *Sim) records(r *http.Request) (any, error) {
	q := r.URL.Query()
	after, limit, err := recordsPage(q)
	if err != nil {
		return nil, err
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
	return page, err
}

// recordsPage is the page of records that a query selects.
func recordsPage(q url.Values) (after int64, limit int, err error) {
	if err := onlyParameters(q, "object", "after", "limit"); err != nil {
		return 0, 0, err
	}
	if v := q.Get("after"); v != "" {
		if after, err = numberParameter(v); err != nil {
			return 0, 0, fmt.Errorf("after: %w", err)
		}
	}
	most, err := numberParameter(cmp.Or(q.Get("limit"), "1000"))
	if err == nil && (most < 1 || most > 100000) {
		err = fmt.Errorf("must be between 1 and 100000, not %d", most)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("limit: %w", err)
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

// objectShown is an object as the planning calls describe it.
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
func (s *Sim) objects(*http.Request) (any, error) {
	list := []objectShown{}
	for _, o := range s.catalogue.Load().objects {
		_, n, err := s.store.Scan(o.APIName, 0, 0)
		if err != nil {
			return nil, err
		}
		shown := objectShown{Object: o.Object, Operations: o.operations, Fields: []fieldShown{}, Records: n}
		for _, f := range o.fields {
			shown.Fields = append(shown.Fields, fieldShown{f.Field, f.unique, f.maxLength, f.custom})
		}
		list = append(list, shown)
	}
	return map[string]any{
		"objects": list, "speed": s.speed.Load(), "rate_limit": s.rateLimit.Load(), "enforced": s.config.EnforceLimits, "downstream_broken": s.broken.Load(),
	}, nil
}

// counts returns how many records each object has and how many calls came.
func (s *Sim) counts(*http.Request) (any, error) {
	records := map[string]int{}
	for _, name := range s.catalogue.Load().names() {
		_, n, err := s.store.Scan(name, 0, 0)
		if err != nil {
			return nil, err
		}
		records[name] = n
	}
	calls, total := s.tally.counts()
	return map[string]any{"records": records, "calls": map[string]any{"total": total, "by_method": calls}}, nil
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
	out := map[string]int64{} // never null in JSON
	maps.Copy(out, t.methods)
	return out, t.total
}
