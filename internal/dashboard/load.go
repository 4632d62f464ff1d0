// Package dashboard owns the pages of what runs in a terminal: a load while it runs, and
// a proxy. Both use the package console, with its rules of who may look.
//
// A run waits for no page: it leaves its latest figures, and each request for a page
// renders these.
package dashboard

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/loadpage"
	"github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

//go:embed pages/*.html
var files embed.FS

//go:embed dashboard.css
var styleText string

// embedded is the folder of the pages.
func embedded() fs.FS {
	pages, err := fs.Sub(files, "pages")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return pages
}

// functions are those of the pages in addition to those of all consoles.
var functions = template.FuncMap{"sentence": page.Sentence}

// LoadConfig is what the page of a load needs.
type LoadConfig struct {
	Control *loadgen.Control // that of the run
	// Limits are those of --fail-if, for use before the first figures.
	Limits []loadgen.Threshold
	// Count and MaxRecords bound the run; 0: they do not.
	Count, MaxRecords int64
	Token             string // the control token; "" opens the page to this machine
}

// Load is the page of a running load, and of its report afterwards. Its methods are
// safe for parallel use.
type Load struct {
	cfg     LoadConfig
	console *console.Console

	mu     sync.Mutex
	latest loadgen.Moment
	series []loadgen.Point // of the phase that runs; appended points do not change
	notes  []string
	report []byte // nil: the load has not ended
	stamp  int64
}

// mostPoints bounds the series of a load without a planned end; older points are left
// out.
const mostPoints = 3600

// mostNotes bounds the notes on the page.
const mostNotes = 50

// reportPath is the page of the report.
const reportPath = "/report"

// NewLoad makes the page of a load.
func NewLoad(cfg LoadConfig) *Load {
	cfg.Limits = slices.Clone(cfg.Limits) // their owner fills in how they came out
	l := &Load{cfg: cfg}
	c := console.New(console.Options{
		Name: "load", Pages: embedded(), Token: cfg.Token, Stamp: l.stamped, Style: loadpage.Style + styleText,
		Funcs: functions,
	})
	c.Page("/{$}", "load", l.show)
	c.Action("/pause", "/", l.pause)
	c.Action("/resume", "/", l.resume)
	c.Action("/rate", "/", l.setRate)
	c.Action("/stop", "/", l.stop)
	c.Handle(http.MethodGet, reportPath, l.showReport)
	l.console = c
	return l
}

// ServeHTTP answers browsers: the root leads to the page.
func (l *Load) ServeHTTP(w http.ResponseWriter, r *http.Request) { front(l.console, w, r) }

// front serves a console, and leads there from the root.
func front(c *console.Console, w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == console.Path || strings.HasPrefix(r.URL.Path, console.Path+"/"):
		c.ServeHTTP(w, r)
	case r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		c.Front(w, r)
	default:
		http.Error(w, "the page is at "+console.Path+"/", http.StatusNotFound)
	}
}

// CloseConsole ends the live updates of open pages, which otherwise never end.
func (l *Load) CloseConsole() { l.console.Close() }

// Moment takes the figures of a moment.
func (l *Load) Moment(m loadgen.Moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.series) - 1
	switch {
	case m.Phase != l.latest.Phase, m.Elapsed < l.latest.Elapsed: // another phase, or another step of a search
		l.series = nil
		fallthrough
	case last < 0, l.series[last].At != m.Latest.At:
		if m.Latest.At > 0 {
			l.series = append(l.series, m.Latest)
		}
	}
	if len(l.series) > mostPoints {
		l.series = l.series[1:]
	}
	if m.Target.Address == "" { // as when records are read back
		m.Target, m.Load = l.latest.Target, l.latest.Load
	}
	if m.Limits == nil {
		m.Limits = l.latest.Limits
	}
	l.latest = m
	l.stamp++
}

// Note takes a line of text.
func (l *Load) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.notes) < mostNotes {
		l.notes = append(l.notes, text)
	}
	l.stamp++
}

// Finish puts the report in the place of the figures.
func (l *Load) Finish(r *loadgen.Result) error {
	var b bytes.Buffer
	if err := loadpage.Write(&b, r); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report = b.Bytes()
	l.stamp++
	return nil
}

