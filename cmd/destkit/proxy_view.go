package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/internal/quantity"
)

// sprintf makes a line for people.
func sprintf(format string, args ...any) string { return fmt.Sprintf(format, foreign.Args(args)...) }

// trafficView shows calls as they go by.
type trafficView struct {
	w              io.Writer
	lines, summary bool
	colour         bool

	mu      sync.Mutex
	calls   int
	records int
	broken  map[string]int
	caller  map[string]int
}

func newTrafficView(w io.Writer, quiet, verbose, colour bool) *trafficView {
	return &trafficView{
		w: w, lines: !quiet && (verbose || command.Is(w)), summary: !quiet && !verbose && !command.Is(w), colour: colour,
		broken: map[string]int{}, caller: map[string]int{},
	}
}

// line shows one call.
func (v *trafficView) line(l proxy.Line) {
	v.mu.Lock()
	v.calls++
	v.records += l.Records
	for _, id := range l.Broken {
		v.broken[id]++
	}
	for _, id := range l.Caller {
		v.caller[id]++
	}
	v.mu.Unlock()
	if v.lines {
		foreign.Println(v.w, lineWords(l))
	}
}

// lineWords is a call on one line: when, what, status, how long, records, findings.
func lineWords(l proxy.Line) string {
	what := foreign.Clip(foreign.Line(l.Method), 40)
	for _, more := range []string{l.Object, l.Operation} {
		if more != "" {
			what += " " + foreign.Clip(foreign.Line(more), 40)
		}
	}
	status := "---"
	if l.Status > 0 {
		status = fmt.Sprint(l.Status)
	}
	words := fmt.Sprintf("%s  %-34s %s %9.1f ms", l.Started.Local().Format("15:04:05.000"), what, status, l.MS)
	if l.Records > 0 {
		words += fmt.Sprintf("  %s: %d ok, %d failed", quantity.Count(l.Records, "record"), l.Succeeded, l.Failed)
	}
	if l.Problem != "" {
		words += "  " + foreign.Line(l.Problem)
	}
	if l.NotJudged != "" {
		words += "  not judged: " + l.NotJudged
	}
	if len(l.Broken) > 0 {
		words += "  breaks " + strings.Join(l.Broken, " ")
	}
	if len(l.Caller) > 0 {
		words += "  caller breaks " + strings.Join(l.Caller, " ")
	}
	return words
}

// start sums up now and then until the function that comes back is called. Files are
// flushed at the same times, so that a recording can be read while it grows.
func (v *trafficView) start(counts func() proxy.Counts, flush func() error) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(command.Every)
		defer every.Stop()
		for {
			select {
			case <-done:
				return
			case <-every.C:
				_ = flush() // the end of the run says it again
				if v.summary {
					foreign.Println(v.w, v.words(counts()))
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

// words sums up what went by so far.
func (v *trafficView) words(counts proxy.Counts) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	words := fmt.Sprintf("%s passed on, %s", quantity.Count(counts.Passed, "call"), quantity.Count(v.records, "record"))
	if counts.NotJudged > 0 {
		words += fmt.Sprintf(", %d not judged", counts.NotJudged)
	}
	if counts.Local > 0 {
		words += fmt.Sprintf(", %d answered by the proxy", counts.Local)
	}
	for _, side := range []struct {
		who string
		ids map[string]int
	}{{"the endpoint", v.broken}, {"the caller", v.caller}} {
		if len(side.ids) > 0 {
			words += fmt.Sprintf("; %s breaks %s", side.who, strings.Join(sortedNames(side.ids), " "))
		}
	}
	return words
}
