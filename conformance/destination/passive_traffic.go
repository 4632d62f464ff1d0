package destination

import (
	"cmp"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// traffic is what a passive judge keeps of what went by: the latest answers of
// planning calls, and counts. Everything in it is bounded.
type traffic struct {
	objects, speed     *sighted // with a result
	fields, operations map[string]*sighted
	limits             []*sighted // at which the header of the rate limit changed
	limit              string
	results            int

	headers    map[uint64]bool // secrets that are known, by their hash
	authorized string          // the latest Authorization that was accepted
	accepted   map[string]*access
	recent     [128]span
	at         int
	seconds    [4]countedSecond
	groups     map[string]*group
	contents   map[uint64]bool // of batches that were processed
	seed       maphash.Seed
}

// access is what became of the calls of one caller.
type access struct {
	methods map[string]bool
	refused map[string]*sighted // the first, by method
	latest  time.Time           // when a call was accepted last
}

type span struct{ from, to time.Time }

// countedSecond counts what was sent within one second.
type countedSecond struct {
	at             int64
	calls, records int
}

// group counts batches of one kind.
type group struct {
	processed, refused int
	seen               *sighted // the smallest that was processed
	first              *sighted // the first that was refused
}

// Bounds of what is kept.
const (
	mostKept     = 2000   // objects, callers, groups
	mostContents = 20_000 // batches that are known again
)

func newTraffic() traffic {
	return traffic{
		fields: map[string]*sighted{}, operations: map[string]*sighted{}, headers: map[uint64]bool{}, accepted: map[string]*access{},
		groups: map[string]*group{}, contents: map[uint64]bool{}, seed: maphash.MakeSeed(),
	}
}

// known reports whether a header line was seen before, and notes it.
func (t *traffic) known(h wire.Header) bool {
	sum := maphash.String(t.seed, h.Name+"\x00"+h.Value)
	if t.headers[sum] {
		return true
	}
	if len(t.headers) < mostKept {
		t.headers[sum] = true
	}
	return false
}

// keep notes an exchange once it is judged.
func (t *traffic) keep(p *ruler, c *sighted) {
	alone := !t.beside(c)
	t.recent[t.at%len(t.recent)] = span{c.Started, c.Started.Add(c.Total)}
	t.at++
	t.countSecond(c)
	if v := c.Header.Get(rateHeader); v != "" && alone && (v != t.limit || len(t.limits) == 0) {
		t.limit, t.limits = v, append(t.limits, c)
		if len(t.limits) > 8 {
			t.limits = t.limits[1:]
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			p.s.catalog.rateLimit = n
		}
	}
	if c.form != goodForm {
		return
	}
	t.keepAccess(c)
	if c.batch != nil {
		t.forgetNewFields(c)
		t.keepBatch(p, c)
		return
	}
	if c.Result() == nil {
		return
	}
	keep := func(in map[string]*sighted) {
		if in[c.Object] != nil || len(in) < mostKept {
			in[c.Object] = c
		}
	}
	switch c.Method {
	case rpc.MethodListObjects:
		t.objects = c
		p.listed(readObjects(c.reply))
	case rpc.MethodListFields:
		keep(t.fields)
		if o := p.s.catalog.object(c.Object); o != nil {
			o.Fields = readFields(c.reply)
		}
	case rpc.MethodSupportedOperations:
		keep(t.operations)
		if o := p.s.catalog.object(c.Object); o != nil {
			o.Operations = readOperations(c.reply)
		}
	case rpc.MethodGetSyncSpeed:
		t.speed = c
		p.s.catalog.speed = readSpeed(c.reply)
	}
}

// forgetNewFields: a field that is created on write makes another schema.
func (t *traffic) forgetNewFields(c *sighted) {
	known := t.fields[c.Object]
	if known == nil {
		return
	}
	names := texts(known.Items("fields"), "field_api_name")
	for _, m := range c.params.Get("sync_plan", "schema").Members {
		if !slices.Contains(names, m.Name) {
			delete(t.fields, c.Object)
			return
		}
	}
}

// listed takes a new list of objects over, with what was known of those in it.
func (p *ruler) listed(now []*object) {
	for _, o := range now {
		if was := p.s.catalog.object(o.APIName); was != nil {
			o.Fields, o.Operations = was.Fields, was.Operations
		}
	}
	p.s.catalog.objects, p.s.catalog.listed = now, true
}

func (t *traffic) keepAccess(c *sighted) {
	if !c.known() || c.auth == "" || !c.Ended() {
		return
	}
	a := t.accepted[c.auth]
	if a == nil {
		if len(t.accepted) >= mostSecrets {
			return
		}
		a = &access{methods: map[string]bool{}, refused: map[string]*sighted{}}
		t.accepted[c.auth] = a
	}
	switch {
	case c.Result() != nil:
		a.methods[c.Method], a.latest = true, c.Started
		t.authorized = c.auth
	case c.Status == http.StatusUnauthorized || c.Status == http.StatusForbidden:
		a.refused[c.Method] = cmp.Or(a.refused[c.Method], c)
	}
}

// admitted reports whether the caller of an exchange was let in before, so that an error
// is not about who it is.
func (t *traffic) admitted(c *sighted) bool {
	if c.Status == http.StatusUnauthorized || c.Status == http.StatusForbidden {
		return false
	}
	if c.auth == "" {
		return t.authorized == ""
	}
	a := t.accepted[c.auth]
	return a != nil && len(a.methods) > 0
}

// countSecond notes calls and records by the second of their beginning.
func (t *traffic) countSecond(c *sighted) {
	now := c.Started.Unix()
	s := &t.seconds[now&3]
	if s.at != now {
		*s = countedSecond{at: now}
	}
	s.calls++
	s.records += c.records
}

// calm reports whether callers stayed clearly below what the endpoint declares, so
// that a refusal for the rate has no cause in them.
func (t *traffic) calm(p *ruler, c *sighted) bool {
	limit := p.s.catalog.rateLimit
	if limit < 1 {
		limit = defaultRateLimit
	}
	speed := p.s.catalog.speed
	if speed == nil || t.besides(c)+1 > int(speed.MaximumParallelBatches) {
		return false
	}
	now := c.Started.Unix()
	for _, s := range t.seconds {
		if s.at < now-1 || s.at > now {
			continue
		}
		if float64(s.calls+1) > 0.9*float64(limit) || float64(s.records+c.records) > 0.9*float64(speed.MaximumRecordsPerSecond) {
			return false
		}
	}
	return true
}

// besides counts the exchanges, of the latest, that were under way with this one.
func (t *traffic) besides(c *sighted) int {
	n := 0
	from, to := c.Started, c.Started.Add(c.Total)
	for i := range t.recent {
		if s := &t.recent[i]; s.to.After(from) && s.from.Before(to) {
			n++
		}
	}
	return n
}

func (t *traffic) beside(c *sighted) bool { return t.besides(c) > 0 }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
