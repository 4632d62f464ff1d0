package loadgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/plural"
	"github.com/destkit/destkit/loadgen/internal/failure"
	"github.com/destkit/destkit/loadgen/internal/pace"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// The scenarios of a load on the REST API of a service.
const (
	ScenarioList    = "list"    // every client walks lists, page by page
	ScenarioPoll    = "poll"    // every client asks for syncs and their latest runs
	ScenarioTrigger = "trigger" // every client starts runs and polls each to its end
)

// Service is a load on the REST API of a service instead of a custom destination:
// every connection is a client that does the same as programs do. Target.URL is the
// address of the service, with or without /api/v1, and Target.Token the API key of a
// workspace.
//
// Every request is due by the clock or by the reply before it, as a batch is, and counts
// as one record, which is acknowledged where its reply has passed all checks.
type Service struct {
	// Scenario is list, poll or trigger. Trigger starts runs: it needs Options.Write.
	Scenario string
	// Lists that the scenario list walks, one after the other; nil: syncs, destinations
	// and sources. ListNames has all of them; sync_runs needs Syncs.
	Lists []string
	// PerPage is how many items a page has, 1 to 100; 0: 25.
	PerPage int
	// Syncs by their id. Clients of the scenarios poll and trigger take turns with them;
	// poll without any takes those of the workspace, at most 1,000.
	Syncs []int64
	// FullSync asks for runs that send every record.
	FullSync bool
	// PollInterval is how long a client waits before it asks for the same run again, in a
	// closed loop; 500 ms when 0.
	PollInterval time.Duration
	// RunTimeout is how long a run may take until it has ended; 10 minutes when 0.
	RunTimeout time.Duration
}

const (
	apiBase         = "/api/v1"
	defaultPerPage  = 25 // the service's own (spec 8)
	mostPerPage     = 100
	mostPolled      = 1000
	serviceClients  = 8 // connections of a closed loop
	defaultInterval = 500 * time.Millisecond
	settleInterval  = 100 * time.Millisecond
	defaultRunTime  = 10 * time.Minute
	mostServiceItem = 10_000 // kilobytes, about, that replies may have
)

// callsOf are the calls of the scenarios that have always the same, by callKind.
var callsOf = map[string][]string{
	ScenarioPoll:    {"GET /syncs/{id}", "GET /syncs/{id}/sync_runs", "GET /sync_runs/{id}"},
	ScenarioTrigger: {"POST /syncs/{id}/trigger", "GET /sync_runs/{id}"},
}

// lists are the lists of the API that need nothing but a key of a workspace.
var lists = map[string]string{
	"syncs": "/syncs", "destinations": "/destinations", "sources": "/sources", "datasets": "/datasets", "webhooks": "/webhooks",
	"sync_runs": "", // of each sync that is named
}

// ListNames are the lists that Service.Lists can name.
func ListNames() []string { return slices.Sorted(maps.Keys(lists)) }

// withDefaults checks what is asked for.
func (s Service) withDefaults(write bool) (Service, error) {
	switch s.Scenario {
	case ScenarioList, ScenarioPoll:
	case ScenarioTrigger:
		if len(s.Syncs) == 0 {
			return s, failure.Usagef("the scenario trigger starts runs of syncs: name each with --sync ID, and say so with --write")
		}
		if !write {
			return s, failure.Usagef("the scenario trigger starts runs, which write into the destination of the sync: say so with --write")
		}
	case "":
		return s, failure.Usagef("name the scenario: --scenario list, poll or trigger")
	default:
		return s, failure.Usagef("there is no scenario %q; there are list, poll and trigger", s.Scenario)
	}
	switch {
	case s.PerPage < 0 || s.PerPage > mostPerPage:
		return s, failure.Usagef("%s per page are not from 1 to %d", plural.Count(s.PerPage, "item"), mostPerPage)
	case s.PollInterval < 0 || s.RunTimeout < 0:
		return s, failure.Usagef("an interval and a time limit cannot be negative")
	case len(s.Lists) > 0 && s.Scenario != ScenarioList:
		return s, failure.Usagef("lists are walked in the scenario list, not in %s", s.Scenario)
	case s.FullSync && s.Scenario != ScenarioTrigger:
		return s, failure.Usagef("full syncs are started in the scenario trigger, not in %s", s.Scenario)
	}
	for i, id := range s.Syncs {
		if id < 0 || slices.Contains(s.Syncs[:i], id) {
			return s, failure.Usagef("the sync %d is named twice, or is no id", id)
		}
	}
	for i, name := range s.Lists {
		if _, known := lists[name]; !known {
			return s, failure.Usagef("there is no list %q; there are %s", name, strings.Join(ListNames(), ", "))
		}
		if slices.Contains(s.Lists[:i], name) {
			return s, failure.Usagef("the list %q is named twice", name)
		}
	}
	if s.Scenario == ScenarioList {
		if runs := slices.Contains(s.Lists, "sync_runs"); runs != (len(s.Syncs) > 0) {
			return s, failure.Usagef("the list sync_runs and --sync ID go together: a sync has a list of its runs")
		}
	}
	if len(s.Lists) == 0 {
		s.Lists = []string{"syncs", "destinations", "sources"}
	}
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&s.PollInterval, defaultInterval)
	set(&s.RunTimeout, defaultRunTime)
	if s.PerPage == 0 {
		s.PerPage = defaultPerPage
	}
	return s, nil
}

