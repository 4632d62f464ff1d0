package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/demo"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/testdata/violation"
)

// between is a proxy, with its judges, that serves https in front of an endpoint.
type between struct {
	url          string
	certificates *destsim.Certificates
	passive      *destination.Passive
	caller       *service.Caller
	stop         func()
}

func proxyBetween(t *testing.T, endpoint string) *between {
	t.Helper()
	b := &between{}
	var err error
	b.passive, err = destination.NewPassive(destination.Target{URL: endpoint + "/"}, conformance.Options{BatchTimeout: 10 * time.Second})
	require.NoError(t, err)
	b.caller, err = service.NewCaller(endpoint+"/", b.passive.Secrets(), conformance.Options{})
	require.NoError(t, err)
	recorder, err := proxy.NewRecorder(proxy.RecorderConfig{Passive: b.passive, Caller: b.caller})
	require.NoError(t, err)
	p, err := proxy.New(proxy.Config{To: endpoint + "/", TLS: b.passive.TLSConfig(), Verify: b.passive.VerifyTLS, Observer: recorder, Secrets: b.passive.Secrets()})
	require.NoError(t, err)
	b.certificates, err = destsim.NewCertificates(nil)
	require.NoError(t, err)
	secure, err := b.certificates.TLSConfig("")
	require.NoError(t, err)
	secure.NextProtos = []string{"http/1.1"}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.url = "https://" + ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- p.Serve(context.Background(), tls.NewListener(ln, secure)) }()
	var once sync.Once
	b.stop = func() { once.Do(func() { ln.Close(); require.NoError(t, <-served); p.Close() }) }
	t.Cleanup(b.stop)
	return b
}

// syncing is what syncs meet: which rule each side breaks, "" for none, and what the
// endpoint declares. The service keeps a speed in real time.
type syncing struct {
	endpoint, service string
	speed             rpc.Speed
	limit             int64    // X-RateLimit-Limit, in calls per second
	meet              int64    // no batch goes on before so many are under way
	rest              int      // seconds of Retry-After with the 429 to the first batch
	blamed            []string // what the endpoint itself breaks by all that
}

