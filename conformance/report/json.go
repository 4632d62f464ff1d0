package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"slices"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
)

//go:embed report.schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of the JSON report. Members
// may be added within one schema_version; readers ignore those they do not
// know.
func Schema() []byte { return slices.Clone(schema) }

// writeJSON writes the report as it is: this format is what the others, diff
// and replay are made from, and loses nothing.
func writeJSON(w io.Writer, r *c.Report) error {
	return encode(w, whole(*r))
}

// encode writes v as indented JSON in which every character prints: a JSON
// file that is shown on a terminal must not act on it.
func encode(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(foreign.JSON(b.Bytes()))
	return err
}

// whole returns a copy of r in which no list is null, so that readers in any
// language can loop without asking first.
func whole(r c.Report) c.Report {
	r.Failed = list(r.Failed)
	r.Undecided = list(r.Undecided)
	r.Problems = list(r.Problems)
	r.Notes = list(r.Notes)
	r.Settings.Objects = list(r.Settings.Objects)
	r.Settings.Hooks = list(r.Settings.Hooks)
	r.Residue.Refused = list(r.Residue.Refused)
	r.Residue.Unknown = list(r.Residue.Unknown)
	if r.Counts == nil {
		r.Counts = map[c.Status]int{}
	}
	r.Checks = wholeChecks(r.Checks)
	if len(r.Own) > 0 {
		r.Own = wholeChecks(r.Own)
	}
	return r
}

// wholeChecks copies as deep as a list may be null, and no deeper: the caller's
// report is never changed.
func wholeChecks(checks []c.CheckResult) []c.CheckResult {
	out := list(slices.Clone(checks))
	for i := range out {
		out[i].Authority = list(out[i].Authority)
		out[i].Sections = list(out[i].Sections)
		out[i].Findings = list(slices.Clone(out[i].Findings))
		for j := range out[i].Findings {
			f := &out[i].Findings[j]
			f.Exchanges = list(slices.Clone(f.Exchanges))
			for k := range f.Exchanges {
				x := &f.Exchanges[k]
				x.Request.Header = list(x.Request.Header)
				if x.Response != nil {
					response := *x.Response
					response.Header = list(response.Header)
					x.Response = &response
				}
			}
		}
	}
	return out
}

// list turns null into an empty list.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
