package xk6

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/errext"
	"go.k6.io/k6/js/modulestest"
	"go.k6.io/k6/lib"
	"go.k6.io/k6/lib/netext"
	"go.k6.io/k6/lib/types"
	"go.k6.io/k6/metrics"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/loadgen"
)

// simulate serves a destination on loopback.
func simulate(t *testing.T, config destsim.Config, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	sim, err := destsim.New(config)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(sim)
	start(server)
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	return server
}

func plain(s *httptest.Server)  { s.Start() }
func secure(s *httptest.Server) { s.StartTLS() }

// stored is how many records of an object a simulator has.
func stored(t *testing.T, server *httptest.Server, object string) int {
	t.Helper()
	resp, err := server.Client().Get(server.URL + "/_control/counts")
	require.NoError(t, err)
	defer resp.Body.Close()
	var counts struct {
		Records map[string]int `json:"records"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&counts))
	return counts.Records[object]
}

// arm puts a fault into a simulator.
func arm(t *testing.T, server *httptest.Server, fault string) {
	t.Helper()
	resp, err := server.Client().Post(server.URL+"/_control/faults", "application/json", strings.NewReader(fault))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 2, resp.StatusCode/100, string(text))
}

// vu is one VU of a test, first in its init context.
type vu struct {
	t       *testing.T
	runtime *modulestest.Runtime
	samples chan metrics.SampleContainer
	dialer  *netext.Dialer
	log     *strings.Builder
	state   *lib.State
}

func newVU(t *testing.T, m *Module, server *httptest.Server) *vu {
	t.Helper()
	v := &vu{t: t, runtime: modulestest.NewRuntime(t), samples: make(chan metrics.SampleContainer, 1000), log: &strings.Builder{}}
	require.NoError(t, v.runtime.SetupModuleSystem(map[string]any{"k6/x/destkit": m}, nil, nil))
	if server != nil {
		require.NoError(t, v.runtime.VU.Runtime().Set("URL", server.URL+"/"))
	}
	v.dialer = netext.NewDialer(net.Dialer{}, netext.NewResolver(net.LookupIP, 0, types.DNSfirst, types.DNSpreferIPv4))
	log := logrus.New()
	log.SetOutput(v.log)
	registry := v.runtime.VU.InitEnv().Registry
	v.state = &lib.State{
		Samples: v.samples, Dialer: v.dialer, Logger: log, BuiltinMetrics: v.runtime.BuiltinMetrics,
		Tags: lib.NewVUStateTags(registry.RootTagSet().With("scenario", "default")),
	}
	_, err := v.run(`const destkit = require('k6/x/destkit');`)
	require.NoError(t, err)
	return v
}

func (v *vu) run(code string) (string, error) {
	value, err := v.runtime.RunOnEventLoop(code)
	if err != nil {
		return "", err
	}
	return value.String(), nil
}

// init makes the destination d and goes over to the functions that k6 calls.
func (v *vu) init(options string) *vu {
	v.t.Helper()
	_, err := v.run(`const d = destkit.destination(URL, ` + options + `);`)
	require.NoError(v.t, err)
	v.runtime.MoveToVUContext(v.state)
	return v
}

// is runs a script and compares its value as JSON.
func (v *vu) is(want, code string) {
	v.t.Helper()
	got, err := v.run(`JSON.stringify(` + code + `)`)
	require.NoError(v.t, err)
	require.JSONEq(v.t, want, got)
}

// sums adds the samples up, by metric and the tag kind.
func (v *vu) sums() map[string]float64 {
	got := map[string]float64{}
	for _, container := range metrics.GetBufferedSamples(v.samples) {
		for _, s := range container.GetSamples() {
			name := s.Metric.Name
			if kind, ok := s.Tags.Get("kind"); ok {
				name += "{" + kind + "}"
			}
			got[name] += s.Value
			for tag, want := range map[string]string{"scenario": "default", "object": "contact", "operation": "upsert"} {
				value, _ := s.Tags.Get(tag)
				require.Equal(v.t, want, value, name)
			}
		}
	}
	return got
}

const upserts = `{token: 's3cret-token', object: 'contact', batchSize: 5, write: true, seed: 7}`

func TestBatchesAreSentCheckedAndCounted(t *testing.T) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, plain)
	v := newVU(t, New(), server).init(upserts)
	v.is(`{"ok":true,"object":"contact","operation":"upsert","status":200,"records":5,"acknowledged":5,"errors":[],"id":32,"duration":true}`,
		`(() => { const r = d.syncBatch(); return Object.assign({}, {ok: r.ok, object: r.object, operation: r.operation, status: r.status,
			records: r.records, acknowledged: r.acknowledged, errors: r.errors, id: r.id.length, duration: r.duration > 0}); })()`)
	v.is(`[true,true]`, `[d.syncBatch().ok, d.syncBatch().ok]`)
	got := v.sums()
	require.Positive(t, got["destkit_batch_duration"])
	delete(got, "destkit_batch_duration")
	require.Equal(t, map[string]float64{
		"destkit_batches": 3, "destkit_batch_failed": 0, "destkit_records": 15, "destkit_records_acknowledged": 15, "destkit_errors": 0,
	}, got)
	require.Equal(t, 15, stored(t, server, "contact"))
	require.Contains(t, v.log.String(), "writes email of contact from zz-load-")
	// k6 counts what its dialer has carried.
	require.Greater(t, v.dialer.BytesWritten, int64(3*500))
	require.Greater(t, v.dialer.BytesRead, int64(3*100))
}

func TestWhatIsRefusedIsSeen(t *testing.T) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, plain)
	v := newVU(t, New(), server).init(upserts)
	arm(t, server, `{"kind":"record_failure","message":"no room for it","when":{"method":"sync_batch","from":1,"to":1},"records":2}`)
	v.is(`[false,3,1,"record_refused","no room for it",2]`,
		`(() => { const r = d.syncBatch(), e = r.errors; return [r.ok, r.acknowledged, e.length, e[0].kind, e[0].message, e[0].count]; })()`)
	arm(t, server, `{"kind":"http_status","status":503,"body":"<h1>no</h1>","when":{"method":"sync_batch","from":1,"to":1}}`)
	v.is(`[false,0,503,"http_status",1]`,
		`(() => { const r = d.syncBatch(), e = r.errors; return [r.ok, r.acknowledged, r.status, e[0].kind, e[0].count]; })()`)
	v.is(`true`, `d.syncBatch().ok`)
	got := v.sums()
	delete(got, "destkit_batch_duration")
	require.Equal(t, map[string]float64{
		"destkit_batches": 3, "destkit_batch_failed": 2, "destkit_records": 15, "destkit_records_acknowledged": 8,
		"destkit_errors": 0, "destkit_errors{record_refused}": 2, "destkit_errors{http_status}": 1,
	}, got)
}

// VUs of one process share the keys, processes of a distributed run divide them.
func TestNoTwoVUsWriteTheSameKey(t *testing.T) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, plain)
	total := 0
	var all sync.WaitGroup
	for _, segment := range thirds {
		m := New()
		for range 2 {
			v := newVU(t, m, server)
			s, err := lib.NewExecutionSegmentFromString(segment)
			require.NoError(t, err)
			v.state.Options.ExecutionSegment = s
			v.init(strings.Replace(upserts, "seed: 7", "seed: 7, run: 'night'", 1))
			all.Go(func() {
				got, err := v.run(`[d.syncBatch().ok, d.syncBatch().ok].join()`)
				if err != nil || got != "true,true" {
					t.Errorf("instance %s: %v %s", segment, err, got)
				}
			})
			total += 10
		}
	}
	all.Wait()
	require.Equal(t, total, stored(t, server, "contact"))
}

func TestKeysAreToldAndDeleted(t *testing.T) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, plain)
	v := newVU(t, New(), server).init(upserts)
	v.is(`""`, `d.journal()`)
	v.is(`true`, `d.syncBatch().ok`)
	text, err := v.run(`d.journal()`)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "journal.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	keys, err := loadgen.ReadKeys(path)
	require.NoError(t, err)
	require.EqualValues(t, 5, keys[0].Count)
	v.is(`{"deleted":5,"left":0,"reasons":[]}`, `(() => { const c = d.cleanup(); return {deleted: c.deleted, left: c.left, reasons: c.reasons}; })()`)
	require.Zero(t, stored(t, server, "contact"))
}

func TestTLSWithItsOwnAuthority(t *testing.T) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, secure)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, option := range map[string]string{"ca": "ca: CA", "insecure": "insecure: true", "http2": "http2: true, ca: CA", "standard": "standardClient: true, ca: CA"} {
		v := newVU(t, New(), server)
		require.NoError(t, v.runtime.VU.Runtime().Set("CA", ca))
		v.init(strings.Replace(upserts, "seed: 7", option, 1))
		v.is(`true`, `d.syncBatch().ok`)
		require.Positive(t, v.dialer.BytesRead, name)
	}
}

// aborted is the reason for which a script has ended the test.
func aborted(t *testing.T, err error) string {
	t.Helper()
	var interrupt *errext.InterruptError
	require.True(t, errors.As(err, &interrupt), "%v", err)
	return interrupt.Reason
}

func TestATestEndsWhereNothingCanBeSent(t *testing.T) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, plain)
	for name, c := range map[string]struct{ options, want string }{
		"token":     {`{token: 'wrong-token', object: 'contact', write: true}`, "the token or the URL is not valid"},
		"object":    {`{token: 's3cret-token', object: 'nothing', write: true}`, `has no object "nothing"`},
		"operation": {`{token: 's3cret-token', object: 'contact', operation: 'mirror', write: true}`, "operation: {upsert: 9, delete: 1}"},
		"field":     {`{token: 's3cret-token', object: 'contact', fields: ['nil'], write: true}`, `has no field "nil"`},
		"template":  {`{token: 's3cret-token', object: 'contact', template: {age: '{{nil}}'}, write: true}`, "template"},
	} {
		v := newVU(t, New(), server).init(c.options)
		_, err := v.run(`d.syncBatch()`)
		reason := aborted(t, err)
		require.Contains(t, reason, c.want, name)
		require.NotContains(t, reason, "wrong-token")
		require.NotContains(t, reason, "--", "%s: a flag that scripts do not have", name)
	}
	require.Zero(t, stored(t, server, "contact"))
	v := newVU(t, New(), nil)
	require.NoError(t, v.runtime.VU.Runtime().Set("URL", "http://127.0.0.1:1/secret-path"))
	_, err := v.init(upserts).run(`d.syncBatch()`)
	require.NotContains(t, aborted(t, err), "secret-path")
}

// TestABoundIsUsedExactly: the last batch is cut, and the next one ends the test.
func TestABoundIsUsedExactly(t *testing.T) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, plain)
	v := newVU(t, New(), server).init(`{token: 's3cret-token', object: 'contact', batchSize: 10, maxRecords: 19, write: true}`)
	v.is(`[true,true]`, `[d.syncBatch().ok, d.syncBatch().ok]`)
	_, err := v.run(`d.syncBatch()`)
	require.Contains(t, aborted(t, err), "maxRecords")
	require.EqualValues(t, 19, stored(t, server, "contact"))
}

// An iteration that is over breaks its call, and nothing is counted.
func TestTheEndOfAnIterationBreaksACall(t *testing.T) {
	sim, err := destsim.New(destsim.Config{Token: "s3cret-token"})
	require.NoError(t, err)
	batches, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"sync_batch"`) {
			close(batches)
			<-release
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(release); server.Close(); require.NoError(t, sim.Close()) })
	v := newVU(t, New(), server).init(upserts)
	go func() { <-batches; v.runtime.CancelContext() }()
	_, err = v.run(`d.syncBatch()`)
	require.ErrorContains(t, err, "the iteration ended before the reply")
	require.Empty(t, v.sums())
}

func TestSyncBatchNeedsAVU(t *testing.T) {
	v := newVU(t, New(), simulate(t, destsim.Config{}, plain))
	_, err := v.run(`destkit.destination(URL, ` + upserts + `).syncBatch()`)
	require.ErrorContains(t, err, "init context")
	v.runtime.MoveToVUContext(v.state)
	_, err = v.run(`destkit.destination(URL, ` + upserts + `)`)
	require.ErrorContains(t, err, "make it in the init context")
}

// One key range is not for two destinations, whose keys would be the same.
func TestAKeyRangeIsForOneDestination(t *testing.T) {
	v := newVU(t, New(), simulate(t, destsim.Config{}, plain))
	ranged := func(from, to int) string {
		return fmt.Sprintf(`destkit.destination(URL, {object: 'order', write: true, keyRange: [%d, %d]})`, from, to)
	}
	for _, good := range []string{ranged(1000, 1999), ranged(1000, 1999), ranged(2000, 2999)} {
		_, err := v.run(good)
		require.NoError(t, err)
	}
	_, err := v.run(ranged(1500, 1501))
	require.ErrorContains(t, err, "keyRange: another destination")
}
