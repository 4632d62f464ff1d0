package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server/internal/latch"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// slowCopies lets the copies of emulated destinations stand still behind their first
// byte. begun has one value for each.
func slowCopies(t *testing.T) (change func(*Config), begun <-chan struct{}, goOn func()) {
	began, free := make(chan struct{}, 100), make(chan struct{})
	goOn = sync.OnceFunc(func() { close(free) })
	t.Cleanup(goOn)
	return func(c *Config) {
		inner := c.Emulate
		c.Emulate = func(key string, objects []catalogue.EmulatedObject) (*destination.Emulated, error) {
			kept, err := inner(key, objects)
			if err != nil {
				return nil, err
			}
			slow := *kept
			slow.Snapshot = func(w io.Writer) error {
				var whole bytes.Buffer
				if err := kept.Snapshot(&whole); err != nil {
					return err
				}
				if _, err := w.Write(whole.Next(1)); err != nil {
					return err
				}
				began <- struct{}{}
				<-free
				_, err := w.Write(whole.Bytes())
				return err
			}
			return &slow, nil
		}
	}, began, goOn
}

// TestNobodyWaitsForACopy: while the copies of a snapshot are made calls write, runs
// begin and end, and another snapshot takes its moment. What came later is not in it.
func TestNobodyWaitsForACopy(t *testing.T) {
	for name, where := range map[string]func(*Config){"in memory": func(*Config) {}, "in a directory": inDir(t)} {
		t.Run(name, func(t *testing.T) {
			slow, begun, goOn := slowCopies(t)
			w := newSyncWorld(t, where, slow)
			w.emulated("google_sheets")
			id := w.kept(nil).id("data.id")
			first := make(chan []byte, 1)
			go func() { first <- w.control("GET", "/snapshot", nil).want(200).text }()
			<-begun
			run := w.trigger(id)
			require.NoError(t, w.s.Settle(t.Context()))
			require.Equal(t, "completed", w.status(run))
			w.control("POST", "/organizations", `{"name":"Later"}`).want(201)
			require.Empty(t, first, "the copy is still being made")
			ctx, giveUp := context.WithCancel(t.Context())
			second := make(chan error, 1)
			go func() { second <- w.s.Snapshot(ctx, io.Discard) }()
			<-begun
			giveUp()
			goOn()
			require.ErrorIs(t, <-second, context.Canceled)

			w.control("POST", "/restore", <-first).want(200)
			require.NotContains(t, string(w.control("GET", "/organizations", nil).want(200).text), "Later")
			require.Empty(t, w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200).at("data"))
			w.nothingHeld()
		})
	}
}

// TestSnapshotsWaitInALine: a few are made at once, a bounded number waits, and more
// are told to come again.
func TestSnapshotsWaitInALine(t *testing.T) {
	slow, begun, goOn := slowCopies(t)
	line := latch.NewLine(1, 1)
	w := newSyncWorld(t, slow, func(c *Config) { c.copies = line })
	w.emulated("google_sheets")
	got := make(chan int, 2)
	take := func() { got <- w.control("GET", "/snapshot", nil).code }
	go take()
	<-begun
	go take()
	w.eventually(func() bool {
		return line.Waiting() == 1
	})
	full := w.control("GET", "/snapshot", nil).want(http.StatusTooManyRequests)
	require.Contains(t, string(full.text), "1 snapshots and forks are being made and 1 wait already")
	require.Equal(t, "1", full.header.Get("Retry-After"))
	w.control("POST", "/fork", `{"name":"late"}`).want(http.StatusTooManyRequests)
	require.Empty(t, w.control("GET", "/forks", nil).want(200).at("forks"))
	goOn()
	require.Equal(t, 200, <-got)
	require.Equal(t, 200, <-got)
	w.control("POST", "/fork", `{"name":"late"}`).want(201)
}

