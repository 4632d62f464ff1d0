package dashboard

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/internal/quantity"
)

// ProxyConfig is what the page of a proxy needs.
type ProxyConfig struct {
	Traffic Traffic
	From    string // the address that callers use
	To      string // that of the endpoint, without secrets
	Token   string // the control token; "" opens the page to this machine
}

// Traffic is what a proxy has seen so far. Its methods are called by several goroutines.
type Traffic interface {
	// Stamp changes with what the others give.
	Stamp() string
	Calls() Calls
	// Sides are the endpoint and, where it is judged, the caller.
	Sides() []Side
}

// Calls are the exchanges that are kept, the oldest first, and counts of all.
type Calls struct {
	Kept              []Call
	Observed, Dropped int64
	proxy.Counts
}

// Call is one exchange, without secrets.
type Call struct {
	proxy.Line
	Target            string // path and query
	Reused            bool   // on a kept connection
	Request, Response console.Message
	Curl              func() string // "": the request is not known as a whole, or too long
}

// Side is the judgement of one side so far.
type Side struct {
	Key, Name string // "endpoint", "The endpoint"
	Verdict   string
	page.Outline
	Records int
	Notes   []string
	Titles  map[string]string // of all its checks, by id
	// Report writes the page that --report or --caller-report writes; Policy is its
	// content security policy.
	Report func(io.Writer) error
	Policy string
}

// Proxy is the pages of a proxy. Its methods are safe for parallel use.
type Proxy struct {
	cfg     ProxyConfig
	console *console.Console
	ended   atomic.Bool
}

// perPage is how many exchanges a page of the list has.
const perPage = 50

// NewProxy makes the pages of a proxy.
func NewProxy(cfg ProxyConfig) *Proxy {
	p := &Proxy{cfg: cfg}
	p.console = console.New(console.Options{
		Name: "proxy", Pages: embedded(), Token: cfg.Token, Stamp: p.stamp, Style: styleText,
		Funcs: functions,
		Nav:   []console.Link{{Path: "/", Text: "Traffic", Key: "t"}, {Path: "/findings", Text: "Findings", Key: "f"}},
	})
	p.console.Page("/{$}", "traffic", p.showTraffic)
	p.console.Page("/findings", "findings", p.showFindings)
	p.console.Page("/exchanges/{number}", "exchange", p.showExchange)
	p.console.Handle(http.MethodGet, "/report/{side}", p.showReport)
	return p
}

// ServeHTTP answers browsers: the root leads to the pages.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { front(p.console, w, r) }

// ForBrowser reports whether a request is for the pages: below their path, or one of a
// browser for the root. Everything else is for programs.
func (p *Proxy) ForBrowser(r *http.Request) bool {
	if r.URL.Path == console.Path || strings.HasPrefix(r.URL.Path, console.Path+"/") {
		return true
	}
	return r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(r.Header.Get("Accept"), "text/html") && (p.console.Guarded() || p.console.Admitted(r))
}

// Finish means that no further exchange comes.
func (p *Proxy) Finish() { p.ended.Store(true) }

// CloseConsole shows open pages the state once more, and ends their live updates: who had
// one open sees how it ended, also when the program is gone.
func (p *Proxy) CloseConsole() { p.console.Finish() }

func (p *Proxy) stamp() string {
	return p.cfg.Traffic.Stamp() + strconv.FormatBool(p.ended.Load())
}

// frame is what all pages of a proxy show.
type frame struct {
	From, To string
	Ended    bool
	Sides    []Side
}

func (p *Proxy) frame() frame {
	return frame{p.cfg.From, p.cfg.To, p.ended.Load(), p.cfg.Traffic.Sides()}
}

// trafficPage is the list of exchanges below the judgement.
type trafficPage struct {
	frame
	Calls
	Methods  []string
	List     console.Exchanges
	Filtered bool
	Fit      int // exchanges that the filter lets through
}

