package destsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// Violation describes one way to break one rule of the catalogue. ID is the
// id of the check that must catch it ("RES-002"), with a suffix for the second
// and further ways ("RES-002.2").
type Violation struct {
	ID string `json:"id"`
	// Changes describes in one sentence the difference from the clean destination.
	Changes string `json:"changes"`
	// Also lists the other checks that the same behaviour trips.
	Also []Also `json:"also"`
}

// Also is one more check that a violation trips, and why.
type Also struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// A violation is exactly one changed behaviour, put into the narrowest place
// where its check looks. arm is called once for every simulator that is
// configured with it and returns the seams that it fills; whatever state it
// needs (counters, memos, last values) are variables of arm, guarded by a lock
// or atomics because calls run in parallel. Most of them have one of the shapes
// in violation_shapes.go and violate_stored.go.
//
// It decides by protocol content alone (method, operation, record, field,
// count of calls), never by key prefix, user agent, id or order of a judge.
// Durations come from s.delays.
//
// A call passes the seams from top to bottom. A nil seam does not exist: with
// nothing armed the pipeline runs as if the seams had never been written.
//
//	http      before the body is read. c.r is there, c.method is not. Return
//	          true when the violation has answered by itself (c.hijack, c.cut,
//	          c.reset, c.hang). It may set c.verb (the clean destination
//	          answers 405 unless it is POST) and c.body (then the body of the
//	          request is not read).
//	auth      the decision about the token and the URL secret; allowed is the
//	          clean one and stays readable as c.denied. c.method is known.
//	parsed    after decoding and auth, before dispatch. c.method, c.params,
//	          c.id (raw JSON) and c.err (a decode error: -32700, -32600) may be
//	          rewritten; clear c.err to go on. c.answer(v) or c.fail(code, text)
//	          answers at once: dispatch is skipped.
//	plan      rewrites the value of the five small methods: connectionResult,
//	          objectsResult, fieldsResult, operationsResult, rpc.Speed. Return
//	          anything that encodes to JSON; tree(v) turns a value into maps
//	          and slices for wrong types. c.object names the object of
//	          list_fields and supported_operations. Not called on an error.
//	accept    the verdict on the sync plan: err is nil when it is a good one.
//	          Return nil to go on. p is a copy: p.object, p.operation and
//	          p.identifier may be changed, and must be set to go on; columns
//	          holds what the schema maps (p.column makes one more).
//	batch     once per sync_batch, after the plan has been accepted and before
//	          any record. It may refuse the batch as a whole or answer at once
//	          as in parsed, and change b.operation, b.object, b.identifier,
//	          b.from and b.to (the range of records to apply).
//	apply     around every record, outside of all locks: call next(r) for the
//	          clean effect, before or after changing r, or not at all. r.cells
//	          are not parsed before next runs.
//	value     every parsed value on its way into the store, identifiers too
//	          (r.key is taken from the cell afterwards, so folding the cell
//	          folds the key). cell.raw is canonical JSON: replace, do not edit;
//	          nil drops the cell. The echo stays r.identifier.
//	cells     all values of one record at once, after value: r.cells may be
//	          permuted, cut and extended. Not called when parsing has failed.
//	rows      wraps the rows of one record while its key is locked: Find, Put
//	          and Remove; see changedRows.
//	results   the results of a batch before they are encoded; result.raw
//	          replaces one by any JSON.
//	answered  after dispatch: c.result, c.err, c.status may be replaced; this is
//	          where an error becomes a success and the other way round.
//	envelope  the members of the reply in order: set, drop, add, duplicate.
//	reply     the encoded reply as bytes.
//	write     what goes onto the wire: status, headers, content coding, and the
//	          ways to break it (see httpReply: stall, drip, length, cut, reset,
//	          raw).
//	restart   what a restart loses or starts with beyond the clean destination.
//	tls       the name that the listener of cmd gives to Certificates.TLSConfig.
//
// Tools: c.sleep(d) ends early when the client has gone or the simulator is
// closed, and reports whether the whole time has passed; sleep in parsed, batch or
// write, never in rows, and not in apply with a SQLite store (its unit is open).
// s.later(d, fn) runs fn afterwards, s.putLater stores afterwards; Close waits for
// both. c.hang, c.cut and c.reset end the call without an answer from any place;
// return right after. What a seam gets (call, batch, record, rows,
// result.identifier) is reused after the call: clone what is kept. The stored
// state is seen only through rows; b.unit.With(object.table, …) in apply reaches
// other objects.
type violation struct {
	Violation
	arm func() seams
}

