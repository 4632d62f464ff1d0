package loadgen

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/pace"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// simulator serves a destination on loopback.
func simulator(t testing.TB, config destsim.Config) string {
	t.Helper()
	sim, err := destsim.New(config)
	require.NoError(t, err)
	server := httptest.NewServer(sim)
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	return server.URL + "/"
}

// against is the options of a short run.
func against(url string) Options {
	return Options{
		Target: Target{URL: url}, Write: true, Seed: 7, Closed: true, Count: 20, Connections: 2,
		Work: Work{Objects: []Share{{Name: "contact"}}, BatchSize: 5},
	}
}

// stored reads from a simulator how many records its objects have.
func stored(t *testing.T, url string) map[string]int {
	t.Helper()
	resp, err := http.Get(url + "_control/counts")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var counts struct {
		Records map[string]int `json:"records"`
		Objects map[string]int `json:"objects"`
	}
	require.NoError(t, json.Unmarshal(text, &counts), string(text))
	if counts.Records != nil {
		return counts.Records
	}
	return counts.Objects
}

// arm puts a fault into a simulator.
func arm(t *testing.T, url, fault string) {
	t.Helper()
	resp, err := http.Post(url+"_control/faults", "application/json", strings.NewReader(fault))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 2, resp.StatusCode/100, string(text))
}

func TestClosedLoopStoresWhatItCounts(t *testing.T) {
	url := simulator(t, destsim.Config{})
	r, err := Run(context.Background(), against(url))
	require.NoError(t, err)
	require.EqualValues(t, 20, r.Requests)
	require.EqualValues(t, 100, r.Records)
	require.EqualValues(t, 100, r.Acknowledged)
	require.Zero(t, r.Errors)
	require.Equal(t, "count", r.Ended)
	require.Equal(t, 100, stored(t, url)["contact"])
	require.Equal(t, r.Latency, r.ServiceTime, "a closed loop has no other intended time")
	require.EqualValues(t, 100, r.Keys[0].Count)
	require.True(t, strings.HasPrefix(r.Keys[0].First, "zz-load-"+r.Load.Run+"-"))
}

// TestEveryWayToConnect runs the same work over each of them.
func TestEveryWayToConnect(t *testing.T) {
	sim, err := destsim.New(destsim.Config{Token: "s3cret-token", Compress: "gzip"})
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(sim)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	proxy := httptest.NewServer(http.HandlerFunc(connectTo(server.Listener.Addr().String())))
	t.Cleanup(proxy.Close)
	for name, transport := range map[string]Transport{
		"own": {}, "compressed": {Compress: true}, "new connections": {Reconnect: true}, "standard": {Standard: true},
		"standard, compressed": {Standard: true, Compress: true}, "standard, new connections": {Standard: true, Reconnect: true},
		"HTTP/2": {HTTP2: true}, "proxy": {Proxy: proxy.URL},
	} {
		o := against(server.URL + "/")
		o.Transport, o.Target.Roots, o.Target.Token = transport, roots, "s3cret-token"
		o.Target.Headers = map[string]string{"X-Extra": "1"}
		r, err := Run(context.Background(), o)
		require.NoError(t, err, name)
		require.Empty(t, r.ErrorMessages, name)
		require.EqualValues(t, 100, r.Acknowledged, name)
		if transport.Reconnect && !transport.Standard {
			require.EqualValues(t, 20, r.Generator.Connections, name)
		}
	}
	o := against(server.URL + "/")
	o.Target.Token, o.Target.Development = "s3cret-token", "off"
	_, err = Run(context.Background(), o)
	require.ErrorContains(t, err, "certificate")
	o = against(server.URL + "/")
	o.Target.Token, o.Target.Roots = "wrong", roots
	_, err = Run(context.Background(), o)
	require.ErrorContains(t, err, "token")
}