// meeting holds the first batches until so many of them are under way.
func meeting(t *testing.T, many int64) func(http.Handler) http.Handler {
	var came atomic.Int64
	met := make(chan struct{})
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Errorf("read a call: %v", err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(rpc.MethodSyncBatch)) {
				if came.Add(1) == many {
					close(met)
				}
				select {
				case <-met:
				case <-r.Context().Done():
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// syncThrough runs real syncs of the service into a simulator, through the proxy, and
// gives both reports.
func syncThrough(t *testing.T, s syncing) (endpoint, caller *conformance.Report) {
	t.Helper()
	ctx := t.Context()
	config := destsim.Config{Speed: s.speed, RateLimit: s.limit}
	if s.endpoint != "" {
		config.Violate = []string{s.endpoint}
	}
	var front []func(http.Handler) http.Handler
	if s.meet > 0 {
		front = append(front, meeting(t, s.meet))
	}
	target, err := demo.NewDestination(ctx, config, front...)
	require.NoError(t, err)
	if s.rest > 0 {
		require.NoError(t, demo.ControlOf(target).Control(ctx, http.MethodPost, "/faults", destsim.Fault{
			Kind: "throttle", RetryAfter: "seconds", Seconds: s.rest, When: destsim.Trigger{Method: rpc.MethodSyncBatch, First: 1},
		}, nil))
	}
	b := proxyBetween(t, target.URL)
	dir := t.TempDir()
	port, client, err := demo.NewService(ctx, demo.Places{Service: filepath.Join(dir, "s"), Key: filepath.Join(dir, "k")}, b.certificates.CAPEM(), func(c *server.Config) {
		if s.service != "" {
			require.NoError(t, violation.Break(c, s.service))
		}
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, port.Stop(), "the service"); b.stop(); _ = target.Stop() }()
	w := &demo.World{API: client}
	advance := func() { // retries and backoffs, until nothing is left to run
		if s.speed != (rpc.Speed{}) {
			require.NoError(t, client.Control(ctx, http.MethodPost, "/settle", nil, nil))
			return
		}
		require.NoError(t, client.Control(ctx, http.MethodPost, "/clock", map[string]string{"advance": "2h"}, nil))
	}
	if err := w.Make(ctx, b.url, 120); err == nil {
		for _, change := range []string{"", "UPDATE CONTACTS SET LAST_NAME = 'Other' WHERE ID <= 20", "INSERT INTO CONTACTS (ID, EMAIL, LAST_NAME) VALUES (900, 'Late@Example.com', NULL)"} {
			if change != "" {
				require.NoError(t, w.Change(ctx, change))
			}
			_, _ = client.Trigger(ctx, w.Sync, false) // a broken endpoint may keep it from starting
			advance()
		}
	} else {
		advance()
	}
	// Calls of the buttons of the interface.
	for range 2 {
		_ = client.Get(ctx, "/destinations", nil)
		_ = client.Post(ctx, "/destinations/"+itoa(w.Target)+"/test", nil, nil)
	}
	require.NoError(t, port.Stop())
	b.stop()
	return b.passive.Report(), b.caller.Report()
}

func itoa(n int64) string { return strings.TrimSpace(sprintf("%d", n)) }

// findingsOf shows the findings, for a message.
func findingsOf(r *conformance.Report) string {
	var out []string
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			out = append(out, c.ID+": "+f.Actual)
		}
	}
	return strings.Join(out, "\n")
}

// decidedOn is the report's result for a check.
func decidedOn(r *conformance.Report, check string) conformance.CheckResult {
	for _, c := range r.Checks {
		if c.ID == check {
			return c
		}
	}
	return conformance.CheckResult{}
}

// shown are the checks that a report calls broken.
func shown(r *conformance.Report) (ids []string) {
	for _, c := range r.Checks {
		if slices.Contains([]conformance.Status{conformance.Fail, conformance.Warn, conformance.Flaky}, c.Status) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// TestRealSyncsBreakNothing: a sound endpoint and the reference service are shown to
// break no rule by their traffic, and most passive checks are decided.
func TestRealSyncsBreakNothing(t *testing.T) {
	endpoint, caller := syncThrough(t, syncing{})
	require.Empty(t, shown(endpoint), "%+v", endpoint.Checks)
	require.Empty(t, shown(caller))
	require.Positive(t, endpoint.Records)
	passed := map[conformance.Status]int{}
	for _, c := range slices.Concat(endpoint.Checks, caller.Checks) {
		passed[c.Status]++
	}
	require.Greater(t, passed[conformance.Pass], 60, "%v", passed)
}

// passiveKills are violations of the simulator with the checks that the traffic of real
// syncs shows to be broken.
var passiveKills = []string{
	"RPC-001", "RPC-001.2", "RPC-001.3", "RPC-002", "RPC-002.2", "RPC-003", "RPC-004.2", "RPC-005", "RPC-006", "RPC-006.2", "RPC-014", "RPC-015",
	"HTTP-001", "HTTP-002", "HTTP-002.2", "HTTP-003", "HTTP-004", "HTTP-006", "HTTP-006.2", "HTTP-007", "HTTP-011",
	"CON-001", "CON-001.2", "CON-004", "CON-005", "OBJ-001", "OBJ-001.2", "OBJ-002", "OBJ-003",
	"FLD-001", "FLD-001.2", "FLD-002", "FLD-003", "FLD-004", "FLD-005", "FLD-006", "FLD-008",
	"OPS-001", "OPS-001.2", "OPS-002", "OPS-002.2", "SPD-001", "SPD-001.2", "SPD-001.3", "SPD-001.4", "SPD-002", "SPD-003", "SPD-004",
	"RL-001", "RL-001.2", "RL-002", "RL-003",
	"RES-001", "RES-002", "RES-002.3", "RES-003", "RES-003.2", "RES-004.3", "RES-005", "RES-005.2", "RES-006", "RES-006.2",
}

// TestTrafficShowsWhatIsBroken breaks a few rules, one after the other, under real syncs.
func TestTrafficShowsWhatIsBroken(t *testing.T) {
	trafficShowsWhatIsBroken(t, []string{"RPC-003", "RES-002", "FLD-001", "SPD-001"})
}

// TestMatrixTrafficShowsWhatIsBroken breaks every rule that such traffic shows.
func TestMatrixTrafficShowsWhatIsBroken(t *testing.T) {
	trafficShowsWhatIsBroken(t, sampled(t, passiveKills))
}

// sampled are the violations of these that the tier of the matrices breaks: what is on the
// way is shared.
func sampled(t *testing.T, ids []string) []string {
	t.Helper()
	matrixtest.NotEveryDay(t)
	var cells []matrixtest.Cell
	for _, id := range ids {
		cells = append(cells, matrixtest.Cell{Name: id})
	}
	runs, i := matrixtest.Sample(t, []string{"internal/proxy/", "conformance/destination/passive*.go"}, cells), -1
	return slices.DeleteFunc(slices.Clone(ids), func(string) bool { i++; return !runs[i] })
}

func trafficShowsWhatIsBroken(t *testing.T, ids []string) {
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			endpoint, caller := syncThrough(t, syncing{endpoint: id})
			require.Contains(t, shown(endpoint), matrixtest.CheckOf(id))
			require.Empty(t, shown(caller), "the caller breaks no rule because the endpoint does")
		})
	}
}

