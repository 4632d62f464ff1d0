package rules

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// Traffic judges exchanges one after the other, by the rules that they decide, and keeps
// what of them the rules compare: the latest answers of planning calls, and counts.
// Everything in it is bounded. One goroutine at a time may use it.
type Traffic struct {
	Terms
	judges []*judge

	objects, spoke     *Call // results of list_objects and get_sync_speed
	fields, operations map[string]*Call
	speed              *rpc.Speed
	limits             []*Call // at which the header of the rate limit changed
	rateLimit          int64
	pace               pace
	authorized         string // the latest Authorization that was accepted
	callers            map[string]*caller
	batches            batches
	strange            strange
	handshake          atomic.Pointer[Handshake] // the latest
}

// pace is what was under way, and how much.
type pace struct {
	recent  [128]span
	at      int
	seconds [4]struct { // what was sent within one second
		at             int64
		calls, records int
	}
}

// New judges by the rules of these checks.
func New(terms Terms, checks []*conformance.Check) (*Traffic, error) {
	terms.finders = map[string]*wire.Redactor{}
	t := &Traffic{
		Terms: terms, fields: map[string]*Call{}, operations: map[string]*Call{}, callers: map[string]*caller{},
		batches: batches{groups: map[string]*kind{}, contents: map[uint64]bool{}, seed: maphash.MakeSeed()},
	}
	for _, c := range checks {
		r := rules[c.ID]
		if r == nil {
			continue
		}
		j := &judge{check: c, rule: r}
		sentences := r.claims
		if sentences == nil {
			sentences = c.Claims()
		}
		for _, sentence := range sentences {
			if claims[sentence] == nil {
				return nil, fmt.Errorf("judge %s: no rule says that %s", c.ID, sentence)
			}
			j.claims = append(j.claims, claims[sentence])
		}
		t.judges = append(t.judges, j)
	}
	return t, nil
}

// See judges an exchange by each rule that it decides.
func (t *Traffic) See(c *Call) (out []Verdict) {
	for _, j := range t.judges {
		if j.rule.takes != nil && j.rule.takes(t, c) {
			out = append(out, t.judge(j, c))
		}
	}
	t.keep(c)
	return out
}

// judge puts an exchange to the claims of a check.
func (t *Traffic) judge(j *judge, c *Call) Verdict {
	l := &Look{Terms: t.Terms, Replies: []*reply{c.reply}}
	if c.Batch != nil {
		l.Batches, l.Latest = []*Batch{c.Batch}, []*Batch{c.Batch}
	}
	if j.rule.with != nil {
		j.rule.with(t, c, l)
	}
	return j.puts(l, c)
}

// puts gives a look to the claims, up to the first that does not hold.
func (j *judge) puts(l *Look, c *Call) Verdict {
	v := Verdict{Check: j.check, Call: c, Look: l, Looked: 1}
	for _, claim := range j.claims {
		if err := claim(l); err != nil {
			if undecided, is := errors.AsType[*Undecided](err); is {
				v.Undecided = undecided.Reason
			}
			break
		}
	}
	return v
}

// Conclude judges by the rules that only the whole decides; it may be called again.
func (t *Traffic) Conclude(check string) (out []Verdict) {
	for _, j := range t.judges {
		if j.check.ID == check && j.rule.late != nil {
			return j.rule.late(t, j)
		}
	}
	return nil
}

// Connected notes the latest handshake; it is safe for parallel use.
func (t *Traffic) Connected(f *Handshake) { t.handshake.Store(f) }

// ForgetFields is called when the schema of the endpoint may have changed.
func (t *Traffic) ForgetFields() { clear(t.fields) }

// RateLimit is the latest that a reply has named, 0 for none.
func (t *Traffic) RateLimit() int64 { return t.rateLimit }

// Results counts the results of all batches.
func (t *Traffic) Results() int { return t.batches.results }

// caller is what became of the calls of one.
type caller struct {
	methods map[string]bool  // that gave a result
	heard   map[string]bool  // that gave another answer than a refusal
	refused map[string]*Call // the first, by method
	latest  time.Time        // when a call was accepted last
}

type span struct{ from, to time.Time }

// Limits of the history.
const (
	mostKept     = 2000   // objects, callers, groups
	mostContents = 20_000 // batches that are known again
	mostCallers  = 64
)

