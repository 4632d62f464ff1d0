package main

import (
	"fmt"
	"strconv"
	"time"
)

// sustainedRate is what two cores have reserve for: at 50,000 a second, which the
// specification allows a connection by default, both sides together need all of them.
const sustainedRate = 40_000

// sustainedFor is how long it is kept up: a minute with the default of ten seconds.
func sustainedFor(o options) time.Duration { return time.Duration(6*o.seconds) * time.Second }

// warmed lets connections and memory grow before it is measured.
const warmed = 2 * time.Second

func takesSustained(o options) time.Duration { return sustainedFor(o) + warmed + 5*time.Second }

func measureSustained(w *workshop) ([]row, error)    { return w.sustained(false, "plain") }
func measureSustainedTLS(w *workshop) ([]row, error) { return w.sustained(true, "TLS") }

// sustained keeps the rate up and looks at what was reached, at what latency and
// with how much of the processors, of both sides.
func (w *workshop) sustained(secure bool, kind string) ([]row, error) {
	part := fmt.Sprintf("load, %s req/s for %.0f s, f1, %s", grouped(sustainedRate), sustainedFor(w.options).Seconds(), kind)
	sim, err := w.startSimulator(secure)
	if err != nil {
		return nil, err
	}
	defer sim.stop()
	l, err := w.checkedLoad(sim, f1, "--rate", strconv.Itoa(sustainedRate), "--duration", sustainedFor(w.options).String(), "--warm-up", warmed.String())
	if err != nil {
		return nil, err
	}
	// Both processes are charged from start to end, warm-up, planning and the writing
	// of the result included, by the time in which something was sent.
	seconds := l.Seconds + warmed.Seconds()
	one := func(v float64) row { return spreadOf([]float64{v}) }
	return []row{
		one(l.RequestsPerSecond/sustainedRate).called(part, "≥ 0.999 of the rate", "").atLeast(0.999).
			with("%s requests/s, %s never sent", digits(l.RequestsPerSecond), grouped(l.Generator.Unsent)),
		one(float64(l.bad())).called(part, "no bad result", "").most(0).
			with("of %s; %s records refused as intended", grouped(l.Records), grouped(l.ErrorsByKind["record_refused"])),
		one(l.Latency.P99).called(part, "p99 ≤ 2 ms from the intended time", "ms").most(2).
			with("p50 %s, service time p99 %s ms", digits(l.Latency.P50), digits(l.ServiceTime.P99)),
		one(l.Latency.P999).called(part, "p99.9 ≤ 5 ms from the intended time", "ms").most(5).with("maximum %s ms", digits(l.Latency.Max)),
		one((l.cpu+l.bySim)/seconds).called(part, "≤ 1.3 cores for both sides", "cores").most(1.3).
			with("load %s, simulator %s", digits(l.cpu/seconds), digits(l.bySim/seconds)),
	}, nil
}

const (
	stallRate = 1000 // requests per second
	stalls    = time.Second
)

func takesStall(options) time.Duration { return 12 * time.Second }

// measureStall stops the process of the simulator for a second in the middle of
// ten. Of 10,000 users in ten seconds those of the second wait for up to a
// second, and so do those behind them until the queue is gone, which is sent at
// twice the rate: one in a hundred waits for at least 0.95 s. A generator that
// waits itself would have seen one slow request on each connection.
func measureStall(w *workshop) ([]row, error) {
	const part = "load, a simulator that stalls for 1 s of 10"
	sim, err := w.startSimulator(false)
	if err != nil {
		return nil, err
	}
	defer sim.stop()
	// By then the program has asked for the plan and has been sending for seconds.
	halted := make(chan error, 1)
	stop := time.AfterFunc(5*time.Second, func() { halted <- sim.halt(w.ctx, stalls) })
	defer stop.Stop()
	l, err := w.checkedLoad(sim, f1, "--rate", strconv.Itoa(stallRate), "--duration", "10s")
	if err != nil {
		return nil, err
	}
	if err := <-halted; err != nil {
		return nil, err
	}
	one := func(v float64) row { return spreadOf([]float64{v}) }
	return []row{
		one(l.Latency.Max).called(part, "maximum latency ≥ 1,000 ms", "ms").atLeast(1000).with("%s requests, %s requests/s", grouped(l.Requests), digits(l.RequestsPerSecond)),
		one(l.Latency.P99).called(part, "p99 latency ≥ 900 ms", "ms").atLeast(900).with("950 ms by arithmetic; p90 %s", digits(l.Latency.P90)),
		one(l.ServiceTime.P99).called(part, "service time p99, which hides the stall", "ms").figure(),
	}, nil
}
