// Package restload models the clients of the REST API of a service under a load: the
// order of their calls, the rules of their replies (spec 2.1, 8), and the outcome of
// the runs that they started. It leaves connections, times and the load itself to the
// generator.
package restload

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// The scenarios of a load on the REST API of a service.
const (
	ScenarioList    = "list"    // every client walks lists, page by page
	ScenarioPoll    = "poll"    // every client fetches syncs and their latest runs
	ScenarioTrigger = "trigger" // every client starts runs and polls each to its end
)

const (
	defaultPerPage  = 25 // the service's own (spec 8)
	MostPerPage     = 100
	defaultInterval = 500 * time.Millisecond
	defaultRunTime  = 10 * time.Minute
)

// Options are a load on the REST API of a service instead of a custom destination:
// every connection is a client that does the same as programs do. Target.URL is the
// address of the service, with or without /api/v1, and Target.Token the API key of a
// workspace.
//
// Every request is due by the clock or by the reply before it, as a batch is, and counts
// as one record, which is acknowledged where its reply has passed all checks.
type Options struct {
	// Scenario is list, poll or trigger. Trigger starts runs: it needs write.
	Scenario string
	// Lists that the scenario list walks, one after the other; nil: syncs, destinations
	// and sources. they are datasets, destinations, sources, sync_runs,
	// syncs and webhooks; sync_runs needs Syncs.
	Lists []string
	// PerPage is how many items a page has, 1 to 100; 0: 25.
	PerPage int
	// Syncs by their id. Clients of the scenarios poll and trigger take turns with them;
	// poll without any takes those of the workspace, at most 1,000.
	Syncs []int64
	// FullSync requests runs that send every record.
	FullSync bool
	// PollInterval is how long a client waits before it fetches the same run again, in a
	// closed loop; 500 ms when 0.
	PollInterval time.Duration
	// RunTimeout is how long a run may take until it has ended; 10 minutes when 0.
	RunTimeout time.Duration
}

// WithDefaults checks the options.
func (s Options) WithDefaults(write bool) (Options, error) {
	switch s.Scenario {
	case ScenarioList, ScenarioPoll:
	case ScenarioTrigger:
		if len(s.Syncs) == 0 {
			return s, wire.Usagef("the scenario trigger starts runs of syncs: name each with --sync ID, and say so with --write")
		}
		if !write {
			return s, wire.Usagef("the scenario trigger starts runs, which write into the destination of the sync: say so with --write")
		}
	case "":
		return s, wire.Usagef("name the scenario: --scenario list, poll or trigger")
	default:
		return s, wire.Usagef("there is no scenario %q; there are list, poll and trigger", s.Scenario)
	}
	switch {
	case s.PerPage < 0 || s.PerPage > MostPerPage:
		return s, wire.Usagef("%s per page are not from 1 to %d", quantity.Count(s.PerPage, "item"), MostPerPage)
	case s.PollInterval < 0 || s.RunTimeout < 0:
		return s, wire.Usagef("an interval and a time limit cannot be negative")
	case len(s.Lists) > 0 && s.Scenario != ScenarioList:
		return s, wire.Usagef("lists are walked in the scenario list, not in %s", s.Scenario)
	case s.FullSync && s.Scenario != ScenarioTrigger:
		return s, wire.Usagef("full syncs are started in the scenario trigger, not in %s", s.Scenario)
	}
	for i, id := range s.Syncs {
		if id < 0 || slices.Contains(s.Syncs[:i], id) {
			return s, wire.Usagef("the sync %d is named twice, or is no id", id)
		}
	}
	for i, name := range s.Lists {
		if _, known := lists[name]; !known {
			return s, wire.Usagef("there is no list %q; there are %s", name, strings.Join(listNames(), ", "))
		}
		if slices.Contains(s.Lists[:i], name) {
			return s, wire.Usagef("the list %q is named twice", name)
		}
	}
	if s.Scenario == ScenarioList {
		if runs := slices.Contains(s.Lists, "sync_runs"); runs != (len(s.Syncs) > 0) {
			return s, wire.Usagef("the list sync_runs and --sync ID go together: a sync has a list of its runs")
		}
	}
	if len(s.Lists) == 0 {
		s.Lists = []string{"syncs", "destinations", "sources"}
	}
	set := func(d *time.Duration, v time.Duration) {
		*d = cmp.Or(*d, v)
	}
	set(&s.PollInterval, defaultInterval)
	set(&s.RunTimeout, defaultRunTime)
	s.PerPage = cmp.Or(s.PerPage, defaultPerPage)
	return s, nil
}