// TestForksAreBounded by the configuration, forks of forks included; a fork that could
// not be made, or was deleted, makes room.
func TestForksAreBounded(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxForks = 2 })
	w.control("POST", "/fork?name=broken", []byte("no snapshot")).want(400)
	w.control("POST", "/fork", `{"name":"a"}`).want(201)
	w.control("POST", "/fork", `{"name":"a"}`).want(409)
	inner := &world{t: t, s: w.s.forks.Get("a"), key: w.key, seen: map[string]map[int]bool{}}
	inner.control("POST", "/fork", `{"name":"b"}`).want(201)
	refused := w.control("POST", "/fork", `{"name":"c"}`).want(409)
	require.Contains(t, string(refused.text), "there are 2 forks already, the most this service has (--max-forks)")
	inner.control("DELETE", "/forks/b", nil).want(200)
	w.control("POST", "/fork", `{"name":"c"}`).want(201)
	_, err := New(t.Context(), Config{MaxForks: -1})
	require.ErrorContains(t, err, "the number of forks must be above 0, not -1")
}

// TestGivingUpAForkLeavesNothing: neither its name and place nor the records of its
// destinations.
func TestGivingUpAForkLeavesNothing(t *testing.T) {
	var made, removed atomic.Int64
	slow, begun, goOn := slowCopies(t)
	w := newSyncWorld(t, slow, func(c *Config) {
		inner := c.Emulate
		c.MaxForks = 1
		c.Emulate = func(key string, objects []catalogue.EmulatedObject) (*destination.Emulated, error) {
			kept, err := inner(key, objects)
			if err != nil {
				return nil, err
			}
			own := *kept
			made.Add(1)
			own.Remove = func() error {
				removed.Add(1)
				if kept.Remove != nil {
					return kept.Remove()
				}
				return nil
			}
			return &own, nil
		}
	})
	w.emulated("google_sheets")
	before := made.Load() - removed.Load()
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.s.Fork(ctx, "other", "", nil)
		ended <- err
	}()
	<-begun
	giveUp()
	goOn()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Equal(t, before, made.Load()-removed.Load())

	// A snapshot whose last part is no good: the destinations before it were there.
	good := w.control("GET", "/snapshot", nil).want(200).text
	bad := bytes.Replace(good, []byte(`"settings":{`), []byte(`"settings":[`), 1)
	require.NotEqual(t, good, bad)
	_, err := w.s.Fork(t.Context(), "other", "", bytes.NewReader(bad))
	require.Error(t, err)
	require.Equal(t, before, made.Load()-removed.Load())
	_, err = w.s.Fork(t.Context(), "other", "", nil)
	require.NoError(t, err, "its name and its place are free")
	w.control("DELETE", "/forks/other", nil).want(200)
	require.Equal(t, before, made.Load()-removed.Load())
	w.nothingHeld()
}

// TestADeletedForkClosesItsSockets to destinations, and ends what waits in it.
func TestADeletedForkClosesItsSockets(t *testing.T) {
	var open, most atomic.Int64
	sim, err := destsim.New(destsim.Config{Preset: "crm", Token: "destination-token"})
	require.NoError(t, err)
	endpoint := httptest.NewUnstartedServer(sim)
	endpoint.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			most.Add(1)
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	endpoint.Start()
	t.Cleanup(func() { endpoint.Close(); sim.Close() })
	base := newWorld(t)
	base.sim, base.dest = sim, endpoint
	w := &syncWorld{base, base.newSource(), base.newDestination()}
	id := w.kept(nil).id("data.id")
	before, made := open.Load(), most.Load()
	w.control("POST", "/fork", `{"name":"other"}`).want(201)
	goroutines := runtime.NumGoroutine()
	fork := &world{t: t, s: w.s.forks.Get("other"), key: w.key, seen: map[string]map[int]bool{}}
	fork.trigger(id)
	require.NoError(t, fork.s.Settle(t.Context()))
	fork.control("POST", "/clock", `{"freeze":true}`).want(200)
	busy := fork.s.clock.Busy("a test")
	waits := make(chan int, 1)
	go func() { waits <- fork.control("POST", "/settle", nil).code }()
	passages := func(n int) func() bool {
		return func() bool {
			return fork.s.latch.Passages.Waiting() == n
		}
	}
	w.eventually(passages(1))
	deleted := make(chan int, 1)
	go func() { deleted <- w.control("DELETE", "/forks/other", nil).code }()
	w.eventually(passages(0)) // ended, though the work that it waits for is not
	busy()
	require.Equal(t, 200, <-deleted)
	require.GreaterOrEqual(t, <-waits, 400, "it was not settled")
	require.Greater(t, most.Load(), made, "the fork had connections of its own")
	w.eventually(func() bool { return open.Load() <= before })
	w.eventually(func() bool { return runtime.NumGoroutine() <= goroutines })
}