// oddKills are violations that ordinary syncs do not meet: the odd calls of an active
// judge, as traffic, show them.
var oddKills = []string{
	"RPC-002.3", "RPC-004", "RPC-007", "RPC-007.2", "RPC-007.3", "RPC-008", "RPC-009", "RPC-010.2", "RPC-011", "RPC-012", "RPC-019",
	"HTTP-005", "ERR-003", "ERR-004", "FLD-007", "FLD-009", "FLD-009.2", "OPS-003", "OPS-004", "FLD-013", "FLD-010",
	"OBJ-004", "SPD-005", "RES-011", "RES-011.2", "RES-012", "RES-015", "RES-019", "RES-004.2", "AUTH-001", "AUTH-002", "AUTH-006", "AUTH-007",
	"SPD-006", "DAT-012",
}

// TestOddCallsShowMore lets the active judge call through the proxy, an endpoint that
// breaks nothing and two that break a rule.
func TestOddCallsShowMore(t *testing.T) {
	matrixtest.Long(t)
	oddCallsShowMore(t, append([]string{""}, oddKills[:2]...))
}

// TestMatrixOddCallsShowMore breaks every rule that such calls show.
func TestMatrixOddCallsShowMore(t *testing.T) {
	oddCallsShowMore(t, append([]string{""}, sampled(t, oddKills)...))
}

func oddCallsShowMore(t *testing.T, ids []string) {
	for _, id := range ids {
		t.Run("violation "+id, func(t *testing.T) {
			config := destsim.Config{Token: demo.Token}
			if id != "" {
				config.Violate = []string{id}
			}
			sim, err := destsim.New(config)
			require.NoError(t, err)
			defer sim.Close()
			target := httptest.NewServer(sim)
			defer target.Close()
			b := proxyBetween(t, target.URL)
			objects := []string{demo.Object}
			_, err = destination.Run(t.Context(), destination.Target{URL: b.url + "/", Token: demo.Token},
				conformance.Options{Write: true, Objects: objects, PlanningTimeout: 2 * time.Second, BatchTimeout: 4 * time.Second, Seed: 7})
			require.NoError(t, err)
			b.stop()
			got := shown(b.passive.Report())
			if id == "" {
				require.Empty(t, got, "%s", findingsOf(b.passive.Report()))
				return
			}
			require.Contains(t, got, matrixtest.CheckOf(id))
		})
	}
}