func (p *Proxy) showTraffic(r *console.Request) (any, error) {
	t := trafficPage{frame: p.frame(), Calls: p.cfg.Traffic.Calls()}
	f := filterOf(r)
	methods := map[string]bool{}
	if f.method != "" {
		methods[f.method] = true
	}
	t.Filtered = f.any()
	before, err := strconv.Atoi(r.Query("before"))
	if r.Query("before") != "" && (err != nil || before < 1) {
		return nil, console.Refuse(http.StatusBadRequest, "before: must be the number of an exchange, not %.40q", r.Query("before"))
	}
	t.List = console.Exchanges{Total: t.Observed, Dropped: t.Dropped, Newest: before == 0, Empty: "No call has come yet. Give the caller " + p.cfg.From + " as the URL of the endpoint."}
	for _, c := range slices.Backward(t.Kept) {
		methods[c.Method] = true
		if !f.takes(&c) {
			continue
		}
		t.Fit++
		switch {
		case before > 0 && c.Number >= before:
		case len(t.List.Items) < perPage:
			t.List.Items = append(t.List.Items, listed(&c))
		case t.List.Older == 0:
			t.List.Older = int64(listedLast(t.List.Items))
		}
	}
	if t.Filtered || before > 0 {
		t.List.Empty = "No exchange that is kept fits."
	}
	t.Methods = slices.Sorted(maps.Keys(methods))
	return t, nil
}

// listedLast is the number of the last exchange of a list.
func listedLast(items []console.Exchange) int {
	n, err := strconv.Atoi(items[len(items)-1].ID)
	if err != nil {
		return 0
	}
	return n
}

// filter holds the inputs of the form above the list.
type filter struct{ method, path, status, rules, text string }

func filterOf(r *console.Request) filter {
	return filter{r.Query("method"), r.Query("path"), strings.ToLower(r.Query("status")), r.Query("rules"), strings.ToLower(r.Query("text"))}
}

func (f filter) any() bool { return f != filter{} }

// takes reports whether an exchange fits.
func (f filter) takes(c *Call) bool {
	switch {
	case f.method != "" && c.Method != f.method,
		f.path != "" && !strings.Contains(c.Target, f.path),
		f.status != "" && !f.hasStatus(c.Status),
		f.rules == "endpoint" && len(c.Broken) == 0,
		f.rules == "caller" && len(c.Caller) == 0,
		f.rules == "broken" && len(c.Broken)+len(c.Caller) == 0:
		return false
	}
	return f.text == "" || c.contains(f.text)
}

// hasStatus takes a status such as 200, a class such as 5xx, and none.
func (f filter) hasStatus(status int) bool {
	text := strconv.Itoa(status)
	if class, ok := strings.CutSuffix(f.status, "xx"); ok {
		return status > 0 && text[:1] == class
	}
	return text == f.status || status == 0 && f.status == "none"
}

// contains looks for a text, in small letters, in all that is shown of an exchange.
func (c *Call) contains(text string) bool {
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return slices.ContainsFunc([]string{c.Method, c.Target, c.Object, c.Operation, c.Problem, c.NotJudged}, has) ||
		slices.ContainsFunc(c.Broken, has) || slices.ContainsFunc(c.Caller, has) ||
		slices.ContainsFunc(c.Request.Headers, has) || slices.ContainsFunc(c.Response.Headers, has) ||
		has(string(c.Request.Body)) || has(string(c.Response.Body))
}

// listed is an exchange as a row of a list.
func listed(c *Call) console.Exchange {
	number := strconv.Itoa(c.Number)
	x := console.Exchange{
		Link: "/exchanges/" + number, ID: number, At: c.Started, Method: c.Method, Target: strings.TrimSpace(c.Target + " " + c.Object + " " + c.Operation),
		Status: c.Status, Outcome: c.Problem, DurationMS: c.MS, Sent: c.Request.Bytes, Received: c.Response.Bytes, Checks: slices.Concat(c.Broken, c.Caller),
	}
	if c.Records > 0 {
		x.Tags = append(x.Tags, quantity.Grouped(int64(c.Succeeded))+" of "+quantity.Grouped(int64(c.Records))+" records ok")
	}
	if c.NotJudged != "" {
		x.Tags = append(x.Tags, "not judged")
	}
	return x
}