// connectTo is a proxy that knows one address.
func connectTo(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		to, dialErr := net.Dial("tcp", address)
		if dialErr != nil {
			return
		}
		defer to.Close()
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		go func() { _, _ = io.Copy(to, conn) }()
		_, _ = io.Copy(conn, to)
	}
}

func TestAMixWorksOnWhatItHasWritten(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Count = 200
	o.Work.Objects = []Share{{"contact", 1}, {"order", 3}}
	o.Work.Operations = []Share{{"insert", 4}, {"update", 3}, {"delete", 1}}
	o.Work.Repeats = 0
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Empty(t, r.ErrorMessages, "every update and delete has a record to work on")
	require.EqualValues(t, 1000, r.Acknowledged)
	require.Greater(t, stored(t, url)["order"], stored(t, url)["contact"])
}

func TestUpdatesAloneWriteTheirRecordsFirst(t *testing.T) {
	url := simulator(t, destsim.Config{})
	for operation, ended := range map[string]string{"update": "count", "delete": "nothing left to work on"} {
		o := against(url)
		o.Work.Operations, o.Work.Prime, o.Count = []Share{{operation, 1}}, 50, 40
		r, err := Run(context.Background(), o)
		require.NoError(t, err)
		require.Empty(t, r.ErrorMessages)
		require.Equal(t, ended, r.Ended)
		require.Contains(t, fmt.Sprint(r.Notes), "50 records of contact were written first")
	}
}

// TestInterruptedPreparation: the records that were written first are named, and
// deleted, though nothing was measured.
func TestInterruptedPreparation(t *testing.T) {
	url := simulator(t, destsim.Config{})
	for name, startAt := range map[string]time.Time{"while they are written": {}, "before the start": time.Now().Add(time.Hour)} {
		ctx, cancel := context.WithCancel(context.Background())
		o := against(url)
		o.Work.Operations, o.Work.Prime, o.Cleanup, o.StartAt = []Share{{"update", 1}}, 1_000_000, true, startAt
		if !startAt.IsZero() {
			o.Work.Prime = 50
			o.Note = func(string) { cancel() } // they are there
		}
		go func() {
			for startAt.IsZero() && ctx.Err() == nil && stored(t, url)["contact"] == 0 {
			}
			if startAt.IsZero() {
				cancel()
			}
		}()
		r, err := Run(ctx, o)
		cancel()
		require.NoError(t, err, name)
		require.Equal(t, "interrupted", r.Ended, name)
		require.Contains(t, fmt.Sprint(r.Notes), "interrupted before the load", name)
		require.Positive(t, r.Keys[0].Count, name)
		require.Equal(t, r.Keys[0].Count, r.Cleanup.Deleted, name)
		require.Zero(t, stored(t, url)["contact"], name)
	}
}

func TestRepeatedKeys(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Count, o.Work.Repeats = 200, 0.5
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.EqualValues(t, 1000, r.Acknowledged)
	require.InDelta(t, 500, stored(t, url)["contact"], 120)
}

func TestBoundsEndARun(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Count, o.MaxRecords = 0, 33
	o.Duration = time.Minute
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Equal(t, "max-records", r.Ended)
	require.EqualValues(t, 33, r.Records, "the last batch is cut to what is left")
	require.EqualValues(t, 33, r.Acknowledged)
	require.Equal(t, 33, stored(t, url)["contact"])
	o = against(url)
	o.Work.Objects = []Share{{Name: "order"}}
	o.Work.Identifier, o.KeyFrom, o.KeyTo, o.Count = integerIdentifier(t), 98, 120, 0
	o.Duration = time.Minute
	r, err = Run(context.Background(), o)
	require.NoError(t, err)
	require.Equal(t, "keys used up", r.Ended)
	require.Equal(t, "100", r.Keys[0].First, "all keys have as many digits")
	require.EqualValues(t, 20, r.Records)
}

