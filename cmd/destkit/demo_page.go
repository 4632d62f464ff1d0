package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
)

//go:embed html/demo.gohtml
var demoPageText string

var demoPage = template.Must(template.New("demo").Funcs(template.FuncMap{"grouped": grouped, "figure": figure, "short": short}).Parse(demoPageText))

// writePage writes the one page with everything: runs, audit, judgements.
func (d *demo) writePage(file string) error {
	var page bytes.Buffer
	err := demoPage.Execute(&page, map[string]any{
		"Rows": grouped(d.rows), "Runs": d.runs, "Audit": d.audit, "Judgements": d.judgements, "Problems": d.problems,
		"Load": d.load, "LoadPage": demoLoadReport,
	})
	if err != nil {
		return untested(fmt.Errorf("write %s: %w", demoReport, err))
	}
	if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
		return untested(fmt.Errorf("write %s: %w", demoReport, err))
	}
	return nil
}
