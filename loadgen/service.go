package loadgen

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/loadgen/internal/pace"
	"github.com/destkit/destkit/loadgen/internal/restload"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// The scenarios of a load on the REST API of a service.
const (
	ScenarioList    = restload.ScenarioList    // every client walks lists, page by page
	ScenarioPoll    = restload.ScenarioPoll    // every client fetches syncs and their latest runs
	ScenarioTrigger = restload.ScenarioTrigger // every client starts runs and polls each to its end
)

// Service is a load on the REST API of a service instead of a custom destination.
type Service = restload.Options

const (
	apiBase         = "/api/v1"
	mostPolled      = 1000
	serviceClients  = 8 // connections of a closed loop
	settleInterval  = 100 * time.Millisecond
	mostServiceItem = 10_000 // kilobytes, about, that replies may have
)

// serviceDefaults checks the options of a load on a service.
func (o Options) serviceDefaults() (Options, error) {
	work := o.Work
	switch {
	case o.AsDeclared || o.Search != nil || o.InRecords:
		return o, wire.Usagef("a load on a service is a closed loop or has a rate of requests: a service declares no speed")
	case o.Closed && (len(o.Stages) > 0 || o.Burst.Size > 0):
		return o, wire.Usagef("a closed loop and rates exclude each other")
	case len(work.Objects) > 0 || len(work.Operations) > 0 || work.Data != nil || len(work.Template) > 0 || o.Verify != nil || o.Journal != "" || o.Cleanup || o.MaxRecords > 0:
		return o, wire.Usagef("a load on a service sends no records: objects, operations, data and what follows from them are those of a load on a destination")
	}
	o.Closed = len(o.Stages) == 0 && o.Burst.Size == 0
	checked, err := o.Service.WithDefaults(o.Write)
	if err != nil {
		return o, err
	}
	o.Service = &checked
	if o.Target.URL, err = apiURL(o.Target.URL, o.Target.Development); err != nil {
		return o, err
	}
	o.Target.Replicas = slices.Clone(o.Target.Replicas)
	for i, replica := range o.Target.Replicas {
		if o.Target.Replicas[i], err = apiURL(replica, o.Target.Development); err != nil {
			return o, wire.Usagef("replica: %s", err)
		}
	}
	return o.commonDefaults()
}

// apiURL is the base URL of the API of a service.
func apiURL(raw, development string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", wire.Usagef("the URL of the service does not parse: check the escapes, the port and the brackets")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", wire.Usagef("the URL of the service must start with https:// (or http:// in development), followed by its host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", wire.Usagef("the URL of the service is its address alone, such as https://HOST, with or without %s; the API key comes by --token-env", apiBase)
	case u.Scheme == "http" && development != "on" && (development == "off" || !reach.PrivateHost(u.Hostname())):
		return "", wire.Usagef("the service is plain http and its address is public: the API key could be read on the way; use https:// (--development on sends anyway)")
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), apiBase)+apiBase, ""
	return u.String(), nil
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

// newServiceSession checks the options and fetches what they name from the service.
func newServiceSession(ctx context.Context, o Options) (*session, error) {
	o, err := o.serviceDefaults()
	if err != nil {
		return nil, err
	}
	end, err := wire.NewEndpoint(o.Target, o.Transport)
	if err != nil {
		return nil, err
	}
	if end.Transport.Standard {
		end.Shared, _ = end.RoundTripper()
	}
	work := restload.NewWork(*o.Service)
	e := &engine{ctx: context.WithoutCancel(ctx), end: end, clock: pace.NewClock(), seed: o.Seed, plan: &plan{size: 1}, service: work, control: o.Control}
	if e.replicas, err = end.Replicas(o.Target); err != nil {
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

// settleService chooses omitted settings, and begins the result.
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

// apiUser is one client of the API: a connection with its scenario.
type apiUser struct {
	w        *worker
	scenario restload.Scenario
	base     string // path of the API at the process that it is connected to
	buf      []byte
}

func newAPIUser(w *worker, work *restload.Work) *apiUser {
	return &apiUser{w: w, base: w.end.URL.EscapedPath(), scenario: work.Client(w.number, w.e.clock.Now)}
}

// request makes the bytes of a call.
func (u *apiUser) request(c restload.Call) wire.Request {
	target := u.base + c.Path
	u.buf = append(append(append(append(u.buf[:0], c.Method...), ' '), target...), " HTTP/1.1\r\n"...)
	u.buf = append(u.buf, u.w.end.Lines...)
	if c.Method == http.MethodPost {
		u.buf = append(u.buf, "Content-Length: 0\r\n"...)
	}
	u.buf = append(u.buf, "\r\n"...)
	return wire.Request{Wire: u.buf, Method: c.Method, Target: target}
}

// ask sends the next call of the scenario, checks its reply and records it; false ends
// the connection's work.
func (u *apiUser) ask(ph phase, intended int64, waited bool) bool {
	c, ok := u.scenario.Next(ph.settle)
	if !ok || c.Again && !ph.open && !u.wait(ph) {
		return false
	}
	w := u.w
	s := w.due(intended, waited)
	s.records, s.call = 1, c.Kind
	rep, err := w.exchange(u.request(c), s.start)
	if err == nil {
		err = restload.CheckStatus(rep)
	}
	if err == nil {
		err = u.scenario.Took(c, rep.Body)
	}
	if !w.finish(&s, rep, err) {
		return false
	}
	if err != nil {
		w.fail(err, Example{Identifier: c.Method + " " + w.end.Redact(c.Path), At: float64(s.end) / 1e9})
		u.scenario.Lost(c)
	} else {
		s.good = 1
	}
	w.keep(s)
	w.pause(err)
	return true
}

// wait lets the interval between two questions pass; false: the phase has ended.
func (u *apiUser) wait(ph phase) bool {
	d := u.w.e.service.PollInterval
	if ph.settle {
		d = min(d, settleInterval)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-u.w.e.quit:
		return false
	}
}
