package server

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
)

// BenchmarkAgainstMock reads one sync and lists 100 of 10,000 over TCP from this service, and the same from a
// stateless mock of the same document, Prism, where `prism` is installed (npm: @stoplight/prism-cli), with
// the same client and connections; compare req/s within one run.
func BenchmarkAgainstMock(b *testing.B) {
	w := newWorld(b, func(c *Config) { c.Development = false })
	first := w.newSync()
	w.copies(first, 10_000-1)
	own := httptest.NewServer(w.s)
	defer own.Close()
	targets := []struct{ name, address, base string }{{"destkit", own.Listener.Addr().String(), api.BasePath}}
	if address := startPrism(b); address != "" {
		targets = append(targets, struct{ name, address, base string }{"prism", address, ""})
	}
	for _, work := range []struct{ name, path string }{
		{"one", fmt.Sprintf("/syncs/%d", first)},
		{"list100", "/syncs?per_page=100&page=37"},
	} {
		for _, target := range targets {
			b.Run(work.name+"/"+target.name, func(b *testing.B) {
				request := "GET " + target.base + work.path + " HTTP/1.1\r\nHost: " + target.address + "\r\nAuthorization: Bearer " + w.key + "\r\n\r\n"
				hammer(b, target.address, []byte(request))
			})
		}
	}
}

// hammer sends one request over and over on 8 connections.
func hammer(b *testing.B, address string, request []byte) {
	var bad atomic.Int64
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			bad.Add(1)
			return
		}
		defer conn.Close()
		reader := bufio.NewReaderSize(conn, 256<<10)
		for pb.Next() {
			if _, err := conn.Write(request); err != nil {
				bad.Add(1)
				return
			}
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				bad.Add(1)
				return
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
				bad.Add(1)
			}
			response.Body.Close()
		}
	})
	require.Zero(b, bad.Load(), "some answers were not 200")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// startPrism runs the mock until the benchmark ends; "" when it is missing.
func startPrism(b *testing.B) string {
	prism, err := exec.LookPath("prism")
	if err != nil {
		b.Log("prism is not installed (npm install -g @stoplight/prism-cli): measured without a peer")
		return ""
	}
	document := filepath.Join(b.TempDir(), "openapi.yaml")
	require.NoError(b, writeFile(document, openapi.REST()))
	free := must(net.Listen("tcp", "127.0.0.1:0"))(b)
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	// Its log of every request would cost it a good part of its speed.
	cmd := exec.Command(prism, "mock", "-p", port, "-v", "warn", document)
	out := must(cmd.StderrPipe())(b)
	cmd.Stdout = cmd.Stderr
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	go func() { _, _ = io.Copy(io.Discard, out) }()
	for {
		response, err := http.Get("http://" + address + "/syncs/1")
		if err == nil {
			response.Body.Close()
			return address
		}
		require.True(b, strings.Contains(err.Error(), "refused"), err)
	}
}

// TestDrivenFromGo: a test in Go needs no request to the control API, and sees there what
// it has done.
func TestDrivenFromGo(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	{ // faults
		armed, err := w.s.Faults().Arm(ctx, Fault{Kind: "rate_limited", RetryAfter: RetryIn(7), Trigger: Trigger{Operation: "listUsers", FirstN: 1}})
		require.NoError(t, err)
		require.Equal(t, "fault_1", armed.ID)
		must(w.s.Faults().Arm(ctx, Fault{Kind: "status", Trigger: Trigger{Operation: "listSources"}}))(t)
		_, err = w.s.Faults().Arm(ctx, Fault{Kind: "thunder"})
		require.ErrorContains(t, err, "kind")
		for _, seconds := range []int64{-1, math.MaxInt64} {
			_, err = w.s.Faults().Arm(ctx, Fault{Kind: "rate_limited", RetryAfter: RetryIn(seconds)})
			require.ErrorContains(t, err, "retry_after")
		}

		refused := w.do("GET", "/users", w.pat, nil).want(429)
		require.Equal(t, "7", refused.header.Get("Retry-After"))
		w.do("GET", "/users", w.pat, nil).want(200)
		require.Len(t, w.control("GET", "/faults", nil).want(200).at("faults"), 2)
		list := must(w.s.Faults().List(ctx))(t)
		require.Equal(t, []int64{1, 0}, []int64{list[0].Fired, list[1].Fired})
		unfired := w.s.Faults().Unfired()
		require.Len(t, unfired, 1)
		gone := must(w.s.Faults().Disarm(ctx, unfired[0].ID))(t)
		require.False(t, gone.Armed)
		_, err = w.s.Faults().Disarm(ctx, unfired[0].ID)
		require.ErrorContains(t, err, "there is no fault")
		all := must(w.s.Faults().Clear(ctx))(t)
		require.Len(t, all, 1)
	}
	{ // journal
		refused := must(w.s.Journal().Requests(ctx, JournalFilter{Operation: "listUsers", Status: "4xx"}))(t)
		require.Len(t, refused, 1)
		require.Equal(t, []string{"fault_1"}, refused[0].Faults)
		later := must(w.s.Journal().Requests(ctx, JournalFilter{After: refused[0].Number, Limit: 1}))(t)
		require.Len(t, later, 1)
		_, err := w.s.Journal().Requests(ctx, JournalFilter{Status: "many"})
		require.ErrorContains(t, err, "status")

		w.do("POST", "/destinations", w.key, customDestination(w.destination())).want(201)
		calls := must(w.s.Journal().Calls(ctx, JournalFilter{DestinationID: 1}))(t)
		require.NotEmpty(t, calls)
		none := must(w.s.Journal().Calls(ctx, JournalFilter{DestinationID: 99}))(t)
		require.Empty(t, none)
		require.NoError(t, w.s.Journal().Clear(ctx))
		left := must(w.s.Journal().Requests(ctx, JournalFilter{}))(t)
		require.Empty(t, left)
	}
	{ // clock
		clock := w.s.Clock()
		require.NoError(t, clock.Freeze(ctx))
		before := clock.Now()
		require.NoError(t, clock.Advance(ctx, 36*time.Hour))
		require.Equal(t, 36*time.Hour, clock.Now().Sub(before))
		require.ErrorContains(t, clock.Advance(ctx, -time.Hour), "advance")
		to := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		require.NoError(t, clock.Set(ctx, to))
		require.Equal(t, to, clock.Now())
		require.ErrorContains(t, clock.Set(ctx, time.Time{}), "1970")
		require.NoError(t, clock.Resume(ctx))
		require.False(t, w.s.clock.State().Frozen)
		changes := w.control("GET", "/clock/journal", nil).want(200).at("changes").([]any)
		var names []any
		for _, change := range changes {
			names = append(names, change.(map[string]any)["change"])
		}
		require.Equal(t, []any{"run", "set", "advance", "freeze"}, names)
	}
	{ // reset
		must(w.s.Faults().Arm(ctx, Fault{Kind: "status"}))(t)
		require.NoError(t, w.s.Reset(ctx))
		w.do("GET", "/destinations", w.key, nil).want(200)
		require.Empty(t, w.do("GET", "/destinations", w.key, nil).want(200).at("data"))
		list := must(w.s.Faults().List(ctx))(t)
		require.Empty(t, list)
	}
}
