//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/demo"
	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/cmd/destkit/testdata/crowd"
	"github.com/destkit/destkit/internal/matrixtest"
)

// crowdSize sets how much a crowd does.
type crowdSize struct{ clients, calls, syncs int }

// TestMatrixCrowd: clients do everything at once, destinations that do not answer
// among them, and callers that leave. No answer is a failure of the service, every run
// ends, the kept syncs have written their sources exactly, nothing is left open, and
// the process ends on request.
func TestMatrixCrowd(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	size := crowdSize{40, 60, 50}
	if os.Getenv("DESTKIT_CROWD") != "" {
		calls, err := strconv.Atoi(os.Getenv("DESTKIT_CROWD"))
		require.NoError(t, err, "DESTKIT_CROWD is how many calls each client makes")
		size = crowdSize{200, calls, 500}
	}
	w := newCrowded(t)
	if os.Getenv("DESTKIT_CROWD") == "" {
		w.idleEnds = time.Second
	}
	w.survive(size)
}

func (w *crowded) survive(size crowdSize) {
	w.endpoints((size.syncs + objectsEach - 1) / objectsEach)
	config := crowd.Config{
		Root: w.api.Root, Key: w.api.Token, Clients: size.clients, Calls: size.calls, Seed: 1,
		Destinations: append(slices.Repeat(w.others[:1], 2*len(w.others)), w.others...), Source: w.source,
	}
	c := crowd.New(config)
	before := w.rest()
	w.keep(c, size.syncs)
	w.t.Logf("%d clients, %d syncs", size.clients, size.syncs)
	first := w.round(c)
	w.t.Logf("the crowd is gone\n%s", inShort(c))
	active := w.settle()
	w.t.Log("runs have ended")
	unclean := w.audits(size.syncs)
	w.t.Log("syncs are audited")
	w.reset()
	between := w.idle(before)
	// The same again, with worlds that are replaced: a resource that is not given
	// back once is missing twice.
	config.Replace, config.Seed = true, 2
	again := crowd.New(config)
	w.keep(again, size.syncs)
	second := w.round(again)
	w.t.Logf("with worlds that are replaced\n%s", inShort(again))
	w.reset()
	after := w.idle(between)
	stacks := w.stacks()
	took, ended := w.meetsTheEnd(config)

	w.t.Logf("PATCH of a sync: p50 %s, p99 %s (goal: 100ms)", c.Tally().Percentile("updateSync", 50), c.Tally().Percentile("updateSync", 99))
	for name, s := range map[string]stand{"before": before, "peaks": first, "between": between, "peaks again": second, "after": after} {
		w.t.Logf("%-12s %4d MB, %4d descriptors, %5d goroutines, %d files", name, s.memory>>20, s.descriptors, s.goroutines, len(s.files))
	}
	w.t.Logf("ended %s after SIGTERM", took)
	w.judge(c, "")
	w.judge(again, "replaced: ")
	require.Zero(w.t, active, "runs that do not end")
	require.Empty(w.t, unclean, "audits that are not clean")
	require.NoError(w.t, ended, "end after SIGTERM")
	defer func() {
		if w.t.Failed() {
			w.t.Logf("what was left at work:\n%s", tail(stacks, 8000))
		}
	}()
	w.nothingLeft(between, after)
}

// round runs the crowd, and returns the peaks.
func (w *crowded) round(c *crowd.Crowd) stand {
	peaks := w.watch()
	c.Run(w.t.Context())
	at := peaks()
	c.Close()
	w.control("DELETE", "/faults", nil, nil) // they end
	return at
}

// inShort is the table of what a crowd has met: all of it for make crowd, and elsewhere its
// last line, so that a failure is not lost in the lines before it.
func inShort(c *crowd.Crowd) string {
	table := c.Tally().Table()
	if os.Getenv("DESTKIT_CROWD") != "" {
		return table
	}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	return lines[0] + "\n" + lines[len(lines)-1]
}