// next applies a record as if the current violation were not there.
type next func(r *record) result

// seams are the places of the pipeline that may be changed; see violation.
type seams struct {
	http     func(c *call) bool
	auth     func(c *call, allowed bool) bool
	parsed   func(c *call)
	plan     func(c *call, value any) any
	accept   func(c *call, p *plan, err *rpc.Error) *rpc.Error
	batch    func(c *call, b *batch)
	apply    func(c *call, r *record, next next) result
	value    func(c *call, r *record, cell *cell)
	cells    func(c *call, r *record)
	rows     func(c *call, r *record, rows store.Rows) store.Rows
	results  func(c *call, rs []result) []result
	answered func(c *call)
	envelope func(c *call, e *envelope)
	reply    func(c *call, reply []byte) []byte
	write    func(c *call, h *httpReply)
	restart  func(s *Sim)
	tls      string
}

// chain holds the armed seams, one list per seam so that a seam that
// nothing fills costs one nil check.
type chain struct {
	http     []func(c *call) bool
	auth     []func(c *call, allowed bool) bool
	parsed   []func(c *call)
	plan     []func(c *call, value any) any
	accept   []func(c *call, p *plan, err *rpc.Error) *rpc.Error
	batch    []func(c *call, b *batch)
	apply    []func(c *call, r *record, next next) result
	value    []func(c *call, r *record, cell *cell)
	cells    []func(c *call, r *record)
	rows     []func(c *call, r *record, rows store.Rows) store.Rows
	results  []func(c *call, rs []result) []result
	answered []func(c *call)
	envelope []func(c *call, e *envelope)
	reply    []func(c *call, reply []byte) []byte
	write    []func(c *call, h *httpReply)
	restart  []func(s *Sim)
	tls      []string
	filled   int // how often add was called
}

// add appends every seam of s that is filled.
func (h *chain) add(s seams) {
	h.filled++
	h.http = with(h.http, s.http, s.http != nil)
	h.auth = with(h.auth, s.auth, s.auth != nil)
	h.parsed = with(h.parsed, s.parsed, s.parsed != nil)
	h.plan = with(h.plan, s.plan, s.plan != nil)
	h.accept = with(h.accept, s.accept, s.accept != nil)
	h.batch = with(h.batch, s.batch, s.batch != nil)
	h.apply = with(h.apply, s.apply, s.apply != nil)
	h.value = with(h.value, s.value, s.value != nil)
	h.cells = with(h.cells, s.cells, s.cells != nil)
	h.rows = with(h.rows, s.rows, s.rows != nil)
	h.results = with(h.results, s.results, s.results != nil)
	h.answered = with(h.answered, s.answered, s.answered != nil)
	h.envelope = with(h.envelope, s.envelope, s.envelope != nil)
	h.reply = with(h.reply, s.reply, s.reply != nil)
	h.write = with(h.write, s.write, s.write != nil)
	h.restart = with(h.restart, s.restart, s.restart != nil)
	h.tls = with(h.tls, s.tls, s.tls != "")
}

func with[F any](list []F, f F, filled bool) []F {
	if !filled {
		return list
	}
	return append(list, f)
}

