package main

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

func takesSearch(o options) time.Duration {
	return time.Duration((o.rounds+1)*(o.seconds+1)+45) * time.Second
}

// measureSearch looks for the maximum that closed loops reach: some before and
// some after, since a shared machine changes.
func measureSearch(w *workshop) ([]row, error) {
	const part = "load, search for the maximum, f1"
	sim, err := w.startSimulator(false)
	if err != nil {
		return nil, err
	}
	defer sim.stop()
	var closed []float64
	loop := func() error {
		if err := sim.reset(); err != nil {
			return err
		}
		l, err := w.checkedLoad(sim, f1, "--closed", "--connections", strconv.Itoa(f1.connections), "--duration", strconv.Itoa(w.options.seconds)+"s")
		if err == nil {
			closed = append(closed, l.RequestsPerSecond)
			w.say("  closed loop: %s", digits(l.RequestsPerSecond))
		}
		return err
	}
	if err := loop(); err != nil {
		return nil, err
	}
	// The goal of the search leaves out the records that are refused on purpose.
	began := time.Now()
	if err := sim.reset(); err != nil {
		return nil, err
	}
	l, err := w.load(sim.url, "", f1, "--search", "--slo", "errors=10%", "--confirm", strconv.Itoa(w.options.seconds)+"s")
	if err != nil {
		return nil, err
	}
	if l.bad() != 0 {
		return nil, fmt.Errorf("search the maximum: %v", l.ErrorsByKind)
	}
	took := time.Since(began).Seconds() - float64(w.options.seconds)
	for range w.options.rounds - 1 {
		if err := loop(); err != nil {
			return nil, err
		}
	}
	// Off by more in either direction is a miss: a rate above the closed loops would
	// not have been held.
	most := median(closed)
	one := func(v float64) row { return spreadOf([]float64{v}) }
	confirmed := 0.0
	if l.Search.Confirmed {
		confirmed = 1
	}
	return []row{
		one(100*math.Abs(l.Search.Rate-most)/most).called(part, "within 5 % of the closed loop", "%").most(5).
			with("found %s, closed loop %s requests/s, knee at %d connections", digits(l.Search.Rate), digits(most), l.Search.Knee),
		one(took).called(part, "in ≤ 60 s", "s").most(60),
		one(confirmed).called(part, fmt.Sprintf("confirmed over %d s more", w.options.seconds), "").atLeast(1),
	}, nil
}

// known are limits: so many requests at once, each taking so long.
var known = []struct {
	parallel int
	each     time.Duration
}{
	{1, 4 * time.Millisecond}, {2, 10 * time.Millisecond}, {3, 7 * time.Millisecond}, {4, 10 * time.Millisecond}, {5, 20 * time.Millisecond},
	{6, 15 * time.Millisecond}, {8, 20 * time.Millisecond}, {10, 25 * time.Millisecond}, {12, 40 * time.Millisecond}, {16, 50 * time.Millisecond},
}

// lanes is how many of these searches run at once: their rates are low.
const lanes = 5

func takesKnown(o options) time.Duration {
	return time.Duration(len(known)/lanes*(30+o.seconds)) * time.Second
}

// measureKnown searches ten limits that are known.
func measureKnown(w *workshop) ([]row, error) {
	const part = "load, search for a known limit"
	off := make([]float64, len(known))
	failures := make([]error, len(known))
	free := make(chan struct{}, lanes)
	var all sync.WaitGroup
	for i := range known {
		free <- struct{}{}
		all.Go(func() {
			off[i], failures[i] = w.searchKnown(i)
			<-free
		})
	}
	all.Wait()
	found, worst := 0.0, 0.0
	for i, err := range failures {
		if err != nil {
			return nil, err
		}
		worst = max(worst, math.Abs(off[i]))
		if math.Abs(off[i]) <= 0.05 {
			found++
		}
	}
	return []row{
		spreadOf([]float64{found}).called(part, fmt.Sprintf("%d of %d within 5 %%", len(known), len(known)), "found").atLeast(float64(len(known))).
			with("largest deviation %.1f %%", 100*worst),
	}, nil
}

// searchKnown makes one search; off is the share by which it was wrong.
func (w *workshop) searchKnown(i int) (off float64, err error) {
	sim, err := w.startSimulator(false)
	if err != nil {
		return 0, err
	}
	defer sim.stop()
	limit := known[i]
	front, err := newNarrows(sim.url, limit.parallel, limit.each)
	if err != nil {
		return 0, err
	}
	defer front.server.Close()
	// No record is refused here: the goal of these searches allows one in a thousand.
	what := f1
	what.name = fmt.Sprintf("known-%d", i) // its own template file
	what.template = strings.ReplaceAll(f1.template, ages, "20 21 22")
	l, err := w.load(front.url, "", what, "--search", "--slo", "errors=0.1%", "--confirm", strconv.Itoa(w.options.seconds)+"s")
	if err != nil {
		return 0, err
	}
	if l.Errors != 0 || !l.Search.Confirmed {
		return 0, fmt.Errorf("search a known limit: confirmed is %t, errors %v", l.Search.Confirmed, l.ErrorsByKind)
	}
	want := float64(limit.parallel) / limit.each.Seconds()
	off = l.Search.Rate/want - 1
	w.say("  %d at once, %s each: %s requests/s, found %s (%+.1f %%), knee at %d", limit.parallel, limit.each, digits(want), digits(l.Search.Rate), 100*off, l.Search.Knee)
	return off, nil
}

// narrows stands before a simulator and gives it a service time and a
// parallelism: so many requests at once, each taking so long.
type narrows struct {
	url    string
	server *http.Server
	places chan time.Time // when the place is free; a request takes the first
	each   time.Duration
	next   http.Handler
}

func newNarrows(target string, parallel int, each time.Duration) (*narrows, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("limit a simulator: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("limit a simulator: %w", err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	// The default keeps two connections, and would make one for most requests.
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	n := &narrows{url: "http://" + listener.Addr().String(), places: make(chan time.Time, parallel), each: each, next: proxy}
	for range parallel {
		n.places <- time.Time{}
	}
	n.server = &http.Server{Handler: n}
	go func() { _ = n.server.Serve(listener) }()
	return n, nil
}

// ServeHTTP implements http.Handler. A place that was wanted when it became free
// is taken from then on: what a timer wakes too late does not lower the limit.
func (n *narrows) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Planning calls are small, and pass: only batches have the service time.
	if r.ContentLength < 600 {
		n.next.ServeHTTP(w, r)
		return
	}
	came := time.Now()
	free := <-n.places
	if free.Before(came) {
		free = came
	}
	done := free.Add(n.each)
	n.next.ServeHTTP(w, r)
	time.Sleep(time.Until(done))
	n.places <- done
}