// judge fails for every answer that is none.
func (w *crowded) judge(c *crowd.Crowd, when string) {
	for _, f := range c.Tally().Failures() {
		if f.Status == http.StatusBadGateway && strings.Contains(f.Said, "the destination could not be asked") {
			continue // the destination does not answer, as the answer reports
		}
		if f.Status == http.StatusServiceUnavailable && when != "" && strings.Contains(f.Said, "the state of the service is being copied or replaced") {
			continue // a slow call that a restore or a reset has ended, as it reports
		}
		if f.Status == 0 && f.Operation == crowd.Dropped {
			continue // a fault of the crowd
		}
		w.t.Errorf("%s%s", when, f)
	}
}

// audits holds what the destinations have stored against the ledger and the source.
func (w *crowded) audits(want int) (unclean []string) {
	audited := 0
	for id := range w.syncs {
		_, err := w.api.Trigger(w.t.Context(), id, false)
		if _, ok := errors.AsType[*syncs.Error](err); ok {
			unclean = append(unclean, fmt.Sprintf("sync %d: %v", id, err))
			continue
		}
		require.NoError(w.t, err)
	}
	if active := w.settle(); active != 0 {
		unclean = append(unclean, fmt.Sprintf("%d runs are still active", active))
	}
	for id, url := range w.syncs {
		var a demo.Audit
		w.control("POST", "/audit", map[string]any{"sync_id": id, "readback": map[string]string{"url": url + "/_control/readback"}}, &a)
		if !a.Clean || a.Checked.Source != 20 {
			unclean = append(unclean, fmt.Sprintf("sync %d: %v %v", id, a.Totals, a.Findings))
		}
		audited++
	}
	require.Equal(w.t, want, audited)
	return unclean
}

// reset takes the service back, so that what is left belongs to no one.
func (w *crowded) reset() {
	w.control("POST", "/reset", nil, nil)
	w.control("POST", "/settle", nil, nil)
	w.api.HTTP.CloseIdleConnections()
}

// idle waits for the connections to end that are not in use: those to destinations are kept
// for a while, and each is one descriptor and two goroutines. Memory that the collector has
// freed goes back to the system gradually.
func (w *crowded) idle(than stand) (now stand) {
	for began := time.Now(); ; time.Sleep(time.Second) {
		now = w.rest()
		few := now.descriptors <= than.descriptors+slack && now.goroutines <= than.goroutines+slack
		if few && now.memory <= most(than) || time.Since(began) > 3*time.Minute {
			return now
		}
	}
}

// most is how much memory may stay.
func most(than stand) int64 { return than.memory*3/2 + (64 << 20) }

// slack is how many descriptors and goroutines come and go by themselves.
const slack = 20

// meetsTheEnd stops the process while a crowd is at work.
func (w *crowded) meetsTheEnd(config crowd.Config) (took time.Duration, err error) {
	config.Seed, config.Calls = 3, 1<<30
	ctx, cancel := context.WithCancel(w.t.Context())
	last := crowd.New(config)
	done := make(chan struct{})
	go func() { defer close(done); last.Run(ctx) }()
	for last.Tally().Calls("") < int64(5*config.Clients) && ctx.Err() == nil {
		if _, err := w.metric("go_goroutines", ""); err != nil {
			break
		}
	}
	took, err = w.terminate()
	cancel()
	<-done
	last.Close()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, tail(w.said.String(), 2000))
	}
	return took, err
}

// nothingLeft compares the remains of one crowd with those of two.
func (w *crowded) nothingLeft(between, after stand) {
	var files []string
	for file := range after.files {
		if !between.files[file] {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	require.Empty(w.t, files, "files that nobody needs")
	require.LessOrEqual(w.t, after.descriptors, between.descriptors+slack, "descriptors")
	require.LessOrEqual(w.t, after.goroutines, between.goroutines+slack, "goroutines")
	require.LessOrEqual(w.t, after.memory, most(between), "memory")
}
