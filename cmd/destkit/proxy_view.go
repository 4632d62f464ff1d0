package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	pages "github.com/destkit/destkit/internal/dashboard"
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

	mu      sync.Mutex
	calls   int
	records int
	broken  map[string]int
	caller  map[string]int
}

func newTrafficView(w io.Writer, quiet, verbose bool) *trafficView {
	return &trafficView{
		w: w, lines: !quiet && (verbose || command.Is(w)), summary: !quiet && !verbose && !command.Is(w),
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
				_ = flush() // the end of the run reports it again
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

// proxyTraffic shows a page what a proxy and its judges have seen.
type proxyTraffic struct {
	recorder *proxy.Recorder
	counts   func() proxy.Counts
	options  report.Options
}

// Stamp changes with every exchange.
func (t *proxyTraffic) Stamp() string {
	_, observed := t.recorder.Dropped()
	return fmt.Sprint(t.counts(), observed)
}

// Calls are the exchanges that are kept.
func (t *proxyTraffic) Calls() pages.Calls {
	kept := t.recorder.Recent(0)
	dropped, observed := t.recorder.Dropped()
	out := pages.Calls{Observed: observed, Dropped: dropped, Counts: t.counts()}
	for _, k := range kept {
		out.Kept = append(out.Kept, pageCall(k))
	}
	return out
}

// Sides are the reports so far.
func (t *proxyTraffic) Sides() []pages.Side {
	endpoint := t.recorder.Report()
	noteCounts(endpoint, t.counts())
	out := []pages.Side{t.side(pages.SideEndpoint, "The endpoint", endpoint)}
	if caller := t.recorder.CallerReport(); caller != nil {
		out = append(out, t.side(pages.SideCaller, "The caller", caller))
	}
	return out
}

// pageCall is an exchange as the page shows it.
func pageCall(k proxy.Kept) pages.Call {
	l, e := k.Line, k.Exchange
	l.Method, l.Object, l.Operation, l.Problem = foreign.Line(l.Method), foreign.Line(l.Object), foreign.Line(l.Operation), foreign.Line(l.Problem)
	c := pages.Call{Line: l, Reused: e.ReusedConnection}
	if e.ID == 0 { // it was only passed on
		c.Request.Missing, c.Response.Missing = "Not kept: "+l.NotJudged+".", "Not kept: "+l.NotJudged+"."
		return c
	}
	if u, err := url.Parse(e.Request.URL); err == nil {
		c.Target = foreign.Line(u.RequestURI())
	}
	c.Request.Headers = pageHeaders(e.Request.Method+" "+e.Request.URL, e.Request.Header)
	c.Request.Body, c.Request.Bytes, c.Request.Missing, c.Request.Note = pageBody(e.Request.Body.Text, e.Request.Body.Base64, e.Request.Body.Size, e.Request.Body.Truncated)
	c.Curl = func() string { return pageCommand(e) }
	if e.Response == nil {
		c.Response.Missing = "There was no complete response."
		if e.Error != "" {
			c.Response.Missing = "There was no complete response: " + foreign.Line(e.Error)
		}
		return c
	}
	c.Response.Headers = pageHeaders(fmt.Sprintf("%s %d %s", e.Response.Proto, e.Response.Status, http.StatusText(e.Response.Status)), e.Response.Header)
	b := e.Response.Body
	c.Response.Body, c.Response.Bytes, c.Response.Missing, c.Response.Note = pageBody(b.Text, b.Base64, b.Size, b.Truncated)
	return c
}

// longestCommand is about what a shell takes as one word, in bytes.
const longestCommand = 100 << 10

// pageCommand is the request as a command, "" where it is too long for one.
func pageCommand(e conformance.Exchange) string {
	command := secretWords{}.in(e.Curl()) // a variable that is not set makes the shell say so
	if len(command) > longestCommand {
		return ""
	}
	return command
}

func pageHeaders(first string, lines []conformance.HeaderLine) []string {
	out := []string{foreign.Line(first)}
	for _, h := range lines {
		out = append(out, foreign.Line(h.Name+": "+h.Value))
	}
	return out
}

// pageBody is a body with what to know of it.
func pageBody(text, base64 string, size int64, cut bool) (body json.RawMessage, bytes int64, missing, note string) {
	switch {
	case text != "":
		body = json.RawMessage(text)
	case base64 != "":
		body, note = json.RawMessage(base64), "It is no text, and shown in Base64."
	case size == 0:
		missing = "There is no body."
	default:
		missing = "The body, of " + quantity.Count(size, "byte") + ", is not kept."
	}
	if cut && missing == "" {
		note += " Only its beginning is kept: it has " + quantity.Count(size, "byte") + "."
	}
	return body, size, missing, note
}

// side is a report as the page shows it.
func (t *proxyTraffic) side(key, name string, r *conformance.Report) pages.Side {
	s := pages.Side{
		Key: key, Name: name, Verdict: string(r.Verdict), Outline: *t.options.Outline(r), Records: r.Records, Notes: r.Notes, Titles: map[string]string{},
		Policy: report.HTMLPolicy(),
		Report: func(w io.Writer) error { return t.options.Write(report.HTML, w, r) },
	}
	for _, c := range r.Checks {
		s.Titles[c.ID] = c.Title
	}
	return s
}