// TestABoundBelowABatch: one smaller batch is sent, in every mode; where records are
// written first, the bound must have room for more.
func TestABoundBelowABatch(t *testing.T) {
	for _, declared := range []bool{false, true} {
		url := simulator(t, destsim.Config{})
		o := against(url)
		o.Closed, o.AsDeclared, o.Count, o.MaxRecords, o.Work.BatchSize = !declared, declared, 0, 55, 100
		r, err := Run(context.Background(), o)
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Requests)
		require.EqualValues(t, 55, r.Acknowledged)
		require.Equal(t, 55, stored(t, url)["contact"])
		require.Empty(t, r.Useless())
	}
	o := against(simulator(t, destsim.Config{}))
	o.Work.Operations, o.Work.Prime, o.MaxRecords, o.Work.BatchSize = []Share{{"update", 1}}, 50, 100, 100
	_, err := Run(context.Background(), o)
	var usage *UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "max-records 100: nothing would be left to update, since 100 records are written first")
}

// TestPrimeIsWhatWasAsked: more connections write no more records first.
func TestPrimeIsWhatWasAsked(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Work.Operations, o.Work.Prime, o.Connections = []Share{{"update", 1}}, 8, 16
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(r.Notes), "10 records of contact were written first")
	require.Equal(t, 10, stored(t, url)["contact"])
}

// TestAsDeclaredSendsNoLargerBatch: a size above the declared one contradicts the mode.
func TestAsDeclaredSendsNoLargerBatch(t *testing.T) {
	o := against(simulator(t, destsim.Config{}))
	o.Closed, o.Work.BatchSize = false, 100_000
	_, err := Run(context.Background(), o)
	var usage *UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "batch size 100000: as declared it is at most 1000")
}

// TestNothingSentIsSaid: a load whose keys do not fill one batch is no success.
func TestNothingSentIsSaid(t *testing.T) {
	o := against(simulator(t, destsim.Config{}))
	o.Work.Objects = []Share{{Name: "order"}}
	o.Work.Identifier, o.KeyFrom, o.KeyTo = integerIdentifier(t), 100, 102
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Requests)
	require.Equal(t, "nothing was sent before the load ended: keys used up", r.Useless())
}

// integerIdentifier is the field of order that is numbered.
func integerIdentifier(t *testing.T) string {
	config, err := destsim.Preset("default")
	require.NoError(t, err)
	for _, o := range config.Objects {
		for _, f := range o.Fields {
			if o.Name == "order" && f.Identifier && f.Type == rpc.TypeInteger {
				return f.Name
			}
		}
	}
	t.Fatal("the preset has no such field")
	return ""
}

func TestRefusedRecordsAreCountedByMessage(t *testing.T) {
	url := simulator(t, destsim.Config{})
	arm(t, url, `{"kind":"record_failure","message":"no room for it","when":{"method":"sync_batch","every":2},"records":1}`)
	r, err := Run(context.Background(), against(url))
	require.NoError(t, err)
	require.EqualValues(t, 10, r.Errors)
	require.EqualValues(t, 90, r.Acknowledged)
	require.Equal(t, map[string]int64{wire.KindRecordRefused: 10}, r.ErrorsByKind)
	require.Len(t, r.ErrorMessages, 1)
	require.Equal(t, "no room for it", r.ErrorMessages[0].Message)
	require.Contains(t, r.ErrorMessages[0].Example.Identifier, "zz-load-")
	limit, err := ParseThreshold("errors>=10%")
	require.NoError(t, err)
	limit.Check(r)
	require.True(t, limit.Failed)
	o := against(url)
	o.Count, o.AbortShare, o.Duration = 0, 0.05, time.Minute
	r, err = Run(context.Background(), o)
	require.NoError(t, err)
	require.Equal(t, "too many errors", r.Ended)
}