// keep notes an exchange once it is judged.
func (t *Traffic) keep(c *Call) {
	alone := !t.beside(c)
	t.pace.recent[t.pace.at%len(t.pace.recent)] = span{c.Started, c.Started.Add(c.Total)}
	t.pace.at++
	t.countSecond(c)
	if v := c.Header.Get(RateHeader); v != "" && alone && (len(t.limits) == 0 || v != t.limits[len(t.limits)-1].Header.Get(RateHeader)) {
		if t.limits = append(t.limits, c); len(t.limits) > 8 {
			t.limits = t.limits[1:]
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			t.rateLimit = n
		}
	}
	if c.form != goodForm {
		return
	}
	t.keepAccess(c)
	t.strange.keep(c)
	t.keepEmpty(c)
	if c.Batch != nil {
		if known := t.fields[c.Object]; known != nil && c.addsFields(known) {
			delete(t.fields, c.Object)
		}
		t.keepBatch(c)
		return
	}
	if c.Result() == nil {
		return
	}
	keep := func(in map[string]*Call) {
		if in[c.Object] != nil || len(in) < mostKept {
			in[c.Object] = c
		}
	}
	switch c.Method {
	case rpc.MethodListObjects:
		if c.Result().Get("objects") != nil {
			t.objects = c
		}
	case rpc.MethodListFields:
		keep(t.fields)
	case rpc.MethodSupportedOperations:
		keep(t.operations)
	case rpc.MethodGetSyncSpeed:
		t.spoke, t.speed = c, c.Speed()
	}
}

// addsFields reports whether a batch names fields that are not listed: they may be created on write.
func (c *Call) addsFields(listed *Call) bool {
	names := Texts(listed.Items("fields"), "field_api_name")
	return slices.ContainsFunc(c.params.Get("sync_plan", "schema").Members, func(m wire.Member) bool { return !slices.Contains(names, m.Name) })
}

func (t *Traffic) keepAccess(c *Call) {
	if !c.known() || c.auth == "" || !c.Ended() {
		return
	}
	a := t.callers[c.auth]
	if a == nil {
		if len(t.callers) >= mostCallers {
			return
		}
		a = &caller{methods: map[string]bool{}, heard: map[string]bool{}, refused: map[string]*Call{}}
		t.callers[c.auth] = a
	}
	switch {
	case c.Result() != nil:
		a.methods[c.Method], a.latest = true, c.Started
		t.authorized = c.auth
	case forbidden(c.reply):
		a.refused[c.Method] = cmp.Or(a.refused[c.Method], c)
	default:
		a.heard[c.Method] = true
	}
}

// admitted reports whether the caller was let in before: an error is not about who it is.
func (t *Traffic) admitted(c *Call) bool {
	return !forbidden(c.reply) && (c.auth == "" && t.authorized == "" || t.answered(c.auth))
}

// answered reports whether a caller has got a result.
func (t *Traffic) answered(auth string) bool {
	a := t.callers[auth]
	return a != nil && len(a.methods) > 0
}

// countSecond notes calls and records by the second of their beginning.
func (t *Traffic) countSecond(c *Call) {
	now := c.Started.Unix()
	s := &t.pace.seconds[now&3]
	if s.at != now {
		s.at, s.calls, s.records = now, 0, 0
	}
	s.calls++
	s.records += c.Records
}

// calm reports whether callers stayed clearly below what the endpoint declares.
func (t *Traffic) calm(c *Call) bool {
	limit := float64(t.rateLimit)
	if limit < 1 {
		limit = DefaultRateLimit
	}
	if t.speed == nil || t.besides(c)+1 > int(t.speed.MaximumParallelBatches) {
		return false
	}
	now := c.Started.Unix()
	for _, s := range t.pace.seconds {
		if s.at >= now-1 && s.at <= now &&
			(float64(s.calls+1) > 0.9*limit || float64(s.records+c.Records) > 0.9*float64(t.speed.MaximumRecordsPerSecond)) {
			return false
		}
	}
	return true
}

// besides counts the exchanges, of the latest, that were concurrent with this one.
func (t *Traffic) besides(c *Call) int {
	n := 0
	from, to := c.Started, c.Started.Add(c.Total)
	for _, s := range t.pace.recent[:] {
		if s.to.After(from) && s.from.Before(to) {
			n++
		}
	}
	return n
}

func (t *Traffic) beside(c *Call) bool { return t.besides(c) > 0 }
