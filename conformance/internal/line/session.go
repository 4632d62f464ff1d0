// Package line owns the connections to an endpoint: it sends the calls of a run within the limits
// that the endpoint declares, repeats calls that a disturbance kept from their answer, and notices
// when the endpoint is away. It does not interpret calls.
package line

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/pause"
	"github.com/destkit/destkit/internal/quantity"
)

// Session is the line of one run to an endpoint: what all calls of the run share.
type Session struct {
	settings
	wires
	Watch watch
	// Disturbed are the calls that had no answer at first.
	Disturbed disturbances
	// JudgesAlone: the checks that run now have failed once and run alone.
	JudgesAlone atomic.Bool
	Responded   atomic.Bool // some HTTP response came to its end
	Uncounted   atomic.Bool // the hook has listed a key without a count
	Known       bool        // discovery has found the endpoint
	// Seen looks at every exchange; nil: nothing does.
	Seen func(req Request, r *exchange.Reply)

	budget struct {
		sync.Mutex
		sent int
	}
	ids struct {
		sync.Mutex
		rng *rand.Rand
	}
}

// settings are the options of a run, and its endpoint.
type settings struct {
	Target   conformance.Target
	Opts     conformance.Options
	URL      *url.URL
	InMemory bool
	Dev      bool // TLS checks are NOT_RUN and chains are not verified
	DevWhy   string
	Private  bool     // verified against roots that the author gave
	Token    tokenBox // the token of the connection; a hook may rotate it
	Secret   string   // the URL secret
}

// wires are the ways to the endpoint and to the hooks, with what limits them.
type wires struct {
	Client   *wire.Client
	Replicas replicas
	Redactor *wire.Redactor
	Hooks    *http.Client
	Readback hook.Readback
	Pace     *pace
	Trees    exchange.Trees
	Wide     *semaphore.Weighted // of KeptBodies
	// Queued is the call that got no answer as long as another connection was open, of
	// an endpoint that serves one at a time; nil: it serves several.
	Queued    *exchange.Reply
	stop      func()   // ends the server of a handler, nil without one
	validated sync.Map // requests without their records, as text
}

type tokenBox struct {
	sync.RWMutex
	value string
}

func (t *tokenBox) Get() string  { t.RLock(); defer t.RUnlock(); return t.value }
func (t *tokenBox) Set(v string) { t.Lock(); defer t.Unlock(); t.value = v }

// Validate refuses options that make no run.
func Validate(o conformance.Options) error {
	switch {
	case !slices.Contains([]conformance.Profile{conformance.ProfileSpec, conformance.ProfileV1, conformance.ProfileStrict}, o.Profile):
		return conformance.Usage("unknown profile %q: use spec, v1 or strict", o.Profile)
	case !slices.Contains([]conformance.Development{conformance.DevelopmentAuto, conformance.DevelopmentOn, conformance.DevelopmentOff}, o.Development):
		return conformance.Usage("unknown development mode %q: use auto, on or off", o.Development)
	case !slices.Contains([]string{"", conformance.SkipFailure, conformance.SkipSuccess, conformance.SkipSuccessWithMessage}, o.SkipConvention):
		return conformance.Usage("unknown skip convention %q: use failure, success or success-with-message", o.SkipConvention)
	case o.Write && len(o.Objects) == 0:
		return conformance.Usage("writing needs the name of an object: add --object NAME ('destkit plan URL' lists them)")
	case !o.Write && len(o.Objects) > 0 && (o.Readback.Set() || o.ReadbackFunc != nil):
		return conformance.Usage("a read-back hook needs --write: nothing is written to be read back")
	case o.MaxRecords < 0 || o.PlanningTimeout < 0 || o.BatchTimeout < 0 || o.Timeout < 0 || o.ReadbackWindow < 0:
		return conformance.Usage("limits and durations cannot be negative")
	case o.KeyFrom > o.KeyTo:
		return conformance.Usage("key range %d:%d is empty: FROM must not exceed TO", o.KeyFrom, o.KeyTo)
	case !strings.Contains(o.KeyTemplate, "{n}") || !strings.Contains(o.KeyTemplate, "{run}"):
		return conformance.Usage("key template %q needs {run} and {n}, so that keys are unique and recognisable", o.KeyTemplate)
	}
	return nil
}

// NewID makes a request id: 32 lower-case hex digits, unique in the run.
func (s *Session) NewID() string {
	s.ids.Lock()
	defer s.ids.Unlock()
	return fmt.Sprintf("%016x%016x", s.ids.rng.Uint64(), s.ids.rng.Uint64())
}