// TestLatencyShowsAStall: where the target stops for a moment, those who were to
// send meanwhile have waited, though a single call took long.
func TestLatencyShowsAStall(t *testing.T) {
	url := simulator(t, destsim.Config{})
	arm(t, url, `{"kind":"delay","delay":{"distribution":"fixed","ms":300},"when":{"method":"sync_batch","from":50,"to":50}}`)
	o := against(url)
	o.Closed, o.Count, o.Connections = false, 0, 1
	o.Stages, o.Duration = constant(200), time.Second
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Errors)
	require.EqualValues(t, 200, r.Requests+r.Generator.Unsent)
	require.GreaterOrEqual(t, r.ServiceTime.Max, 300.0)
	require.GreaterOrEqual(t, r.Latency.P90, 100.0, "every tenth request waited for more than 100 ms")
	require.Less(t, r.ServiceTime.P90, r.Latency.P90)
	require.NotZero(t, r.Generator.Queued)
}

func TestAsDeclaredKeepsToTheLimit(t *testing.T) {
	config := destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 3, MaximumRecordsPerSecond: 1000}, RateLimit: 50}
	url := simulator(t, config)
	o := against(url)
	o.Closed, o.Count, o.Connections, o.Work.BatchSize = false, 0, 0, 0
	o.Duration = 400 * time.Millisecond
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Equal(t, "as-declared", r.Load.Mode)
	require.Equal(t, 10, r.Load.BatchSize)
	require.Equal(t, 3, r.Load.Connections)
	require.InDelta(t, 50, r.Load.Rate, 1e-9, "the limit of the connection is below that of the records")
	require.LessOrEqual(t, r.Requests, int64(20))
	require.NotNil(t, r.Declared.Kept)
}

// TestKeptUp: answers that take long are no lower speed, where all that was due was sent, and
// little of it was under way at the end.
func TestKeptUp(t *testing.T) {
	const second = int64(time.Second)
	for name, c := range map[string]struct {
		requests, parallel, service, tail int64 // of 100 that were due
		kept                              bool
	}{
		"all are back":                       {100, 10, second / 100, 0, true},
		"the last ones take as long as any":  {100, 10, second, second, true},
		"the last ones take three times":     {100, 10, second, 3 * second, false},
		"one in flight of hundred":           {100, 1, second, 3 * second, true},
		"the last one was due at the end":    {98, 10, second / 100, 0, true},
		"too slow, so that fewer were sent":  {90, 10, second / 100, 0, false},
		"hardly any was sent, and none late": {10, 10, second, 0, false},
		"nothing was sent":                   {0, 10, second, 0, false},
	} {
		m := newMeasure(0, time.Duration(10*second))
		m.requests, m.stopped, m.ended = c.requests, 10*second, 10*second+c.tail
		require.NoError(t, m.service.RecordValue(c.service))
		require.Equal(t, c.kept, keptUp(m, 100, c.parallel), name)
	}
}

// TestWhetherADeclaredSpeedIsKept: a target that is too slow has not kept its word, and a
// very short load shows none.
func TestWhetherADeclaredSpeedIsKept(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		delay    string // of every batch, in milliseconds
		records  int64
		parallel int64
		kept     *bool
	}{
		"a target that is too slow": {"300", 0, 2, &no},
		"over in a moment":          {"1", 10, 20, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := simulator(t, destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: c.parallel, MaximumRecordsPerSecond: 400}})
			arm(t, url, `{"kind":"delay","delay":{"distribution":"fixed","ms":`+c.delay+`},"when":{"method":"sync_batch"}}`)
			o := against(url)
			o.Closed, o.Count, o.Connections, o.Work.BatchSize, o.MaxRecords = false, 0, 0, 0, c.records
			o.Duration = 600 * time.Millisecond
			r, err := Run(context.Background(), o)
			require.NoError(t, err)
			require.Zero(t, r.Errors)
			require.Equal(t, c.kept, r.Declared.Kept)
			require.Equal(t, c.kept == nil, slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "too soon to say") }), "%v", r.Notes)
		})
	}
}

