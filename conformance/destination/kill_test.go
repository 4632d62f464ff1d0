package destination_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
)

const (
	simToken  = "t0ken-Of-The-Simulator"
	simSecret = "unguessable-segment-41"
)

// The deadlines of the matrix are cut down, and simDelays outlast them.
const (
	simPlanning = time.Second
	simBatch    = 2 * time.Second
)

var simDelays = destsim.Delays{
	Hang: 3 * time.Second, Planning: 1300 * time.Millisecond, Batch: 2400 * time.Millisecond,
	Stall: 650 * time.Millisecond, Write: 800 * time.Millisecond, Cache: time.Minute,
	Down: 700 * time.Millisecond, Retry: 3 * time.Second, Meet: 50 * time.Millisecond, Work: 20 * time.Millisecond,
}

// simConfig is the destination of the matrix: the default preset with a token,
// a URL secret, and a declared speed that a test can reach.
func simConfig(violations ...string) destsim.Config {
	return destsim.Config{
		Token: simToken, URLSecret: destsim.URLSecret{Query: "key", Value: simSecret},
		Speed:     rpc.Speed{MaximumBatchSize: 200, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 200_000},
		RateLimit: 2000, Violate: violations, Delays: simDelays, Seed: 1,
	}
}

// bench is one simulated destination with the target and the options to judge
// it with.
type bench struct {
	sim    *destsim.Sim
	target destination.Target
	opts   conformance.Options
}

// inMemory serves a simulator as a handler; its hooks are reached through the
// hooks file that it writes for itself and in no other way.
func inMemory(t *testing.T, cfg destsim.Config) *bench {
	t.Helper()
	sim, err := destsim.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	b := &bench{sim: sim}
	base := "http://destination.localhost"
	b.target = destination.Target{URL: base + "/rpc?key=" + simSecret, Handler: sim, Token: cfg.Token}
	b.opts = fullOptions(t, base)
	if cfg.URLSecret.Query == "" {
		b.target.URL = base + "/rpc"
		b.opts.URLSecret = ""
	}
	if p := cfg.URLSecret.Path; p != nil {
		b.target.URL = base + "/" + simSecret + "/rpc"
		b.opts.URLSecret = "path:0"
	}
	return b
}

// fullOptions permits everything, with the deadlines of the matrix.
func fullOptions(t *testing.T, base string) conformance.Options {
	return conformance.Options{
		Write: true, Objects: []string{"contact", "order", "event"},
		Readback: conformance.HookSpec{URL: base + "/_control/readback"}, Hooks: simHooks(base),
		MaxRecords: 200_000, URLSecret: "query:key", PlanningTimeout: simPlanning, LateWait: 700 * time.Millisecond,
		BatchTimeout: simBatch, Timeout: 80 * time.Second, Load: true, LoadDuration: 700 * time.Millisecond, Seed: 7,
	}
}

// simHooks names the hooks of a simulator at a base URL, as its own hooks file
// does; TestHooksFileNamesTheHooks holds the two together.
func simHooks(base string) conformance.Hooks {
	at := func(name string) conformance.HookSpec {
		return conformance.HookSpec{URL: base + "/_control/hooks/" + name}
	}
	return conformance.Hooks{
		Cleanup: at("cleanup"), Restart: at("restart"), AlterSchema: at("alter_schema"),
		BreakDownstream: at("break_downstream"), RotateToken: at("rotate_token"), Timeout: 10 * time.Second,
	}
}

func TestHooksFileNamesTheHooks(t *testing.T) {
	file := string(destsim.Config{}.HooksFile("http://destination.localhost"))
	h := simHooks("http://destination.localhost")
	for _, spec := range []conformance.HookSpec{h.Cleanup, h.Restart, h.AlterSchema, h.BreakDownstream, h.RotateToken} {
		require.Contains(t, file, spec.URL)
	}
}

// overTLS serves a simulator over real TLS on loopback with its own CA, as
// `destkit destsim --tls` does.
func overTLS(t *testing.T, cfg destsim.Config) *bench {
	t.Helper()
	sim, err := destsim.New(cfg)
	require.NoError(t, err)
	certs, err := destsim.NewCertificates(nil)
	require.NoError(t, err)
	id := ""
	if len(cfg.Violate) > 0 && strings.HasPrefix(cfg.Violate[0], "TLS-") {
		id = cfg.Violate[0]
	}
	tlsConfig, err := certs.TLSConfig(sim.TLSViolation())
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &destsim.Server{Sim: sim, ErrorLog: discardLog()}
	inner := destsim.TLSListener(l, tlsConfig, id == "TLS-007")
	if id == "TLS-001" {
		inner = l // the violation: plain http although TLS was requested
	}
	go func() { _ = server.Serve(inner) }()
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	base := "https://" + l.Addr().String()
	if id == "TLS-001" {
		base = "http://" + l.Addr().String()
	}
	b := &bench{sim: sim, target: destination.Target{URL: base + "/rpc?key=" + simSecret, Token: cfg.Token}, opts: fullOptions(t, base)}
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certs.CAPEM()))
	b.opts.Roots = roots
	b.opts.Development = conformance.DevelopmentOff
	b.opts.ProbePlainHTTP = l.Addr().(*net.TCPAddr).Port
	return b
}

