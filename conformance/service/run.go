package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/internal/pause"
	"github.com/destkit/destkit/internal/unreached"
	"github.com/destkit/destkit/openapi"
)

// run is what all scenarios of a run share.
type run struct {
	target        Target
	opts          *Options
	base          *url.URL
	client        *wire.Client
	secrets       *wire.Redactor
	endpoints     *endpoint.Server
	address       string // under which the service reaches the endpoints
	closeListener func() // ends the listener of the endpoints
	key           string // of the run's workspace

	source int64 // the SQL source that all scenarios read from

	numbers     atomic.Int64 // of things and exchanges
	things      things
	journal     *journal.Journal
	sharedLists sharedLists
	trust       struct {
		mu        sync.Mutex
		authority *endpoint.Authority // that the service knows; nil until a check needs it
	}
}

func newRun(target Target, opts *Options) (*run, error) {
	base, err := checkTarget(&target)
	if err != nil {
		return nil, err
	}
	if opts.NewSimulator == nil || opts.Listen == nil {
		return nil, conformance.Usage("a service is judged with a simulator and something that listens: both are missing")
	}
	opts.Dialect = cmp.Or(opts.Dialect, dialectSpec)
	if opts.Dialect != dialectSpec && opts.Dialect != dialectLive {
		return nil, conformance.Usage("unknown dialect %q: use spec or live", opts.Dialect)
	}
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Minute // the clean service takes seconds
		if opts.Patient && target.ControlURL == "" {
			opts.Timeout = 2 * time.Hour // for the longest checks, what comes before them, and a second look at what failed
		}
	}
	if opts.time.now == nil {
		opts.time = timepiece{now: time.Now, sleep: pause.For}
	}
	r := &run{target: target, opts: opts, base: base, secrets: wire.NewRedactor(), key: target.WorkspaceAPIKey}
	r.secrets.Add(target.PersonalAccessToken, "$DESTKIT_PERSONAL_ACCESS_TOKEN")
	r.secrets.Add(target.WorkspaceAPIKey, "$DESTKIT_WORKSPACE_API_KEY")
	r.secrets.Add(target.ControlToken, "$DESTKIT_CONTROL_TOKEN")
	r.client, err = wire.New(wire.Options{
		URL: target.BaseURL, Redactor: r.secrets, UserAgent: "destkit/" + opts.Version,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: target.Roots},
	})
	if err != nil {
		return nil, conformance.Usage("%s", r.secrets.String(err.Error()))
	}
	r.endpoints = endpoint.NewServer(r.secrets)
	return r, nil
}

// openJournal starts the write-ahead journal; a run without a file keeps it in memory.
func (r *run) openJournal(report *conformance.Report) (err error) {
	header := journal.Header{Run: report.RunID, Suite: conformance.SuiteService, Target: report.Target, Started: report.Started}
	if r.opts.Journal == "" {
		r.journal = journal.Memory(header)
	} else if r.journal, err = journal.Create(r.opts.Journal, header); err != nil {
		return conformance.Usage("%s", err.Error())
	}
	return r.announce("run")
}

const dialectSpec, dialectLive = "spec", "live"

// close ends what the run has opened.
func (r *run) close() {
	r.client.Close()
	if r.journal != nil {
		_ = r.journal.Close() // every line is on disk already
	}
	if r.closeListener != nil {
		r.closeListener()
	}
}

// suite is the run as the engine judges it.
func (r *run) suite() *engine.Suite {
	return &engine.Suite{
		Name: conformance.SuiteService, Target: r.target.BaseURL, Catalogue: catalogue(), Steps: steps(), Secrets: r.secrets,
		Permitted: r.permitted, Known: r.known,
		// Where nothing moves a clock, those that wait disturb no others.
		Waits: func(c *conformance.Check) bool { return r.waitReason(c) != "" },
		Stages: engine.Stages{
			Open:   r.open,
			Before: func(c *conformance.Check) error { return r.announce(c.ID) },
			NewActor: func(ctx context.Context, found *engine.Findings) (any, func() error) {
				sc := newScenario(ctx, r, found)
				return sc, sc.end
			},
			Finish: r.finish,
		},
	}
}

// catalogue is embedded and held by tests.
var catalogue = sync.OnceValue(func() *conformance.Catalogue {
	c, err := conformance.LoadCatalogue(conformance.SuiteService)
	if err != nil {
		panic(err)
	}
	return c
})