// callsOf are the calls of the scenarios that have always the same, by Kind.
var callsOf = map[string][]string{
	ScenarioPoll:    {"GET /syncs/{id}", "GET /syncs/{id}/sync_runs", "GET /sync_runs/{id}"},
	ScenarioTrigger: {"POST /syncs/{id}/trigger", "GET /sync_runs/{id}"},
}

// lists are the lists of the API that need nothing but a key of a workspace.
var lists = map[string]string{
	"syncs": "/syncs", "destinations": "/destinations", "sources": "/sources", "datasets": "/datasets", "webhooks": "/webhooks",
	"sync_runs": "", // of each sync that is named
}

// listNames are the lists that can be walked.
func listNames() []string { return slices.Sorted(maps.Keys(lists)) }

// Work is a load that is ready to be sent, with what its clients have found.
type Work struct {
	Options
	Walks []List
	Calls []string // the calls, by Kind: method and path without ids
	Found *Found
}

// NewWork prepares the requested work; Plan adds the lists.
func NewWork(o Options) *Work {
	return &Work{Options: o, Calls: callsOf[o.Scenario], Found: newFound()}
}

// List is a list with its path.
type List struct {
	Path string
	kind Kind
}

// Kind is the number of a call among those of a scenario.
type Kind uint8

// addList adds a list to those that are walked.
func (w *Work) addList(path, name string) {
	at := slices.Index(w.Calls, "GET "+name)
	if at < 0 {
		at = len(w.Calls)
		w.Calls = append(w.Calls, "GET "+name)
	}
	w.Walks = append(w.Walks, List{path, Kind(at)})
}

// Plan adds the requested lists.
func (w *Work) Plan() {
	for _, name := range w.Lists {
		if path := lists[name]; path != "" {
			w.addList(path, path)
			continue
		}
		for _, id := range w.Syncs {
			w.addList("/syncs/"+strconv.FormatInt(id, 10)+"/sync_runs", "/syncs/{id}/sync_runs")
		}
	}
}

// Runs are what became of the runs that were started.
type Runs struct {
	Started, Completed, Failed, Skipped, Canceled, Unfinished int64
	// Failure is the message of one that failed.
	Failure string
}

// Found is what all clients have found together.
type Found struct {
	Walks, Items atomic.Int64
	Open         atomic.Int64 // runs that have not ended

	mu    sync.Mutex
	runs  Runs
	ids   map[int64]bool // of all runs that were started
	toEnd *histogram.Histogram
}

func newFound() *Found {
	return &Found{ids: map[int64]bool{}, toEnd: histogram.New()}
}

// begin counts a run; false: there was one with its id.
func (f *Found) begin(id int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids[id] {
		return false
	}
	f.ids[id] = true
	f.runs.Started++
	f.Open.Add(1)
	return true
}

// finish counts a run that has ended.
func (f *Found) finish(run Item, took int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Open.Add(-1)
	switch {
	case run.status == "completed":
		f.runs.Completed++
		histogram.Record(f.toEnd, took)
	case run.status == "skipped":
		f.runs.Skipped++
	case run.canceled, run.status != "failed":
		f.runs.Canceled++
	default:
		f.runs.Failed++
		f.runs.Failure = foreign.Clip(run.message, wire.LongestMessage)
	}
}

// giveUp counts a run that has not ended in time.
func (f *Found) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Open.Add(-1)
	f.runs.Unfinished++
}

// Ended is what became of the runs, with the times to the end of those that completed.
func (f *Found) Ended() (Runs, *histogram.Histogram) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs, f.toEnd
}

// Reset forgets what a warm-up has found; no run is open.
func (f *Found) Reset() {
	f.Walks.Store(0)
	f.Items.Store(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs, f.toEnd = Runs{}, histogram.New()
}
