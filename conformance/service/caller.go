package service

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// Caller judges a service by its calls of a destination, as a third party between the two sees them: the checks about
// requests, pace and throttling, and nothing that shows elsewhere. One goroutine at a time may use it.
type Caller struct {
	suite *engine.Suite
	opts  conformance.Options
	dest  *destination
	run   *run
	rules []*callerRule
	paces []*callerRule
	limit *callerRule // PACE-013
	known *wire.Calls

	viewer         *wire.Viewer
	started        time.Time
	spent          time.Duration
	calls, records int
	callerMemory
}

// callerMemory is compared with later calls.
type callerMemory struct {
	seed    maphash.Seed
	ids     map[uint64]*endpoint.Call
	fields  map[string]map[string]*wire.Node
	speeds  []rpc.Speed // the latest two that were declared
	asked   int         // answers to get_sync_speed that no run has used up
	runs    map[string]bool
	batches map[string]*ring // by sync, of its latest run
	recent  *ring            // of all calls
	rests   map[string]rest  // by credentials
}

// rest is a time without calls that an answer has requested.
type rest struct{ from, to time.Time }

// callerRule is a check with the calls that its claims see.
type callerRule struct {
	watched *engine.Watched
	sc      *scenario
	judge   func(r *callerRule, c *endpoint.Call) bool // reports whether a call breaks the rule
	pace    func(sc *scenario, most rpc.Speed) error   // of a rule about the batches of a run together
}

// judgeBy lets a claim decide, which may be stopped.
func (r *callerRule) judgeBy(claim func() error) bool {
	return r.watched.JudgeBy(func() error { return caught(func() { stop(claim()) }) })
}

// expect judges a call by whether something is so.
func (r *callerRule) expect(is bool, expected, actual string, c *endpoint.Call) bool {
	return r.judgeBy(func() error {
		r.sc.expectCall(is, expected, actual, c)
		return r.sc.Held()
	})
}

// Bounds of what a Caller keeps.
const (
	mostIDs     = 100_000
	mostRuns    = 2000
	mostBatches = 128 // of one run
	mostCalls   = 1024
)

// ring are the latest calls of a kind, without their bodies.
type ring struct {
	calls []*endpoint.Call
	most  int
	added int    // of a run, or in all
	run   string // of batches
	speed rpc.Speed
	late  bool // the latest calls were not judged together
}

func (r *ring) add(c *endpoint.Call) {
	if len(r.calls) == r.most {
		r.calls = append(r.calls[:0], r.calls[r.most/2:]...)
	}
	r.calls = append(r.calls, c.Lean())
	r.added++
}

// NewCaller prepares a judge of who calls the endpoint at url, which is only shown.
func NewCaller(url string, secrets *wire.Redactor, opts conformance.Options) (*Caller, error) {
	j := &Caller{opts: opts, callerMemory: callerMemory{
		seed: maphash.MakeSeed(), ids: map[uint64]*endpoint.Call{}, fields: map[string]map[string]*wire.Node{},
		runs: map[string]bool{}, batches: map[string]*ring{}, recent: &ring{most: mostCalls}, rests: map[string]rest{},
	}}
	j.known, j.viewer = wire.NewCalls(url, secrets), wire.NewViewer(secrets, nil)
	server := endpoint.NewServer(secrets)
	j.run = &run{secrets: secrets}
	j.dest = &destination{Endpoint: server.Add("observed", nil), url: url}
	j.suite = &engine.Suite{
		Name: conformance.SuiteService, Target: "the caller of " + secrets.String(url), Catalogue: catalogue(), Steps: steps(), Secrets: secrets,
	}
	return j, caught(j.prepare)
}

// rule adds a check; claims are lines of the catalogue, none where judge has its own.
func (j *Caller) rule(id string, judge func(r *callerRule, c *endpoint.Call) bool, claims ...string) *callerRule {
	r := &callerRule{judge: judge}
	var err error
	r.watched, err = j.suite.Watch(id, func(found *engine.Findings) any {
		r.sc = &scenario{run: j.run, Findings: found, dest: j.dest}
		return r.sc
	}, claims...)
	stop(err)
	j.rules = append(j.rules, r)
	return r
}