// differences reports what became of every named difference of the live dialect, also of one that no check demands.
func (r *run) differences(report *conformance.Report) {
	if r.opts.Dialect != dialectLive {
		return
	}
	for _, d := range openapi.Differences() {
		word := "the specification asks for neither form"
		for _, c := range catalogue().Checks {
			if !slices.Contains(c.Differs, d.Name) {
				continue
			}
			i := slices.IndexFunc(report.Checks, func(done conformance.CheckResult) bool { return done.ID == c.ID })
			switch {
			case i >= 0 && report.Checks[i].Status == conformance.Waived:
				word = "waived in " + c.ID
			case i >= 0 && report.Checks[i].Status == conformance.Pass:
				word = "the service follows the specification in " + c.ID
			case word == "the specification asks for neither form":
				word = "not judged by " + c.ID
			}
		}
		report.Notes = append(report.Notes, fmt.Sprintf("known difference %s: %s (%s)", d.Name, d.Live, word))
	}
}

// known is the named difference of the live dialect that a check meets.
func (r *run) known(c *conformance.Check) string {
	for _, d := range openapi.Differences() {
		if r.opts.Dialect == dialectLive && slices.Contains(c.Differs, d.Name) {
			return d.Name + ": " + d.Live
		}
	}
	return ""
}

// open looks whether the service answers, and prepares the workspace.
func (r *run) open(ctx context.Context, report *conformance.Report, _ []*conformance.Check) (ready bool, err error) {
	report.Tier = conformance.TierProtocol
	report.Settings.Dialect = r.opts.Dialect
	report.Settings.Clock, _ = r.clock()
	r.opts.RunID = report.RunID // the engine chooses one where the caller did not
	if err := r.openJournal(report); err != nil {
		return false, err
	}
	address, closeListener, err := r.opts.Listen(nil, r.endpoints)
	if err != nil {
		return false, fmt.Errorf("listen for the service's calls: %w", err)
	}
	r.address, r.closeListener = strings.TrimRight(address, "/"), closeListener
	report.Settings.Simulators, report.Settings.Source = r.address, "an emulated warehouse"
	if r.opts.SourceID != 0 {
		report.Settings.Source = fmt.Sprintf("source %d", r.opts.SourceID)
	}
	problem := func(kind, message, fix string) {
		report.Problems = append(report.Problems, conformance.Problem{Kind: kind, ExitStatus: 3, Message: r.secrets.String(message), Fix: fix})
	}
	first, err := r.send(ctx, "", request{method: "GET", path: "/syncs?per_page=1", as: asWorkspace})
	switch {
	case err != nil: // the run has ended; the report has the reason
	case !first.OK() && first.Status == 0:
		message, fix := noResponse(first.Err, r.base.Host)
		problem("unreachable", message, fix)
	case first.OK() && first.Status == http.StatusBadRequest && first.json == nil && strings.Contains(string(first.Body), "HTTPS server"):
		problem("unreachable", "TLS is spoken on this port, and the URL begins with http://", "begin the base URL with https://")
	case !first.OK() || first.json == nil:
		problem("no-api", "the service answers "+first.short()+", and that is no JSON", "check the base URL: it is the part before /syncs")
	case r.key != "" && (first.Status == http.StatusUnauthorized || first.Status == http.StatusForbidden):
		return false, conformance.Usage("the service refuses DESTKIT_WORKSPACE_API_KEY (HTTP %d): it must be the API key of a workspace, no personal access token", first.Status)
	default:
		message, fix := r.prepare(ctx)
		if message == "" {
			message, fix = r.reach(ctx)
		}
		if message != "" {
			problem("preparation", message, fix)
		}
	}
	return len(report.Problems) == 0, nil
}

// finish takes away what the run has made.
func (r *run) finish(ctx context.Context, report *conformance.Report, _ bool) {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	report.Residue.Journal = r.opts.Journal
	r.sharedLists.clear()
	r.cleanUp(clean, &report.Residue)
	if len(report.Problems) == 0 && r.lost(clean) {
		report.Problems = append(report.Problems, conformance.Problem{Kind: "lost", ExitStatus: 3,
			Message: "the service stopped answering in the middle of the run", Fix: "see its log, and judge again"})
	}
	report.Calls = r.client.Calls()
	r.differences(report)
	_, report.Tier = r.clock()
}

// clock returns how checks about time are judged, and how much could be looked at: with the clock everything.
func (r *run) clock() (whose string, looked conformance.Tier) {
	switch {
	case r.target.ControlURL != "":
		return "virtual", conformance.TierOperations
	case r.opts.Patient:
		return "real", conformance.TierSemantics
	}
	return "untouched", conformance.TierResults
}

// noResponse explains why the first call got no response, and what to do.
func noResponse(err error, host string) (message, fix string) {
	message, fix = "no HTTP response from the service: ", "check the base URL, that the service runs, and that this machine may reach it"
	cause := unreached.Of(err, "service", host)
	if _, other := errors.AsType[tls.RecordHeaderError](err); other {
		return cause.What, cause.Fix // the scheme explains it
	}
	if cause.What != "" {
		return message + cause.What, cause.Fix
	}
	return message + err.Error(), fix
}
