package loadgen

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/plural"
)

//go:embed html/*.gohtml
var pageFiles embed.FS

// ChartStyle is the style sheet of charts, beside that of a page.
//
//go:embed html/charts.css
var ChartStyle string

// pages are the report of a result and that of a comparison, with the parts that
// they share.
var pages = template.Must(template.New("pages").Funcs(template.FuncMap{
	"grouped": grouped, "rate": rateText, "ms": msText, "percent": func(v float64) string { return fmt.Sprintf("%.3g %%", v*100) },
	"timed": (*Result).timed,
	"shown": foreign.Line, "policy": func() string { return page.Policy },
	"look":      func() template.CSS { return template.CSS(page.Style) }, // ours, and constant
	"chartLook": func() template.CSS { return template.CSS(ChartStyle) }, // so is this
	"join":      func(s []Share) string { return foreign.Line(strings.Join(names(s), ", ")) },
}).ParseFS(pageFiles, "html/*.gohtml"))

// view is what the page shows.
type view struct {
	*Result
	How     string
	When    string
	Lost    float64
	Charts  []Chart
	Verdict string
	Good    bool
	Silence string   // the longest time without a reply
	Remarks []string // notes that the page does not show elsewhere
}

// Subject is what was loaded: objects, or the API of a service.
func (r *Result) Subject() string {
	if r.Load.Scenario != "" {
		return "the REST API (" + r.Load.Scenario + ")"
	}
	return foreign.Line(strings.Join(names(r.Target.Objects), ", "))
}

// remarks leaves out what stands under "The generator" already.
func remarks(r *Result) (list []string) {
	for _, note := range r.Notes {
		if reason, ok := strings.CutPrefix(note, limitNote); !ok || !slices.Contains(r.Generator.Reasons, reason) {
			list = append(list, note)
		}
	}
	return list
}

// TimeRows has a figure of latency and service time in each row: few columns fit
// a telephone.
func (v view) TimeRows() (rows []timeRow) {
	for _, figure := range []struct {
		name string
		of   func(Times) float64
	}{
		{"min", func(t Times) float64 { return t.Min }}, {"mean", func(t Times) float64 { return t.Mean }},
		{"p50", func(t Times) float64 { return t.P50 }}, {"p75", func(t Times) float64 { return t.P75 }},
		{"p90", func(t Times) float64 { return t.P90 }}, {"p95", func(t Times) float64 { return t.P95 }},
		{"p99", func(t Times) float64 { return t.P99 }}, {"p99.9", func(t Times) float64 { return t.P999 }},
		{"p99.99", func(t Times) float64 { return t.P9999 }}, {"max", func(t Times) float64 { return t.Max }},
	} {
		rows = append(rows, timeRow{figure.name, []float64{figure.of(v.Latency), figure.of(v.ServiceTime)}})
	}
	return rows
}

type timeRow struct {
	Name   string
	Values []float64
}

// WriteHTML writes the report as one page that needs no other file, no script
// and no network.
func WriteHTML(w io.Writer, r *Result) error {
	v := view{
		Result: r, How: howText(r), When: whenText(r), Lost: shares["errors"](r),
	}
	v.Verdict, v.Good = verdictText(r)
	v.Charts, v.Silence, v.Remarks = charts(r), silenceText(r), remarks(r)
	if err := pages.ExecuteTemplate(w, "load.gohtml", v); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

func whenText(r *Result) string { return r.Started.UTC().Format("2 January 2006, 15:04:05 UTC") }

func howText(r *Result) string {
	switch r.Load.Mode {
	case "closed":
		return fmt.Sprintf("closed loop, %s", plural.Count(r.Load.Connections, "connection"))
	case "as-declared":
		return "exactly as fast as the destination declares"
	case "search":
		return "the run that confirms it"
	}
	return fmt.Sprintf("open loop, %s requests/s asked for, %s", rateText(r.Load.Rate), plural.Count(r.Load.Connections, "connection"))
}

// verdictText is the first sentence that a reader wants.
func verdictText(r *Result) (string, bool) {
	for _, t := range r.Thresholds {
		if t.Failed {
			return "A limit was broken: " + t.Text, false
		}
	}
	switch {
	case r.Verification != nil && r.Verification.Findings() > 0:
		return fmt.Sprintf("%s of %s that were read back are not as they were acknowledged", grouped(r.Verification.Findings()), counted(r.Verification.Verified, "record")), false
	case r.Verification != nil && r.Verification.Chosen > 0 && r.Verification.Verified == 0:
		return "Nothing could be verified", false
	case r.Ended == "too many errors":
		return "Stopped: too many errors", false
	case r.Ended == "interrupted":
		return fmt.Sprintf("Interrupted after %.3g s", r.Seconds), false
	case r.Search != nil && r.Search.Confirmed:
		return fmt.Sprintf("%s requests/s, %s records/s hold %s", rateText(r.Search.Rate), rateText(r.Search.RecordsPerSecond), r.Search.Goal), true
	case r.Search != nil:
		return "No rate was confirmed", false
	case len(r.Thresholds) > 0 && r.Errors > 0:
		return "Every limit was kept, with " + counted(r.Errors, "error"), true
	case len(r.Thresholds) > 0:
		return "Every limit was kept", true
	case r.Errors > 0 && r.Acknowledged == 0 && r.Service != nil:
		return "No request was answered as it must be: " + counted(r.Errors, "error"), false
	case r.Errors > 0 && r.Acknowledged == 0:
		return "No record was acknowledged: " + counted(r.Errors, "error"), false
	case r.Errors > 0:
		return counted(r.Errors, "error"), false
	case r.Requests == 0:
		return "Nothing was answered", false
	}
	if r.Service != nil {
		if runs := r.startedRuns(); runs.Failed+runs.Unfinished > 0 {
			return fmt.Sprintf("Every reply was as it must be; %s of %s did not complete", grouped(runs.Failed+runs.Unfinished), counted(runs.Started, "run")), false
		}
		return "Every reply was as it must be", true
	}
	if v := r.Verification; v != nil && v.Verified > 0 {
		return "Every record was acknowledged, and " + grouped(v.Verified) + " that were read back are there", true
	}
	return "Every record was acknowledged", true
}

// SortedKinds lists the kinds of errors, the most frequent first.
func (r *Result) SortedKinds() []string {
	var kinds []string
	for k := range r.ErrorsByKind {
		kinds = append(kinds, k)
	}
	sort.Slice(kinds, func(i, j int) bool {
		if a, b := r.ErrorsByKind[kinds[i]], r.ErrorsByKind[kinds[j]]; a != b {
			return a > b
		}
		return kinds[i] < kinds[j]
	})
	return kinds
}

// counted is a number with its thousands apart and its noun: "1 record", "12,000 records".
func counted(n int64, noun string) string { return grouped(n) + " " + plural.Noun(n, noun) }

func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// seconds1 writes seconds with one digit behind the point.
func seconds1(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) }

func rateText(v float64) string {
	if v >= 100 {
		return grouped(int64(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}

func msText(ms float64) string {
	switch {
	case ms >= 1000:
		return fmt.Sprintf("%.4g s", ms/1000)
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.3g ms", ms)
}