// callerKills are violations of the service that the traffic of its syncs shows.
var callerKills = []string{
	"CALL-001", "CALL-001.2", "CALL-001.3", "CALL-001.4", "CALL-001.5", "CALL-002", "CALL-003", "CALL-004", "CALL-005", "CALL-006", "CALL-006.2",
	"CALL-007", "CALL-007.2", "CALL-008", "CALL-010", "CALL-012", "CALL-012.2", "CALL-013", "CALL-013.2", "CALL-014", "CALL-018", "CALL-019", "CALL-022",
	"CALL-026", "PACE-001", "PACE-002", "PACE-003", "PACE-004", "PACE-006", "PACE-013", "PACE-013.2", "THR-001",
}

// seldom are those that some endpoints alone show: who declares little, who is slow, who
// answers 429.
var seldom = map[string]syncing{
	"CALL-026":   {speed: rpc.Speed{MaximumBatchSize: 2, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1000}},
	"PACE-002":   {speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 2, MaximumRecordsPerSecond: 1000}},
	"PACE-003":   {speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 2, MaximumRecordsPerSecond: 100_000}, meet: 2},
	"PACE-004":   {speed: rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 80, MaximumRecordsPerSecond: 100_000}, meet: 50},
	"PACE-006":   {speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 2, MaximumRecordsPerSecond: 40}},
	"PACE-013":   {speed: rpc.Speed{MaximumBatchSize: 4, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 100_000}, limit: 3, blamed: []string{"SPD-004"}},
	"PACE-013.2": {speed: rpc.Speed{MaximumBatchSize: 4, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 100_000}, limit: 3, blamed: []string{"SPD-004"}},
	"THR-001":    {speed: rpc.Speed{MaximumBatchSize: 100, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 100_000}, rest: 6, blamed: []string{"RL-004"}},
}

// breaking is what shows that a service breaks a rule.
func breaking(id string) syncing {
	s := seldom[id]
	s.service = id
	if s.meet > 0 {
		s.meet++ // more than are allowed
	}
	s.rest *= 10 // no machine is so slow that an early retry comes behind it
	return s
}

// TestTrafficShowsWhatTheCallerBreaks breaks a few rules of the service, one after the
// other.
func TestTrafficShowsWhatTheCallerBreaks(t *testing.T) {
	matrixtest.Long(t)
	trafficShowsWhatTheCallerBreaks(t, []string{"CALL-002", "CALL-026", "PACE-002"}, []string{"PACE-002"})
}

// TestMatrixTrafficShowsWhatTheCallerBreaks breaks every rule that such traffic shows.
func TestMatrixTrafficShowsWhatTheCallerBreaks(t *testing.T) {
	trafficShowsWhatTheCallerBreaks(t, sampled(t, callerKills), sampled(t, slices.Sorted(maps.Keys(seldom))))
}

// trafficShowsWhatTheCallerBreaks breaks some rules, and shows to what is named in without
// a service that breaks none.
func trafficShowsWhatTheCallerBreaks(t *testing.T, ids, without []string) {
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			s := breaking(id)
			endpoint, caller := syncThrough(t, s)
			require.Contains(t, shown(caller), matrixtest.CheckOf(id), "%+v", decidedOn(caller, matrixtest.CheckOf(id)))
			require.Equal(t, s.blamed, shown(endpoint), "the endpoint breaks no rule because the caller does: %s", findingsOf(endpoint))
		})
	}
	for _, id := range without {
		t.Run("without "+id, func(t *testing.T) {
			_, caller := syncThrough(t, seldom[id])
			require.Empty(t, shown(caller), findingsOf(caller))
		})
	}
}