// TestAsDeclaredFollowsTheLimit: X-RateLimit-Limit of any reply counts (spec 8).
func TestAsDeclaredFollowsTheLimit(t *testing.T) {
	url := simulator(t, destsim.Config{RateLimit: 2000})
	arm(t, url, `{"kind":"rate_limit","limits":["50"],"when":{"method":"sync_batch"}}`)
	o := against(url)
	o.Closed, o.Count, o.Connections, o.Work.BatchSize = false, 0, 0, 1
	o.Duration = 400 * time.Millisecond
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Errors)
	require.Less(t, r.Requests, int64(400), "2,000 per second would be 800")
	require.Greater(t, r.Requests, int64(5))
}

func TestInterruptionLeavesAWholeResult(t *testing.T) {
	url := simulator(t, destsim.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := against(url)
	o.Count, o.Duration, o.WarmUp, o.Cleanup = 0, 5*time.Second, 50*time.Millisecond, true
	o.Progress = func(m Moment) {
		if m.Phase == "load" && m.Requests > 0 {
			cancel()
		}
	}
	r, err := Run(ctx, o)
	require.NoError(t, err)
	require.Equal(t, "interrupted", r.Ended)
	require.NotZero(t, r.Requests)
	require.NotZero(t, r.Latency.P50)
	require.NotEmpty(t, r.Series)
	require.NotNil(t, r.WarmUp)
	require.Zero(t, r.Cleanup.Left, "%v", r.Cleanup.Reasons)
	require.Zero(t, stored(t, url)["contact"])
}

func TestAJournalNamesTheKeys(t *testing.T) {
	url := simulator(t, destsim.Config{})
	journal := filepath.Join(t.TempDir(), "load.json")
	o := against(url)
	o.Journal = journal
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	keys, err := ReadKeys(journal)
	require.NoError(t, err)
	require.Equal(t, r.Keys, keys)
	result, err := Clean(context.Background(), Options{Target: Target{URL: url}}, keys)
	require.NoError(t, err)
	require.Equal(t, &CleanupResult{Deleted: 100}, result)
	require.Zero(t, stored(t, url)["contact"])
	for _, text := range []string{"", "[]", "{}", `{"keys":[{"object":"x"}]}`} {
		require.NoError(t, os.WriteFile(journal, []byte(text), 0o600))
		_, err = ReadKeys(journal)
		require.Error(t, err, text)
	}
}

func TestWhatMeansNothingIsRefused(t *testing.T) {
	url := simulator(t, destsim.Config{})
	for words, change := range map[string]func(*Options){
		"--write":             func(o *Options) { o.Write = false },
		"name the object":     func(o *Options) { o.Work.Objects = nil },
		`no object "nothing"`: func(o *Options) { o.Work.Objects = []Share{{Name: "nothing"}} },
		"named twice":         func(o *Options) { o.Work.Objects = []Share{{Name: "contact"}, {Name: "contact"}} },
		"does not take update": func(o *Options) {
			o.Work.Objects, o.Work.Operations = []Share{{Name: "event"}}, []Share{{Name: "update"}}
		},
		"no batch has it":          func(o *Options) { o.Work.Operations = []Share{{Name: "mirror"}} },
		"is none of upsert":        func(o *Options) { o.Work.Operations = []Share{{Name: "merge"}} },
		"exclude each other":       func(o *Options) { o.AsDeclared = true },
		"has no {n}":               func(o *Options) { o.KeyTemplate = "x{run}" },
		"has no {run}":             func(o *Options) { o.KeyTemplate = "x{n}" },
		"is empty":                 func(o *Options) { o.KeyFrom, o.KeyTo = 9, 5 },
		"negative numbers":         func(o *Options) { o.KeyFrom, o.KeyTo = -9, 5 },
		`no field "shoe"`:          func(o *Options) { o.Work.Fields = []string{"shoe"} },
		"may be an identifier":     func(o *Options) { o.Work.Identifier = "last_name" },
		"every rate is 0":          func(o *Options) { o.Closed, o.Stages = false, constant(0) },
		"from 0 to 10000000":       func(o *Options) { o.Closed, o.Stages = false, constant(1e9) },
		"does not parse":           func(o *Options) { o.Target.URL = "http://%zz/" },
		"must start with https":    func(o *Options) { o.Target.URL = "ftp://x/" },
		"no host":                  func(o *Options) { o.Target.URL = "http:///x" },
		"over https only":          func(o *Options) { o.Target.URL = "http://192.0.2.1/" },
		"that HTTP does not allow": func(o *Options) { o.Target.Headers = map[string]string{"A\r\nB": "x"} },
		"set by the client itself": func(o *Options) { o.Target.Headers = map[string]string{"Content-Length": "1"} },
		"the token holds":          func(o *Options) { o.Target.Token = "a\nb" },
		"must be a URL such as":    func(o *Options) { o.Transport.Proxy = "nowhere" },
		"over https only, and":     func(o *Options) { o.Transport.HTTP2 = true },
		"is over":                  func(o *Options) { o.StartAt = time.Unix(1, 0) },
	} {
		o := against(url)
		change(&o)
		_, err := Run(context.Background(), o)
		var usage *wire.UsageError
		require.ErrorAs(t, err, &usage, words)
		require.Contains(t, usage.Message, words)
	}
	require.Zero(t, stored(t, url)["contact"])
}

// TestWhyARateWasNotReached: the target is only blamed for requests that it did not take.
func TestWhyARateWasNotReached(t *testing.T) {
	for name, c := range map[string]struct {
		m       measure
		reached float64
		limited bool
		want    string
	}{
		"reached":           {measure{requests: 1000}, 100, false, ""},
		"late replies":      {measure{requests: 1000}, 95, true, "all were sent, and 50 were answered after the end or never"},
		"the connections":   {measure{requests: 500, queued: 400}, 50, false, "all 8 connections were busy: the target is slower, or more --connections are needed"},
		"the generator":     {measure{requests: 500, late: 100, unsent: 500}, 50, true, "the generator did not send more"},
		"a busy machine":    {measure{requests: 500}, 50, true, "the target did not take more"},
		"whatever it is":    {measure{requests: 500, unsent: 500}, 50, false, "the target did not take more"},
		"too few to say so": {measure{requests: 5}, 1, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.m.stopped, c.m.reason = int64(10*time.Second), stopTime
			s := &session{result: &Result{RequestsPerSecond: c.reached, Seconds: 10, Generator: Generator{Limited: c.limited}}, e: &engine{}}
			s.comment(&c.m, phase{open: true, duration: 10 * time.Second, connections: 8, stages: []Stage{{Duration: 10 * time.Second, From: 100, To: 100}}})
			if c.want == "" {
				require.Empty(t, s.result.Notes)
				return
			}
			require.Len(t, s.result.Notes, 1)
			require.Contains(t, s.result.Notes[0], "of 100 requests/s; "+c.want)
		})
	}
}

func TestMeanRate(t *testing.T) {
	stages := []Stage{{time.Second, 10, 10}, {2 * time.Second, 10, 30}, {time.Second, 30, 30}}
	require.InDelta(t, 20, meanRate(stages, Burst{}, 4*time.Second), 1e-9)
	require.InDelta(t, 25, meanRate(stages, Burst{}, 8*time.Second), 1e-9)
	require.InDelta(t, 10, meanRate(stages, Burst{}, time.Second), 1e-9)

	ph := phase{open: true, stages: constant(100)}
	changes := []pace.Change{{At: int64(time.Second), Rate: 10}, {At: int64(3 * time.Second), Rate: 30}}
	require.InDelta(t, (100+2*10+30)/4.0, changedRate(ph, changes, 4*time.Second), 1e-6)
}