// serviceDefaults checks the options of a load on a service.
func (o Options) serviceDefaults() (Options, error) {
	work := o.Work
	switch {
	case o.AsDeclared || o.Search != nil || o.InRecords:
		return o, failure.Usagef("a load on a service is a closed loop or has a rate of requests: a service declares no speed")
	case o.Closed && (len(o.Stages) > 0 || o.Burst.Size > 0):
		return o, failure.Usagef("a closed loop and rates exclude each other")
	case len(work.Objects) > 0 || len(work.Operations) > 0 || work.Data != nil || len(work.Template) > 0 || o.Verify != nil || o.Journal != "" || o.Cleanup || o.MaxRecords > 0:
		return o, failure.Usagef("a load on a service sends no records: objects, operations, data and what follows from them are those of a load on a destination")
	}
	o.Closed = len(o.Stages) == 0 && o.Burst.Size == 0
	service, err := o.Service.withDefaults(o.Write)
	if err != nil {
		return o, err
	}
	o.Service = &service
	if o.Target.URL, err = apiURL(o.Target.URL, o.Target.Development); err != nil {
		return o, err
	}
	o.Target.Replicas = slices.Clone(o.Target.Replicas)
	for i, replica := range o.Target.Replicas {
		if o.Target.Replicas[i], err = apiURL(replica, o.Target.Development); err != nil {
			return o, failure.Usagef("replica: %s", err)
		}
	}
	return o.commonDefaults()
}

// apiURL is the base URL of the API of a service.
func apiURL(raw, development string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", failure.Usagef("the URL of the service does not parse: check the escapes, the port and the brackets")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", failure.Usagef("the URL of the service must start with https:// (or http:// in development), followed by its host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", failure.Usagef("the URL of the service is its address alone, such as https://HOST, with or without %s; the API key comes by --token-env", apiBase)
	case u.Scheme == "http" && development != "on" && (development == "off" || !wire.PrivateHost(u.Hostname())):
		return "", failure.Usagef("the service is plain http and its address is public: the API key could be read on the way; use https:// (--development on sends anyway)")
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), apiBase)+apiBase, ""
	return u.String(), nil
}

// serviceWork is a Service that is ready to be sent, with what its clients have found.
type serviceWork struct {
	Service
	walks []listToWalk
	calls []string // what is asked, by callKind: method and path without ids
	found *serviceFound
}

// listToWalk is a list with its path.
type listToWalk struct {
	path string
	kind callKind
}

// callKind is the number of a call among those of a scenario.
type callKind uint8

// addList adds a list to those that are walked.
func (w *serviceWork) addList(path, name string) {
	at := slices.Index(w.calls, "GET "+name)
	if at < 0 {
		at = len(w.calls)
		w.calls = append(w.calls, "GET "+name)
	}
	w.walks = append(w.walks, listToWalk{path, callKind(at)})
}