// stamped changes with what the page shows.
func (l *Load) stamped() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.stamp, l.cfg.Control.Paused())
}

// limit is one of --fail-if as written.
type limit struct{ State, Tone, Text string }

// kind is how often one kind of error was met.
type kind struct {
	Name  string
	Count int64
}

// step is a stage of the plan.
type step struct {
	Text string
	Now  bool
}

// loadPage is what the page shows.
type loadPage struct {
	loadgen.Moment
	Began           bool // there are figures
	Objects, How    string
	Phase, Tone     string
	Done, Whole     string  // of the plan, in words
	Share           float64 // of it, 0 to 100
	Steps           []step
	Reached, Speed  float64 // in the last interval; Speed of acknowledged records
	CPUText         string
	Timed           bool
	Limits          []limit
	Kinds           []kind
	Charts          []loadpage.Chart
	Notes           []string
	Paused, Rated   bool
	CanPause        bool
	PerBatch, Asked float64
}

// show makes the page, or leads to the report.
func (l *Load) show(*console.Request) (any, error) {
	l.mu.Lock()
	if l.report != nil {
		l.mu.Unlock()
		return console.Next(reportPath), nil
	}
	m, series, notes := l.latest, l.series, slices.Clone(l.notes)
	l.mu.Unlock()
	p := loadPage{
		Moment: m, Began: m.Phase != "", Phase: m.Phase, Tone: "open", Notes: notes, Paused: l.cfg.Control.Paused(), Asked: m.Asked,
		Reached: m.Latest.RequestsPerSecond, Speed: m.Latest.AcknowledgedPerSecond, Timed: m.Latest.Max > 0,
		CPUText: fmt.Sprintf("%.2f of %d", m.CPUs, runtime.NumCPU()), PerBatch: float64(m.Load.BatchSize),
	}
	switch {
	case !p.Began:
		p.Phase = "starting"
	case p.Paused:
		p.Phase, p.Tone = "paused", "warn"
	}
	if p.Began {
		p.Objects, p.How = strings.TrimPrefix(shares(m.Target.Objects)+" at ", " at ")+m.Target.Address, howText(m)
	}
	sends := slices.Contains([]string{"prepare", "warm-up", "load", "search"}, m.Phase)
	p.CanPause = sends || !p.Began
	p.Rated = sends && m.Open && m.Load.Mode != "search"
	p.progress(l.cfg)
	p.Limits = limits(l.cfg.Limits, m)
	for _, name := range slices.Sorted(maps.Keys(m.ErrorsByKind)) {
		p.Kinds = append(p.Kinds, kind{name, m.ErrorsByKind[name]})
	}
	slices.SortStableFunc(p.Kinds, func(a, b kind) int { return int(b.Count - a.Count) })
	p.Charts = loadpage.Live(m.Load, series)
	return p, nil
}

// progress reports how far the phase is: by its time, or by what bounds it.
func (p *loadPage) progress(cfg LoadConfig) {
	m := p.Moment
	part := func(share float64, done, whole string) {
		if share = min(100, 100*share); share >= p.Share {
			p.Share, p.Done, p.Whole = share, done, whole
		}
	}
	p.Done = seconds(m.Elapsed)
	if m.Of > 0 {
		part(m.Elapsed.Seconds()/m.Of.Seconds(), seconds(m.Elapsed), seconds(m.Of))
	}
	if m.Phase == "load" && cfg.Count > 0 {
		part(float64(m.Requests)/float64(cfg.Count), quantity.Grouped(m.Requests), quantity.Grouped(cfg.Count)+" requests")
	}
	if m.Phase == "load" && cfg.MaxRecords > 0 {
		part(float64(m.Records)/float64(cfg.MaxRecords), quantity.Grouped(m.Records), quantity.Grouped(cfg.MaxRecords)+" records")
	}
	if m.Phase != "load" && m.Phase != "warm-up" || len(m.Load.Stages) < 2 || m.Load.Mode != "open" {
		return
	}
	from := time.Duration(0)
	for i, s := range m.Load.Stages {
		rate := quantity.Rate(s.From)
		if s.To != s.From {
			rate += " to " + quantity.Rate(s.To)
		}
		last := i == len(m.Load.Stages)-1
		p.Steps = append(p.Steps, step{seconds(s.Duration) + " at " + rate + "/s", m.Elapsed >= from && (last || m.Elapsed < from+s.Duration)})
		from += s.Duration
	}
}