func (p *Proxy) showFindings(*console.Request) (any, error) { return p.frame(), nil }

// breach is a rule that one exchange breaks.
type breach struct {
	Side, ID, Title string
	Findings        []page.Finding
	Causes          []page.Cause
}

// exchangePage is one exchange in full.
type exchangePage struct {
	Call
	Shown        console.Exchange
	Breaches     []breach
	Command      string
	Older, Newer int // the numbers of the next ones that are kept; 0: none
}

func (p *Proxy) showExchange(r *console.Request) (any, error) {
	number := int(r.ID("number"))
	calls := p.cfg.Traffic.Calls()
	at := slices.IndexFunc(calls.Kept, func(c Call) bool { return c.Number == number })
	if at < 0 {
		return nil, console.Refuse(http.StatusNotFound, "there is no exchange %.20q: the proxy keeps the latest %d; --journal FILE records all", r.Value("number"), max(len(calls.Kept), 1))
	}
	e := exchangePage{Call: calls.Kept[at], Shown: listed(&calls.Kept[at])}
	if at > 0 {
		e.Older = calls.Kept[at-1].Number
	}
	if at < len(calls.Kept)-1 {
		e.Newer = calls.Kept[at+1].Number
	}
	if e.Curl != nil {
		e.Command = e.Curl()
	}
	if len(e.Broken)+len(e.Caller) > 0 {
		e.Breaches = breaches(&e.Call, p.cfg.Traffic.Sides())
	}
	return e, nil
}

// breaches are the rules that an exchange breaks, with what the reports say of it.
func breaches(c *Call, sides []Side) (list []breach) {
	for _, s := range sides {
		ids := c.Broken
		if s.Key == SideCaller {
			ids = c.Caller
		}
		for _, id := range ids {
			b := breach{Side: s.Name, ID: id, Title: s.Titles[id]}
			for _, rule := range slices.Concat(s.Failures, s.Warnings, s.Waived) {
				if rule.ID != id {
					continue
				}
				b.Findings = append(b.Findings, seenIn(c.Number, rule.Findings)...)
				for _, cause := range rule.Causes {
					if slices.Contains(cause.Exchanges, c.Number) {
						b.Causes = append(b.Causes, cause)
					}
				}
			}
			list = append(list, b)
		}
	}
	return list
}

// seenIn are the findings that an exchange shows, without those of the one before.
func seenIn(number int, findings []page.Finding) (list []page.Finding) {
	before := page.Finding{}
	for _, f := range findings {
		if !slices.Contains(f.Exchanges, number) {
			continue
		}
		shown := f
		if f.Place == before.Place {
			shown.Place = ""
		}
		if f.Expected == before.Expected {
			shown.Expected = ""
		}
		list, before = append(list, shown), f
	}
	return list
}

// The keys of the two sides.
const (
	SideEndpoint = "endpoint"
	SideCaller   = "caller"
)

// showReport writes the report of a side so far. Its style and its script are within it,
// so it has the policy of such a page.
func (p *Proxy) showReport(r *console.Request) {
	for _, s := range p.cfg.Traffic.Sides() {
		if s.Key != r.Value("side") {
			continue
		}
		var b bytes.Buffer
		if err := s.Report(&b); err != nil {
			r.Fail(err)
			return
		}
		r.W.Header().Set("Content-Security-Policy", s.Policy+"; frame-ancestors 'none'")
		r.W.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = r.W.Write(b.Bytes())
		return
	}
	r.Fail(console.Refuse(http.StatusNotFound, "there is no report on %.40q: the reports are on endpoint and caller, where --judge names it", r.Value("side")))
}