// violations is the whole list, sorted by id.
func violations() []violation {
	all := slices.Concat(
		envelopeViolations, requestViolations, httpViolations, tlsViolations, authViolations, connectionViolations,
		planningViolations, fieldViolations, speedViolations, resultsViolations, batchViolations, semanticsViolations,
		durabilityViolations, ledgerViolations, statelessViolations, parallelViolations, errorsViolations, dataViolations, acceptanceViolations,
		sequenceViolations,
	)
	slices.SortFunc(all, func(a, b violation) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Violations lists every violation that Config.Violate may name, sorted by id.
func Violations() []Violation {
	all := violations()
	list := make([]Violation, len(all))
	for i, v := range all {
		list[i] = v.Violation
	}
	return list
}

// chain returns the armed seams. A call that is under way may see a change of it.
func (s *Sim) chain() *chain { return s.seams.Load() }

// tree turns a value into maps, slices, strings, booleans and json.Number, so
// that a violation can put a wrong type anywhere.
func tree(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil
	}
	return out
}

// violationBoard holds the armed violations. Each is armed once while it stays on: its
// state, such as a count of calls, lasts as long.
type violationBoard struct {
	mu    sync.Mutex
	ids   []string // armed, in the order of arming
	seams map[string]seams
}

// ArmedViolation is a violation with whether it is armed.
type ArmedViolation struct {
	Violation
	Armed bool `json:"armed"`
}

// arm arms exactly the violations that are named. atStart permits those that act when a
// listener is opened.
func (s *Sim) arm(ids []string, atStart bool) error {
	b := &s.violations
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(ids) == 0 && len(b.ids) == 0 {
		return nil
	}
	all := violations()
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.ID
	}
	armed := map[string]seams{}
	var order []string
	for i, id := range ids {
		at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, id) })
		if at < 0 {
			return fmt.Errorf("violate[%d]: no violation %q%s", i, clip(id), didYouMean(id, names))
		}
		id = names[at]
		if _, twice := armed[id]; twice {
			continue
		}
		kept, on := b.seams[id]
		if !on {
			kept = all[at].arm()
		}
		if kept.tls != "" && !on && !atStart {
			return fmt.Errorf("violate[%d]: %s acts when the listener is opened; start the simulator with --violate %s", i, id, id)
		}
		armed[id], order = kept, append(order, id)
	}
	next := &chain{}
	for _, e := range s.extensions {
		next.add(e.seams)
	}
	for _, id := range order {
		next.add(armed[id])
	}
	b.ids, b.seams = order, armed
	s.seams.Store(next)
	return nil
}

// Arm breaks exactly the rules that are named from now on; none: the simulator keeps all
// rules again. An id that is not known, and one that acts only when a listener is opened,
// is an error and changes nothing.
func (s *Sim) Arm(ids ...string) error { return s.arm(ids, false) }

// Armed lists every violation and whether it is armed, by id.
func (s *Sim) Armed() []ArmedViolation {
	b := &s.violations
	b.mu.Lock()
	ids := slices.Clone(b.ids)
	b.mu.Unlock()
	all := Violations()
	list := make([]ArmedViolation, len(all))
	for i, v := range all {
		list[i] = ArmedViolation{v, slices.Contains(ids, v.ID)}
	}
	return list
}

// violationEndpoints are the control endpoints of violations.
func (s *Sim) violationEndpoints() []endpoint {
	return []endpoint{
		{"GET", "/_control/violations", "lists the rules that can be broken, and which of them are; ?armed=true those that are", give(func(r *http.Request) (any, error) {
			armed, err := flagOf(r.URL.Query(), "armed")
			list := s.Armed()
			if armed {
				list = slices.DeleteFunc(list, func(v ArmedViolation) bool { return !v.Armed })
			}
			return map[string]any{"violations": list}, err
		})},
		{"POST", "/_control/violations", `{"violate":["RES-002"]} breaks exactly these rules from now on, [] none`, take(func(q struct {
			Violate []string `json:"violate"`
		}) (any, error) {
			return okReply{OK: true}, s.arm(q.Violate, false)
		})},
	}
}

// armConfigured goes back to the violations of the configuration.
func (s *Sim) armConfigured() {
	// It was possible at the start, and what acts on the listener is still on.
	if err := s.arm(s.config.Violate, true); err != nil {
		panic(err)
	}
}
