package demo

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/quantity"
)

//go:embed html/demo.gohtml
var pageText string

var pageTemplate = template.Must(template.New("demo").Funcs(template.FuncMap{
	"grouped": quantity.Grouped, "figure": quantity.Rate, "short": quantity.Milliseconds, "tone": toneOf, "summary": summaryOf,
	"policy": func() string { return page.Policy },
	"look":   func() template.CSS { return template.CSS(page.Style) }, // ours, and constant
}).Parse(pageText))

// toneOf is the colour of a judgement, as its own page has it.
func toneOf(r *conformance.Report) string {
	switch r.Verdict {
	case conformance.Conformant:
		return "good"
	case conformance.ConformantInPart:
		return "part"
	case conformance.NonConformant:
		return "bad"
	}
	return "open"
}

// summaryOf is the summary behind the verdict.
func summaryOf(r *conformance.Report) template.HTML {
	return page.Sentence(foreign.Line(strings.TrimPrefix(r.Summary, string(r.Verdict)+": ")))
}

// writePage writes the one page with everything: runs, audit, judgements.
func (d *Demo) writePage(file string) error {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, map[string]any{
		"Rows": quantity.Grouped(d.rows), "Runs": d.runs, "Audit": d.audit, "Judgements": d.judgements, "Problems": d.problems,
		"Load": d.load, "LoadPage": loadReport,
	})
	if err != nil {
		return exit.Untested(fmt.Errorf("write %s: %w", reportFile, err))
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return exit.Untested(fmt.Errorf("write %s: %w", reportFile, err))
	}
	return nil
}
