// Package service judges a service, by its REST API and by how it calls destinations (spec 2 to 9).
// It drives the service through its API and watches it through its own destinations, the endpoints:
// every connection that a scenario makes leads to a simulated destination, whose every call is
// recorded and can be answered by hand.
//
// It knows neither the service's code nor the simulator's: the caller supplies a simulator, and
// whatever listens.
package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// Target is the service under judgement.
type Target struct {
	BaseURL      string // of the API; it ends in /api/v1 (spec 9)
	ControlURL   string // ends in /_control; without it checks that move time do not run, or wait for real
	ControlToken string
	// PersonalAccessToken opens what belongs to an organization, WorkspaceAPIKey what belongs to a workspace (spec 5.1).
	// Without the key the run creates its own workspace, with the token.
	PersonalAccessToken string
	WorkspaceAPIKey     string
	Roots               *x509.CertPool // verify the service's certificate; nil: the system's
}

// Simulator is a simulated destination.
type Simulator interface {
	http.Handler
	// RecordsJSON gives at most limit records of an object, {"id":…,"fields":{…}}
	// in the order of their making, whose id is above after, and how many there are.
	RecordsJSON(object string, after int64, limit int) ([]json.RawMessage, int, error)
	Close() error
}

// SimulatorConfig is what a simulator has to be.
type SimulatorConfig struct {
	Objects    []rpc.Object
	Fields     map[string][]rpc.Field // by object
	Operations map[string][]string    // by object
	Speed      rpc.Speed
}

// Listen makes a handler reachable for the service, with TLS unless config is nil, and returns its URL.
type Listen func(config *tls.Config, h http.Handler) (address string, stop func(), err error)

// Options of a run. Those of conformance.Options that speak of destinations are ignored.
type Options struct {
	conformance.Options
	Dialect string // "spec" (default) or "live": there the named differences are known and waived
	// NewSimulator and Listen make destinations; both are needed.
	NewSimulator func(SimulatorConfig) (Simulator, error)
	Listen       Listen
	SourceID     int64 // an SQL source of the workspace to read from; 0 makes an emulated one
	Patient      bool  // waits for real where there is no clock to move, at most 15 minutes at a time
	// RequestTimeout is after how long the service gives a request up, such as its own deadline: a
	// call that it gives up until a third and half a second later passes, one that it has not given
	// up after twice that is broken, between them nothing is decided. 0: unknown, and a call that
	// it has not given up after a while stays undecided (spec 8: the duration is not shown).
	RequestTimeout time.Duration

	time timepiece // of tests; zero is that of the machine
}

// Run judges a service. As with conformance.Run a report comes back whenever there was something to judge; a
// *conformance.UsageError is a mistake of the caller.
func Run(ctx context.Context, target Target, opts Options) (*conformance.Report, error) {
	r, err := newRun(target, &opts)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.suite().Run(ctx, opts.Options)
}

// Plan reports which checks Run would judge, what keeps the others from it, and what would be
// created on the way. It sends nothing.
func Plan(target Target, opts Options) (*conformance.PlanReport, error) {
	r, err := newRun(target, &opts)
	if err != nil {
		return nil, err
	}
	defer r.close()
	p, err := r.suite().Plan(opts.Options)
	if err != nil {
		return nil, err
	}
	p.Notes = append(p.Notes, "destinations, datasets, syncs and the like are made, with names that begin with zz-conf-, and deleted again; the destinations lead to simulators of this program")
	switch {
	case r.key == "":
		p.Notes = append(p.Notes, "a workspace is made for the run")
	case target.PersonalAccessToken == "":
		p.Notes = append(p.Notes, "without a personal access token, checks about organizations do not run")
	}
	if target.ControlURL != "" {
		p.Notes = append(p.Notes, "the clock of the service is moved forward, by weeks in all, and its mailbox is read")
	}
	waiting := 0 // so many checks wait for real
	for i := range p.Checks {
		c, known := catalogue().Check(p.Checks[i].ID)
		if !known || !p.Checks[i].Runs { // an own check is in no catalogue
			continue
		}
		if p.Checks[i].Reason = r.waitReason(c); p.Checks[i].Reason != "" {
			waiting++
		}
	}
	if waiting > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s %s for real, side by side where they can; --timeout bounds the whole run, here %s", quantity.Count(waiting, "check"), quantity.Verb(waiting, "waits", "wait"), inWords(r.opts.Timeout)))
	}
	return p, nil
}

// checkTarget refuses what cannot be meant.
func checkTarget(t *Target) (*url.URL, error) {
	u, err := url.Parse(t.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, conformance.Usage("the base URL of the service must start with https:// or http:// and have a host")
	}
	t.BaseURL = strings.TrimRight(t.BaseURL, "/")
	if !strings.HasSuffix(u.Path, "/api/v1") && !strings.HasSuffix(u.Path, "/api/v1/") {
		return nil, conformance.Usage("the base URL must end in /api/v1, the version that is judged (spec 9): try %s/api/v1", t.BaseURL)
	}
	if u.RawQuery != "" || u.User != nil || u.Fragment != "" {
		return nil, conformance.Usage("the base URL must have no query, no fragment and no user: tokens come from the environment")
	}
	if t.ControlURL != "" {
		c, err := url.Parse(t.ControlURL)
		if err != nil || c.Host == "" || !strings.HasSuffix(strings.TrimRight(c.Path, "/"), "/_control") {
			return nil, conformance.Usage("the control URL must end in /_control, for example http://127.0.0.1:8080/_control")
		}
		t.ControlURL = strings.TrimRight(t.ControlURL, "/")
	}
	if t.PersonalAccessToken == "" && t.WorkspaceAPIKey == "" {
		return nil, conformance.Usage("no token: set DESTKIT_PERSONAL_ACCESS_TOKEN and DESTKIT_WORKSPACE_API_KEY")
	}
	return u, nil
}
