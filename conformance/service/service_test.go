package service_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/testdata/violation"
)

// bench is one service with its test equipment.
type bench struct {
	target service.Target
	opts   service.Options
}

// serve starts the reference service, which breaks the given rules.
func serve(t *testing.T, violations ...string) *bench {
	t.Helper()
	return serving(t, server.Config{}, violations...)
}

// impatient are the checks that wait until a request is given up: they are judged
// with a service that does so soon.
const impatient = "TOUT-*"

// serveImpatient is serve with short deadlines. The judge knows exactly these: which
// of the two is over first must not decide anything.
func serveImpatient(t *testing.T, violations ...string) *bench {
	t.Helper()
	b := serving(t, server.Config{CallTimeout: deadline, BatchTimeout: deadline}, violations...)
	b.opts.RequestTimeout = deadline
	return b
}

// patientDeadline is one that no call meets by accident, and still shorter than
// what the judge waits for.
const (
	deadline        = 400 * time.Millisecond
	patientDeadline = 2500 * time.Millisecond
)

func serving(t *testing.T, config server.Config, violations ...string) *bench {
	t.Helper()
	require.NoError(t, violation.Break(&config, violations...))
	s, err := server.New(t.Context(), emulating(t, config))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	tokens := s.FirstTokens()
	return &bench{
		target: service.Target{
			BaseURL: web.URL + "/api/v1", ControlURL: web.URL + "/_control",
			PersonalAccessToken: tokens.PersonalAccessToken, WorkspaceAPIKey: tokens.WorkspaceAPIKey,
		},
		opts: service.Options{Options: conformance.Options{Seed: 1}, NewSimulator: simulator, Listen: listen},
	}
}

// judge runs the suite and fails the test when the judge itself fails.
func (b *bench) judge(t *testing.T) *conformance.Report {
	t.Helper()
	r, err := service.Run(context.Background(), b.target, b.opts)
	require.NoError(t, err)
	return r
}

func simulator(c service.SimulatorConfig) (service.Simulator, error) {
	config := destsim.Config{Speed: c.Speed, RateLimit: -1}
	for _, o := range c.Objects {
		config.Objects = append(config.Objects, destsim.Described(o, c.Operations[o.APIName], c.Fields[o.APIName]))
	}
	return destsim.New(config)
}

func listen(config *tls.Config, h http.Handler) (string, func(), error) {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes are refused on purpose
	if config != nil {
		s.TLS = config
		s.StartTLS()
	} else {
		s.Start()
	}
	return s.URL, s.Close, nil
}

// tripped lists the checks that are FAIL, FLAKY, WARN or HARNESS_ERROR.
func tripped(r *conformance.Report) []string {
	out := []string{}
	for _, c := range r.Checks {
		switch c.Status {
		case conformance.Fail, conformance.Flaky, conformance.Warn, conformance.HarnessError:
			out = append(out, c.ID)
		}
	}
	return out
}

func TestMatrixCleanService(t *testing.T) {
	matrixtest.Long(t)
	b := serving(t, server.Config{CallTimeout: patientDeadline, BatchTimeout: patientDeadline})
	b.opts.RequestTimeout = patientDeadline
	want := conformance.Conformant
	if testing.Short() { // the race detector makes the whole take minutes
		b.opts.Select, want = []string{"TOK-*", "CALL-*", "RTRY-*", "CNT-*"}, conformance.ConformantInPart
	}
	r := b.judge(t)
	for _, c := range r.Checks {
		t.Logf("%s %s %s %s %v", c.Status, c.ID, c.Reason, c.Evidence, c.Findings)
	}
	require.Empty(t, r.Problems, r.Summary)
	require.Empty(t, tripped(r))
	require.Empty(t, r.Residue.Refused)
	require.Equal(t, want, r.Verdict, r.Summary)
}

// emulating lets a service keep the records of emulated destinations in
// simulators in memory, as the program does.
func emulating(t *testing.T, config server.Config) server.Config {
	var mu sync.Mutex
	open := map[string]*destsim.Sim{}
	t.Cleanup(func() {
		for _, sim := range open {
			sim.Close()
		}
	})
	config.Emulate = func(key string, objects []server.EmulatedObject) (*server.Emulated, error) {
		mu.Lock()
		defer mu.Unlock()
		sim := open[key]
		if sim == nil {
			var simulated destsim.Config
			for _, o := range objects {
				simulated.Objects = append(simulated.Objects, destsim.Described(o.Object, o.Operations, o.Fields))
			}
			var err error
			if sim, err = destsim.New(simulated); err != nil {
				return nil, err
			}
			open[key] = sim
		}
		return &server.Emulated{Endpoint: sim, Snapshot: sim.Snapshot, Restore: sim.Restore, Records: sim.RecordsJSON}, nil
	}
	return config
}

// catalogueOf is the catalogue of checks of a suite.
func catalogueOf(t *testing.T, suite string) *conformance.Catalogue {
	t.Helper()
	cat, err := conformance.LoadCatalogue(suite)
	require.NoError(t, err)
	return cat
}