// prepare lists the judged rules.
func (j *Caller) prepare() {
	one := func(id string, takes func(c *endpoint.Call) bool, claims ...string) {
		j.rule(id, func(r *callerRule, c *endpoint.Call) bool {
			if !takes(c) {
				return false
			}
			j.dest.Show(c)
			return r.watched.Judge()
		}, claims...)
	}
	whole := func(takes func(c *endpoint.Call) bool, ids ...string) {
		for _, id := range ids {
			if check, ok := j.suite.Catalogue.Check(id); ok {
				one(id, takes, check.Claims()...)
			}
		}
	}
	of := func(methods ...string) func(c *endpoint.Call) bool {
		return func(c *endpoint.Call) bool { return slices.Contains(methods, c.Method) }
	}
	batch := of(rpc.MethodSyncBatch)
	whole(func(*endpoint.Call) bool { return true }, "CALL-001", "CALL-019", "CALL-022")
	whole(func(c *endpoint.Call) bool { return c.JSON.Is(wire.Object) }, "CALL-004", "CALL-005", "CALL-018")
	whole(of(rpc.MethodTestConnection, rpc.MethodListObjects, rpc.MethodGetSyncSpeed), "CALL-006")
	whole(of(rpc.MethodListFields, rpc.MethodSupportedOperations), "CALL-007")
	whole(batch, "CALL-008")
	one("CALL-010", batch, `every call of "sync_batch" has an integer in "params.sync_plan.sync_run_id"`,
		`every call of "sync_batch" has an integer in "params.sync_plan.sync_id"`)
	j.rule("CALL-002", j.repeatedID)
	j.rule("CALL-003", j.appended)
	asked := func(id string, ask func(c *endpoint.Call) (expected, actual string)) {
		j.rule(id, func(r *callerRule, c *endpoint.Call) bool {
			if !batch(c) {
				return false
			}
			expected, actual := ask(c)
			return r.expect(expected == "", expected, actual, c)
		})
	}
	asked("CALL-012", func(c *endpoint.Call) (string, string) {
		return describes(c, j.fields[jsonvalue.Text(c.Param("sync_plan", "object", "object_api_name"))])
	})
	asked("CALL-013", func(c *endpoint.Call) (string, string) {
		if active := activeIdentifiers(c); len(active) != 1 {
			return "active_identifier true at one field, false at the others", fmt.Sprintf("true or no boolean at %q", active)
		}
		return "", ""
	})
	asked("CALL-014", identified)
	j.rule("PACE-001", j.speedNotAsked)
	j.rule("PACE-002", j.sized)
	paced := func(id string, pace func(sc *scenario, most rpc.Speed) error) {
		r := j.rule(id, j.paced)
		r.pace = pace
		j.paces = append(j.paces, r)
	}
	paced("PACE-003", func(sc *scenario, most rpc.Speed) error { return sc.fewAtOnce(int(most.MaximumParallelBatches), "") })
	paced("PACE-004", func(sc *scenario, _ rpc.Speed) error { return sc.fewAtOnce(50, "") })
	paced("PACE-006", func(sc *scenario, most rpc.Speed) error { return sc.slowRecords(int(most.MaximumRecordsPerSecond)) })
	j.limit = j.rule("PACE-013", j.limited)
	j.rule("THR-001", j.rested)
	j.rule("CALL-026", j.connected)
}

// Observe judges one call, answered with this status or 0 for none, and gives the ids of the checks that it breaks.
func (j *Caller) Observe(x *wire.Sight, status int) []string {
	if x.Method == http.MethodOptions || !j.known.Has(x) {
		return nil
	}
	if j.calls++; j.calls == 1 {
		j.started = x.Started
	}
	j.spent = max(j.spent, x.Started.Add(x.Total).Sub(j.started))
	c := j.dest.Recorded(x, status, responseHeader(x))
	j.records += len(c.Records())
	j.recent.add(c)
	if c.Method == rpc.MethodSyncBatch {
		j.addBatch(c)
	}
	var broken []string
	for _, r := range j.rules {
		if r.judge(r, c) {
			broken = append(broken, r.watched.ID())
		}
	}
	j.keep(c, x)
	return broken
}

// addBatch adds a batch to those of its run; the speed requested at the start of a run holds for that run.
func (j *Caller) addBatch(c *endpoint.Call) {
	kept := j.batches[syncOf(c)]
	if kept == nil {
		if len(j.batches) >= mostRuns {
			return
		}
		kept = &ring{most: mostBatches}
		j.batches[syncOf(c)] = kept
	}
	if run := jsonvalue.Raw(c.Param("sync_plan", "sync_run_id")); run != kept.run {
		j.endOf(kept)
		kept.calls, kept.added, kept.run = nil, 0, run
	}
	kept.add(c)
}

// responseHeader is that of the response, as far as it is looked at.
func responseHeader(x *wire.Sight) http.Header {
	out := http.Header{}
	if x.Raw == nil {
		for _, h := range x.Header {
			out.Add(h.Name, h.Value)
		}
		return out
	}
	head, _, _ := strings.Cut(string(x.Raw[:min(len(x.Raw), 16<<10)]), "\r\n\r\n")
	for line := range strings.SplitSeq(head, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			out.Add(name, strings.TrimSpace(value))
		}
	}
	return out
}

// keep notes what later calls are compared with.
func (j *Caller) keep(c *endpoint.Call, x *wire.Sight) {
	if s, err := strconv.ParseFloat(c.Header("Retry-After"), 64); err == nil && s > 1 && c.Status == http.StatusTooManyRequests && !c.Left {
		if len(j.rests) < mostRuns {
			j.rests[c.HTTP.Header.Get("Authorization")] = rest{c.Ended, c.Ended.Add(time.Duration((s - 1) * float64(time.Second)))}
		}
	}
	if c.Status != http.StatusOK || c.Method != rpc.MethodGetSyncSpeed && c.Method != rpc.MethodListFields {
		return
	}
	n, err := j.viewer.Reply(x).JSON()
	if err != nil {
		return
	}
	var reply struct{ Result rpc.Speed }
	switch {
	case c.Method == rpc.MethodListFields && len(j.fields) < mostRuns:
		stated := map[string]*wire.Node{}
		for _, f := range jsonvalue.Items(n.Get("result", "fields")) {
			stated[jsonvalue.Text(f.Get("field_api_name"))] = f
		}
		j.fields[jsonvalue.Text(c.Param("object", "object_api_name"))] = stated
	case c.Method == rpc.MethodGetSyncSpeed && json.Unmarshal(n.Raw, &reply) == nil && reply.Result.MaximumBatchSize > 0:
		j.asked++
		j.speeds = append(j.speeds[max(0, len(j.speeds)-1):], reply.Result)
	}
}

// Report sums up what the caller did so far.
func (j *Caller) Report() *conformance.Report {
	for _, ring := range j.batches {
		j.endOf(ring)
	}
	if all := j.recent; all.late {
		all.late = false
		j.limitedAt(j.limit, all.calls[len(all.calls)-1])
	}
	watched := lists.Of(j.rules, func(r *callerRule) *engine.Watched { return r.watched })
	r, err := j.suite.WatchedReport(watched, j.opts, j.started, j.spent, j.calls, j.records)
	if err != nil { // the options hold no selection, which alone can be wrong
		panic(err)
	}
	return r
}