// limits are those of --fail-if, as far as they are known.
func limits(wanted []loadgen.Threshold, m loadgen.Moment) (list []limit) {
	for i, t := range wanted {
		l := limit{"not known yet", "none", t.Text}
		switch {
		case t.NeedsVerification():
			l.State, l.Text = "after the load", t.Text+": told by what is read back"
		case i >= len(m.Limits):
		case m.Limits[i].Unmeasured:
			l.Text = t.Text + ": no request was answered with results so far"
		case m.Limits[i].Failed:
			l = limit{"broken", "bad", m.Limits[i].Reading()}
		default:
			l = limit{"kept", "good", m.Limits[i].Reading()}
		}
		list = append(list, l)
	}
	return list
}

func shares(list []loadgen.Share) string {
	return strings.Join(lists.Of(list, func(s loadgen.Share) string { return s.Name }), ", ")
}

func howText(m loadgen.Moment) string {
	i := m.Load
	how := map[string]string{"closed": "closed loop", "open": "open loop", "as-declared": "as the destination declares", "search": "search of the highest rate"}[i.Mode]
	if m.Service {
		return fmt.Sprintf("%s, %d clients of the REST API, seed %d, run %s", how, i.Connections, i.Seed, i.Run)
	}
	return fmt.Sprintf("%s, batches of %s of %s records, %d connections, seed %d, run %s", how, quantity.Grouped(int64(i.BatchSize)), i.Records, i.Connections, i.Seed, i.Run)
}

// seconds is a time, with no more digits than are of use.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// ended refuses what only a running load can do.
func (l *Load) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.report != nil {
		return console.Refuse(http.StatusConflict, "the load has ended: its report is at %s%s", console.Path, reportPath)
	}
	return nil
}

func (l *Load) pause(r *console.Request) (string, error) {
	if err := l.ended(); err != nil {
		return "", err
	}
	l.cfg.Control.Pause()
	r.Done("The load is paused: requests under way are answered, and nothing new is sent. Its time goes on.")
	return "/", nil
}

func (l *Load) resume(r *console.Request) (string, error) {
	if err := l.ended(); err != nil {
		return "", err
	}
	l.cfg.Control.Resume()
	r.Done("The load goes on. What was due in the pause is not made up for.")
	return "/", nil
}

func (l *Load) setRate(r *console.Request) (string, error) {
	if err := l.ended(); err != nil {
		return "", err
	}
	text := strings.NewReplacer(",", "", "_", "").Replace(r.Form("rate"))
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", console.Refuse(http.StatusBadRequest, "rate: must be a number of requests per second, such as 500")
	}
	l.mu.Lock()
	mode := l.latest.Load.Mode
	l.mu.Unlock()
	if mode == "search" {
		return "", console.Refuse(http.StatusBadRequest, "rate: a search chooses its rates itself")
	}
	if err := l.cfg.Control.SetRate(rate); err != nil {
		return "", console.Refuse(http.StatusBadRequest, "rate: %v", err)
	}
	r.Done(fmt.Sprintf("The rate is %s requests/s from now on.", quantity.Rate(rate)))
	return "/", nil
}

func (l *Load) stop(r *console.Request) (string, error) {
	if err := l.ended(); err != nil {
		return "", err
	}
	l.cfg.Control.Stop()
	r.Done("The load ends; its report comes when the requests under way are answered.")
	return "/", nil
}

// showReport writes what --report writes. Its style is within it, so it has the policy of
// such a page.
func (l *Load) showReport(r *console.Request) {
	l.mu.Lock()
	report := l.report
	l.mu.Unlock()
	if report == nil {
		http.Redirect(r.W, r.HTTP, r.Root+"/", http.StatusSeeOther)
		return
	}
	r.W.Header().Set("Content-Security-Policy", page.Policy+"; frame-ancestors 'none'")
	r.W.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = r.W.Write(report)
}