// judge runs the suite and fails the test when the judge itself fails.
func (b *bench) judge(t *testing.T) *conformance.Report {
	t.Helper()
	r, err := destination.Run(context.Background(), b.target, b.opts)
	require.NoError(t, err)
	return r
}

// tripped lists the checks that are FAIL, FLAKY or WARN.
func tripped(r *conformance.Report) []string {
	var out []string
	for _, c := range r.Checks {
		switch c.Status {
		case conformance.Fail, conformance.Flaky, conformance.Warn, conformance.HarnessError:
			out = append(out, c.ID)
		}
	}
	return out
}

// late reports whether every surplus finding is a missed deadline, or that the judge
// could not send as fast as a wanted check needs, or that the run ended before it, at a
// planning call without an answer: on a busy machine a cut-down deadline can pass without
// any fault, and such a run proves nothing.
func late(r *conformance.Report, want []string) bool {
	surplus := 0
	for _, c := range r.Checks {
		if c.Status == conformance.Inconclusive && slices.Contains(want, c.ID) && strings.Contains(c.Reason, "the judge reached only") {
			return true
		}
		if c.Status == conformance.NotRun && slices.Contains(want, c.ID) && c.Reason == "the run ended before it" {
			return true
		}
		if !slices.Contains(tripped(r), c.ID) || slices.Contains(want, c.ID) {
			continue
		}
		surplus++
		if c.ID == "PAR-004" {
			continue // it compares times, which a busy machine makes longer
		}
		for _, f := range c.Findings {
			if !strings.Contains(f.Actual, "complete") || !strings.Contains(f.Actual, "within") && !strings.Contains(f.Actual, "after") {
				return false
			}
		}
	}
	return surplus > 0
}

// stage is a destination to judge, and how it is served.
type stage struct {
	network bool // else it is a handler in memory
	build   func(t *testing.T) *bench
}

func memory(build func(t *testing.T) *bench) stage { return stage{build: build} }

// run does something with a stage. For one in memory, time does not advance while anything works,
// so no machine is too slow for a deadline.
func (on stage) run(t *testing.T, do func(t *testing.T)) {
	t.Helper()
	if on.network {
		do(t)
		return
	}
	synctest.Test(t, do)
}

// judgeOn judges a stage; one over a network again when the machine was too busy.
func judgeOn(t *testing.T, want []string, on stage) (r *conformance.Report) {
	t.Helper()
	for range 4 {
		on.run(t, func(t *testing.T) { r = on.build(t).judge(t) })
		if !on.network || !late(r, want) {
			break
		}
		t.Logf("%v, wanted %v: the machine was too busy", tripped(r), want)
	}
	return r
}

// judgeSteadily judges until exactly the wanted checks trip, twice at most; in memory once.
func judgeSteadily(t *testing.T, want []string, on stage) *conformance.Report {
	t.Helper()
	if !on.network {
		return judgeOn(t, want, on)
	}
	return matrixtest.Steadily(t, func() *conformance.Report { return judgeOn(t, want, on) }, func(r *conformance.Report) bool {
		got := tripped(r)
		return len(got) == len(want) && !slices.ContainsFunc(got, func(id string) bool { return !slices.Contains(want, id) })
	})
}

// explain prints the findings of some checks for a failing test.
func explain(r *conformance.Report, ids []string) string {
	var b strings.Builder
	for _, c := range r.Checks {
		if !slices.Contains(ids, c.ID) {
			continue
		}
		fmt.Fprintf(&b, "%s %s (%s) %s\n", c.Status, c.ID, c.Title, c.Reason)
		for i, f := range c.Findings {
			if i < 3 {
				fmt.Fprintf(&b, "   %s/%s expected %s\n   actual %s\n", f.Object, f.Operation, f.Expected, f.Actual)
			}
		}
	}
	return b.String()
}

// statusOf is the status of one check.
func statusOf(r *conformance.Report, id string) conformance.Status {
	for _, c := range r.Checks {
		if c.ID == id {
			return c.Status
		}
	}
	return ""
}
