// Package loadpage shows results of loads as HTML pages with plots: the report of one,
// the comparison of two, and the plots of a run that goes on. Measuring, judging limits
// and comparing figures it leaves to package loadgen.
package loadpage

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

//go:embed html/*.gohtml
var pageFiles embed.FS

// Style is the style sheet of charts, in addition to that of a page.
//
//go:embed html/charts.css
var Style string

// pages are the report of a result and that of a comparison, with the parts that
// they share, parsed once.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("pages").Funcs(template.FuncMap{
		"grouped": quantity.Grouped, "rate": quantity.Rate, "ms": quantity.Time, "percent": func(v float64) string { return fmt.Sprintf("%.3g %%", v*100) },
		"timed": timed,
		"shown": foreign.Line, "policy": func() string { return page.Policy },
		"look":      func() template.CSS { return template.CSS(page.Style) }, // ours, and constant
		"chartLook": func() template.CSS { return template.CSS(Style) },      // so is this
		"join":      func(s []loadgen.Share) string { return foreign.Line(namesOf(s)) },
	}).ParseFS(pageFiles, "html/*.gohtml"))
})

// view is what the page shows.
type view struct {
	*loadgen.Result
	How     string
	When    string
	Lost    float64
	Charts  []Chart
	Verdict string
	Good    bool
	Silence string   // the longest time without a reply
	Remarks []string // notes that the page does not show elsewhere
}

// TimeRows has a figure of latency and service time in each row: few columns fit
// a telephone.
func (v view) TimeRows() (rows []timeRow) {
	for _, figure := range []struct {
		name string
		of   func(loadgen.Times) float64
	}{
		{"min", func(t loadgen.Times) float64 { return t.Min }}, {"mean", func(t loadgen.Times) float64 { return t.Mean }},
		{"p50", func(t loadgen.Times) float64 { return t.P50 }}, {"p75", func(t loadgen.Times) float64 { return t.P75 }},
		{"p90", func(t loadgen.Times) float64 { return t.P90 }}, {"p95", func(t loadgen.Times) float64 { return t.P95 }},
		{"p99", func(t loadgen.Times) float64 { return t.P99 }}, {"p99.9", func(t loadgen.Times) float64 { return t.P999 }},
		{"p99.99", func(t loadgen.Times) float64 { return t.P9999 }}, {"max", func(t loadgen.Times) float64 { return t.Max }},
	} {
		rows = append(rows, timeRow{figure.name, []float64{figure.of(v.Latency), figure.of(v.ServiceTime)}})
	}
	return rows
}

type timeRow struct {
	Name   string
	Values []float64
}

// Write writes the report as one page that needs no other file, no script and no
// network.
func Write(w io.Writer, r *loadgen.Result) error {
	v := view{
		Result: r, How: howText(r), When: whenText(r), Lost: r.LostShare(),
	}
	v.Verdict, v.Good = verdictText(r)
	v.Charts, v.Silence, v.Remarks = charts(r), silenceText(r), r.Remarks()
	if err := pages().ExecuteTemplate(w, "load.gohtml", v); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

// timed reports whether there is any latency to show.
func timed(r *loadgen.Result) bool { return r.Latency.Max > 0 }

// namesOf are the names of the parts of a mix, in a line.
func namesOf(shares []loadgen.Share) string {
	return strings.Join(lists.Of(shares, func(s loadgen.Share) string { return s.Name }), ", ")
}

func whenText(r *loadgen.Result) string {
	return r.Started.UTC().Format("2 January 2006, 15:04:05 UTC")
}

func howText(r *loadgen.Result) string {
	switch r.Load.Mode {
	case "closed":
		return fmt.Sprintf("closed loop, %s", quantity.Count(r.Load.Connections, "connection"))
	case "as-declared":
		return "exactly as fast as the destination declares"
	case "search":
		return "the run that confirms it"
	}
	return fmt.Sprintf("open loop, %s requests/s asked for, %s", quantity.Rate(r.Load.Rate), quantity.Count(r.Load.Connections, "connection"))
}

// verdictText is the first sentence that a reader wants.
func verdictText(r *loadgen.Result) (string, bool) {
	for _, t := range r.Thresholds {
		if t.Failed {
			return "A limit was broken: " + t.Text, false
		}
	}
	switch {
	case r.Verification != nil && r.Verification.Findings() > 0:
		return fmt.Sprintf("%s of %s that were read back are not as they were acknowledged", quantity.Grouped(r.Verification.Findings()), quantity.Counted(r.Verification.Verified, "record")), false
	case r.Verification != nil && r.Verification.Chosen > 0 && r.Verification.Verified == 0:
		return "Nothing could be verified", false
	case r.Ended == "too many errors":
		return "Stopped: too many errors", false
	case r.Ended == "interrupted":
		return fmt.Sprintf("Interrupted after %.3g s", r.Seconds), false
	case r.Search != nil && r.Search.Confirmed:
		return fmt.Sprintf("%s requests/s, %s records/s hold %s", quantity.Rate(r.Search.Rate), quantity.Rate(r.Search.RecordsPerSecond), r.Search.Goal), true
	case r.Search != nil:
		return "No rate was confirmed", false
	case r.RateMissed():
		return fmt.Sprintf("The rate was not reached: %s of %s requests/s", quantity.Rate(r.RequestsPerSecond), quantity.Rate(r.Load.Rate)), false
	case len(r.Thresholds) > 0 && r.Errors > 0:
		return "Every limit was kept, with " + quantity.Counted(r.Errors, "error"), true
	case len(r.Thresholds) > 0:
		return "Every limit was kept", true
	case r.Errors > 0 && r.Acknowledged == 0 && r.Service != nil:
		return "No request was answered as it must be: " + quantity.Counted(r.Errors, "error"), false
	case r.Errors > 0 && r.Acknowledged == 0:
		return "No record was acknowledged: " + quantity.Counted(r.Errors, "error"), false
	case r.Errors > 0:
		return quantity.Counted(r.Errors, "error"), false
	case r.Requests == 0:
		return "Nothing was answered", false
	}
	if r.Service != nil {
		if runs := r.Service.Runs; runs != nil && runs.Failed+runs.Unfinished > 0 {
			return fmt.Sprintf("Every reply was as it must be; %s of %s did not complete", quantity.Grouped(runs.Failed+runs.Unfinished), quantity.Counted(runs.Started, "run")), false
		}
		return "Every reply was as it must be", true
	}
	if v := r.Verification; v != nil && v.Verified > 0 {
		return "Every record was acknowledged, and " + quantity.Grouped(v.Verified) + " that were read back are there", true
	}
	return "Every record was acknowledged", true
}
