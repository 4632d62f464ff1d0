package destsim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

// Fault is one injected failure, for testing a service. Kind selects it (see
// FaultKinds), When its calls or records; the other members are parameters,
// of which every kind takes its own.
//
// Unlike a violation a fault does not break a rule of the catalogue: it is
// what networks and good destinations do on a bad day. Faults look at calls
// that carry the right token and URL secret, and never at control calls.
type Fault struct {
	Kind string  `json:"kind"`
	When Trigger `json:"when"`

	// At is before (the default: nothing has been stored yet), after (the
	// batch is stored, the answer is not sent) or, for a reset or a close,
	// between (Records of the batch are stored, the others are not).
	At string `json:"at,omitempty"`
	// Delay of the kind delay.
	Delay *Delay `json:"delay,omitempty"`
	// Code, Message and Data of an error object; Message of a record result.
	Code    int64           `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	// Status, Headers and Body of an HTTP answer; without Body a JSON-RPC
	// error object travels under the status.
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	// RetryAfter of a 429: seconds (the default), date, absent or garbage.
	RetryAfter string `json:"retry_after,omitempty"`
	Seconds    int    `json:"seconds,omitempty"` // the value of Retry-After, 1 when 0
	// Bytes of a body that are sent (truncate; half of it when 0), that are
	// sent before the pause (stall), or that make a piece (slow_body, 16).
	Bytes   int     `json:"bytes,omitempty"`
	PauseMS float64 `json:"pause_ms,omitempty"` // 100 when 0
	// Records is how many results are invented (extra_results, 1), how many
	// records are stored (at between, half of them), or, for the kinds that
	// act on records, at most how many of one call, counted from its end (all).
	Records int `json:"records,omitempty"`
	// ID is the raw JSON id of the kind wrong_id, "wrong-id" when absent.
	ID json.RawMessage `json:"id,omitempty"`
	// Drift of the kind schema.
	Drift *Drift `json:"drift,omitempty"`
	// Speeds are answered one after the other and over again.
	Speeds []rpc.Speed `json:"speeds,omitempty"`
	// Limits are values of X-RateLimit-Limit, sent one after the other and
	// over again; "" leaves the header out.
	Limits []string `json:"limits,omitempty"`
}

// ArmedFault is a fault with its counters.
type ArmedFault struct {
	ID      string `json:"id"` // f1, f2, … in the order of arming
	Fault   Fault  `json:"fault"`
	Armed   bool   `json:"armed"`   // false once it was disarmed
	Matched int64  `json:"matched"` // calls or records that its filters let through
	Fired   int64  `json:"fired"`
}

// armed is a fault on the board; its counters are guarded by the board.
type armed struct {
	ArmedFault
	kind    FaultKind
	methods []string
	chance  *rand.Rand
}

// Bounds of the board.
const (
	maxArmed    = 1000
	maxDisarmed = 1000
)

// faultBoard holds the faults of one simulator.
type faultBoard struct {
	seed  uint64
	live  atomic.Int64 // armed ones: calls look at nothing else while it is 0
	fired func(kind string)

	mu    sync.Mutex
	next  int
	list  []*armed
	count int // disarmed ones in the list
}

// ArmFault checks a fault, puts it into force for all calls that begin later,
// and gives its id.
func (s *Sim) ArmFault(fault Fault) (string, error) { return s.faults.arm(fault) }

// DisarmFault takes a fault out of force; calls on their way keep it. The
// error is ErrUnknownFault when nothing of that id is armed.
func (s *Sim) DisarmFault(id string) error { return s.faults.disarmOne(id) }

// Faults lists all faults since the start or the last reset, the disarmed ones
// too.
func (s *Sim) Faults() []ArmedFault { return s.faults.all(false) }

// UnfiredFaults lists the faults that never fired, armed or not: a test that
// relies on one of them has tested nothing.
func (s *Sim) UnfiredFaults() []ArmedFault { return s.faults.all(true) }

func (b *faultBoard) arm(fault Fault) (string, error) {
	kind, err := fault.check()
	if err != nil {
		return "", fmt.Errorf("arm fault: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live.Load() >= maxArmed {
		return "", fmt.Errorf("arm fault: %d faults are armed already", maxArmed)
	}
	b.next++
	seed := cmp.Or(fault.When.Seed, b.seed^uint64(b.next))
	a := &armed{
		ArmedFault: ArmedFault{ID: fmt.Sprintf("f%d", b.next), Fault: fault, Armed: true},
		kind:       kind, methods: fault.methods(kind), chance: rand.New(rand.NewPCG(seed, 0xfa017)),
	}
	b.list = append(b.list, a)
	b.live.Add(1)
	return a.ID, nil
}

// disarm disarms the selected faults and returns their number. The oldest disarmed ones
// beyond the bound are forgotten.
func (b *faultBoard) disarm(meant func(a *armed) bool) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.list {
		if a.Armed && meant(a) {
			a.Armed = false
			n++
		}
	}
	b.live.Add(int64(-n))
	b.count += n
	b.list = slices.DeleteFunc(b.list, func(a *armed) bool {
		if a.Armed || b.count <= maxDisarmed {
			return false
		}
		b.count--
		return true
	})
	return n
}

func (b *faultBoard) disarmAll() int { return b.disarm(func(*armed) bool { return true }) }

func (b *faultBoard) disarmOne(id string) error {
	if b.disarm(func(a *armed) bool { return a.ID == id }) == 0 {
		return fmt.Errorf("disarm fault %q: %w", clip(id), ErrUnknownFault)
	}
	return nil
}

func (b *faultBoard) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list, b.count, b.next = nil, 0, 0
	b.live.Store(0)
}

func (b *faultBoard) all(unfired bool) []ArmedFault {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []ArmedFault{}
	for _, a := range b.list {
		if !unfired || a.Fired == 0 {
			list = append(list, a.ArmedFault)
		}
	}
	return list
}

// endpoints are the control endpoints of faults.
func (b *faultBoard) endpoints() []endpoint {
	return []endpoint{
		{"POST", "/_control/faults", `arms {"kind","when":{…},…}, gives its id`, take(func(f Fault) (any, error) {
			id, err := b.arm(f)
			return struct {
				OK bool   `json:"ok"`
				ID string `json:"id"`
			}{true, id}, err
		})},
		{"GET", "/_control/faults", "lists faults and how often they fired; ?unfired=true those that never did", give(func(r *http.Request) (any, error) {
			unfired, err := flagOf(r.URL.Query(), "unfired")
			return map[string]any{"faults": b.all(unfired)}, err
		})},
		{"GET", "/_control/faults/kinds", "lists the kinds of faults with their parameters", give(func(*http.Request) (any, error) {
			return map[string]any{"kinds": FaultKinds()}, nil
		})},
		{"DELETE", "/_control/faults", "disarms all", give(func(*http.Request) (any, error) {
			return struct {
				OK       bool `json:"ok"`
				Disarmed int  `json:"disarmed"`
			}{true, b.disarmAll()}, nil
		})},
		{"DELETE", "/_control/faults/{id}", "disarms one", give(func(r *http.Request) (any, error) {
			return okReply{OK: true}, b.disarmOne(r.PathValue("id"))
		})},
	}
}

// Delay is a distribution of durations, all in milliseconds.
type Delay struct {
	// Distribution is fixed (MS), uniform (MinMS to MaxMS), normal (MeanMS,
	// StddevMS), exponential (MeanMS) or pareto (ScaleMS, the smallest value,
	// and Shape, the smaller the heavier the tail). "" is fixed.
	Distribution string  `json:"distribution,omitempty"`
	MS           float64 `json:"ms,omitempty"`
	MinMS        float64 `json:"min_ms,omitempty"`
	MaxMS        float64 `json:"max_ms,omitempty"`
	MeanMS       float64 `json:"mean_ms,omitempty"`
	StddevMS     float64 `json:"stddev_ms,omitempty"`
	ScaleMS      float64 `json:"scale_ms,omitempty"`
	Shape        float64 `json:"shape,omitempty"`
	CapMS        float64 `json:"cap_ms,omitempty"` // the longest, 60000 when 0
}

// distributions has the parameters that each distribution takes, and how a value is drawn.
var distributions = map[string]struct {
	takes []string
	draw  func(d *Delay, chance *rand.Rand) float64
}{
	"fixed":       {[]string{"ms"}, func(d *Delay, _ *rand.Rand) float64 { return d.MS }},
	"uniform":     {[]string{"min_ms", "max_ms"}, func(d *Delay, c *rand.Rand) float64 { return d.MinMS + c.Float64()*(d.MaxMS-d.MinMS) }},
	"normal":      {[]string{"mean_ms", "stddev_ms"}, func(d *Delay, c *rand.Rand) float64 { return d.MeanMS + c.NormFloat64()*d.StddevMS }},
	"exponential": {[]string{"mean_ms"}, func(d *Delay, c *rand.Rand) float64 { return c.ExpFloat64() * d.MeanMS }},
	"pareto":      {[]string{"scale_ms", "shape"}, func(d *Delay, c *rand.Rand) float64 { return d.ScaleMS / math.Pow(1-c.Float64(), 1/d.Shape) }},
}

func (d *Delay) check() error {
	name := cmp.Or(d.Distribution, "fixed")
	distribution, known := distributions[name]
	if !known {
		return fmt.Errorf("delay.distribution: unknown distribution %q%s", clip(name),
			didYouMean(name, []string{"fixed", "uniform", "normal", "exponential", "pareto"}))
	}
	if err := onlyMembers(d, "delay."+name, append(slices.Clone(distribution.takes), "distribution", "cap_ms")); err != nil {
		return err
	}
	for _, v := range []float64{d.MS, d.MinMS, d.MaxMS, d.MeanMS, d.StddevMS, d.ScaleMS, d.Shape, d.CapMS} {
		if !(v >= 0 && v <= 3600000) {
			return errors.New("delay: every number must be between 0 and 3600000")
		}
	}
	switch {
	case name == "uniform" && d.MaxMS < d.MinMS:
		return errors.New("delay.max_ms: is less than min_ms")
	case name == "pareto" && (d.ScaleMS == 0 || d.Shape == 0):
		return errors.New("delay.scale_ms and delay.shape: must be more than 0")
	}
	return nil
}

// draw gives one value in milliseconds, from 0 to the cap.
func (d *Delay) draw(chance *rand.Rand) float64 {
	ms := distributions[cmp.Or(d.Distribution, "fixed")].draw(d, chance)
	return min(max(ms, 0), cmp.Or(d.CapMS, 60000))
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