// Reserve takes n records from the budget of the run.
func (s *Session) Reserve(n int) error {
	s.budget.Lock()
	defer s.budget.Unlock()
	if s.budget.sent+n > s.Opts.MaxRecords {
		return engine.NotRun("--max-records", "needs %s, and %d of --max-records %d are left",
			quantity.Count(n, "more record"), s.Opts.MaxRecords-s.budget.sent, s.Opts.MaxRecords)
	}
	s.budget.sent += n
	return nil
}

// GiveBack returns records that were not sent.
func (s *Session) GiveBack(n int) {
	s.budget.Lock()
	defer s.budget.Unlock()
	s.budget.sent -= n
}

// SentRecords is how much of the budget is used up.
func (s *Session) SentRecords() int {
	s.budget.Lock()
	defer s.budget.Unlock()
	return s.budget.sent
}

func (s *Session) Hook(name string) conformance.HookSpec {
	h := &s.Opts.Hooks
	return map[string]conformance.HookSpec{
		"cleanup": h.Cleanup, "restart": h.Restart, "alter_schema": h.AlterSchema,
		"break_downstream": h.BreakDownstream, "rotate_token": h.RotateToken,
	}[name]
}

// WithDefaults fills what the caller left open, the form of the keys too.
func WithDefaults(o conformance.Options) conformance.Options {
	o.KeyTemplate = cmp.Or(o.KeyTemplate, values.DefaultKeyTemplate)
	return o.WithDefaults()
}

// NotApplicable: the rule does not bind this endpoint.
func NotApplicable(format string, args ...any) error {
	return engine.Outcome(conformance.NotApplicable, "", format, args...)
}

// Harness: the judge or a hook of the author failed, never the endpoint.
func Harness(format string, args ...any) error {
	return engine.Outcome(conformance.HarnessError, "", format, args...)
}

// Elapse lets time pass; the error is why the run ended before.
func Elapse(ctx context.Context, d time.Duration) error {
	if pause.For(ctx, d) != nil {
		return Overtime(ctx)
	}
	return nil
}

// CleanUpCheck is the check in the records of clean-up calls.
var CleanUpCheck = &conformance.Check{ID: "CLEAN", Title: "Clean-up"}

// Overtime returns why the run ended before this check did.
func Overtime(ctx context.Context) error {
	if cause := context.Cause(ctx); engine.IsOutcome(cause) {
		return cause
	}
	return engine.NotRun("", "the run was interrupted")
}

// pace keeps the judge inside the endpoint's own limits: get_sync_speed for
// records and parallel batches, X-RateLimit-Limit for requests (spec 8).
type pace struct {
	mu       sync.Mutex
	requests float64 // per second
	records  float64 // per second, 0: not declared
	nextCall time.Time
	nextRec  time.Time
	free     chan struct{} // one token for each batch that may be under way
}

// DefaultRateLimit is the connection-wide limit of spec 8 in requests/s.
const DefaultRateLimit = 50_000

func newPace() *pace { return &pace{requests: DefaultRateLimit} }

// wait returns when the next call with n records may be sent.
func (p *pace) wait(ctx context.Context, n int) error {
	p.mu.Lock()
	now := time.Now()
	at := now
	if p.nextCall.After(at) {
		at = p.nextCall
	}
	if n > 0 && p.nextRec.After(at) {
		at = p.nextRec
	}
	p.nextCall = at.Add(share(1, p.requests))
	if n > 0 && p.records > 0 {
		p.nextRec = at.Add(share(n, p.records))
	}
	p.mu.Unlock()
	d := at.Sub(now)
	if d < time.Millisecond {
		return ctx.Err()
	}
	return pause.For(ctx, d)
}

// share is the time that n of so many in a second take up, never too short.
func share(n int, perSecond float64) time.Duration {
	return time.Duration(math.Ceil(float64(n) * float64(time.Second) / perSecond))
}

// Declare takes over a declared speed.
func (p *pace) Declare(speed rpc.Speed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = float64(speed.MaximumRecordsPerSecond)
	p.free = make(chan struct{}, ParallelCap(speed))
}

// ParallelCap is the number of batches that the service sends at once.
func ParallelCap(speed rpc.Speed) int {
	return int(max(1, min(speed.MaximumParallelBatches, 50)))
}

// enter waits for a free batch slot; leave gives it back.
func (p *pace) enter(ctx context.Context) (leave func(), err error) {
	p.mu.Lock()
	free := p.free
	p.mu.Unlock()
	if free == nil {
		return func() {}, nil
	}
	select {
	case free <- struct{}{}:
		return func() { <-free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noticeRateLimit takes over a valid X-RateLimit-Limit of any reply (spec 8).
func (s *Session) noticeRateLimit(r *wire.Reply) {
	n, err := strconv.ParseInt(strings.TrimSpace(r.Header.Get("X-RateLimit-Limit")), 10, 64)
	if err != nil || n < 1 {
		return
	}
	s.Pace.mu.Lock()
	s.Pace.requests = float64(n)
	s.Pace.mu.Unlock()
}