// runService loads the API of a service.
func runService(ctx context.Context, o Options) (_ *Result, err error) {
	s, err := newServiceSession(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { s.e.end.Hidden.Value(s.result) }()
	defer s.e.close()
	if err := s.wait(ctx); err != nil {
		return s.result, err
	}
	return s.result, s.load(ctx)
}

// newServiceSession checks the options and asks the service for what they name.
func newServiceSession(ctx context.Context, o Options) (*session, error) {
	o, err := o.serviceDefaults()
	if err != nil {
		return nil, err
	}
	end, err := wire.NewEndpoint(wire.Target(o.Target), wire.Transport(o.Transport))
	if err != nil {
		return nil, err
	}
	if end.Transport.Standard {
		end.Shared, _ = end.RoundTripper()
	}
	work := &serviceWork{Service: *o.Service, calls: callsOf[o.Service.Scenario], found: newServiceFound()}
	e := &engine{ctx: context.WithoutCancel(ctx), end: end, clock: pace.NewClock(), seed: o.Seed, plan: &plan{size: 1}, service: work, control: o.Control}
	if e.replicas, err = end.Replicas(wire.Target(o.Target)); err != nil {
		return nil, err
	}
	s := &session{o: o, e: e}
	s.settleService()
	end.Bound(mostServiceItem, s.o.Connections, o.Transport.MaxReply)
	for _, r := range e.replicas {
		r.Transport.MaxReply = end.Transport.MaxReply
	}
	if err := s.discoverService(ctx); err != nil {
		e.close()
		return nil, err
	}
	return s, nil
}

// settleService chooses what was left open, and begins the result.
func (s *session) settleService() {
	o := &s.o
	mode := "open"
	if o.Closed {
		mode = "closed"
	}
	if o.Connections == 0 {
		if o.Connections = openConnections; o.Closed {
			o.Connections = serviceClients
		}
	}
	s.e.connections = o.Connections
	s.begin(mode)
	s.result.Declared = nil
	s.result.Target.Objects, s.result.Load.Operations = []Share{}, []Share{}
	s.result.Load.Records, s.result.Load.Scenario = "none", o.Service.Scenario
}

// discoverService asks once for everything that the load is about: a wrong key or sync
// shows before it.
func (s *session) discoverService(ctx context.Context) error {
	work := s.e.service
	if work.Scenario == ScenarioList {
		for _, name := range work.Lists {
			if path := lists[name]; path != "" {
				work.addList(path, path)
				continue
			}
			for _, id := range work.Syncs {
				work.addList("/syncs/"+strconv.FormatInt(id, 10)+"/sync_runs", "/syncs/{id}/sync_runs")
			}
		}
		for _, list := range work.walks {
			if _, err := s.firstPage(ctx, list.path, 1, work.PerPage); err != nil {
				return err
			}
		}
		return nil
	}
	for _, id := range work.Syncs {
		c := apiCall{method: http.MethodGet, path: "/syncs/" + strconv.FormatInt(id, 10)}
		if err := s.askOnce(ctx, c, func(body []byte) error { return checkSync(body, id) }); err != nil {
			return err
		}
	}
	for page := int64(1); len(s.o.Service.Syncs) == 0; page++ {
		p, err := s.firstPage(ctx, "/syncs", page, mostPerPage)
		if err != nil {
			return err
		}
		for _, item := range p.items {
			work.Syncs = append(work.Syncs, item.id)
		}
		if p.next == 0 || len(work.Syncs) >= mostPolled {
			break
		}
	}
	if len(work.Syncs) == 0 {
		return failure.Usagef("the workspace has no sync that could be polled")
	}
	if work.Syncs = work.Syncs[:min(len(work.Syncs), mostPolled)]; len(work.Syncs) == mostPolled {
		s.note("the workspace has %d syncs or more: these are polled", mostPolled)
	}
	return nil
}

// firstPage asks for a page of a list before the load.
func (s *session) firstPage(ctx context.Context, path string, page int64, perPage int) (p *listPage, err error) {
	c := apiCall{method: http.MethodGet, path: pagePath(path, page, perPage, "asc")}
	err = s.askOnce(ctx, c, func(body []byte) error {
		p, err = decodePage(body, page, perPage)
		return err
	})
	return p, err
}

// askOnce sends one request before the load. What is wrong with the reply is the load's
// to count, unless nothing can be sent at all.
func (s *session) askOnce(ctx context.Context, c apiCall, check func(body []byte) error) error {
	w := s.e.newWorker(firstSender)
	defer w.line.Close()
	stop := context.AfterFunc(ctx, w.line.Interrupt)
	defer stop()
	timer := time.AfterFunc(s.e.end.Transport.PlanningTimeout, w.line.Interrupt)
	defer timer.Stop()
	rep, err := w.exchange(w.user.request(c), s.e.clock.Now())
	if err == nil {
		err = checkStatus(rep)
	}
	if err == nil {
		err = check(rep.Body)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("interrupted before the load")
	}
	what := s.e.end.Redact(fmt.Sprintf("%s %s: %s", c.method, c.path, failure.MessageOf(err)))
	switch rep.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s; --token-env names the variable with the API key of the workspace", what)
	case http.StatusNotFound:
		return failure.Usagef("%s; is the URL that of a service, and the id one of this workspace?", what)
	}
	return errors.New(what)
}

// followRuns polls the runs that are still going after a load, so that each of them has
// ended or is called unfinished. Nothing of it is measured; its errors count.
func (s *session) followRuns(ctx context.Context, m *measure) {
	if s.e.service == nil || s.e.service.found.open.Load() == 0 || ctx.Err() != nil {
		return
	}
	open := 0
	for _, w := range s.e.workers {
		if w.user.scenario.open() {
			open++
		}
	}
	if s.o.Note != nil {
		s.o.Note(fmt.Sprintf("%s still going: polled to the end, for %s at most", plural.Count(open, "run"), s.o.Service.RunTimeout))
	}
	of := s.e.pacer // of the load: what it has asked for is said later
	defer func() { s.e.pacer = of }()
	ph := phase{connections: s.o.Connections, settle: true, duration: s.o.Service.RunTimeout + time.Second}
	ph.watch = s.watcher("settle", 0, phase{})
	after := s.e.run(ctx, ph)
	for key, t := range after.tallies {
		if have := m.tallies[key]; have != nil {
			have.Count += t.Count
		} else {
			m.tallies[key] = t
		}
	}
}
