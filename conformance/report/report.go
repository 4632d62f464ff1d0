// Package report writes the outcome of a run in the formats that people and
// machines read, reads the JSON report back and compares two of them.
//
// It owns the shape of each format and the escaping that keeps text of an
// endpoint inside its place. It refuses to judge: statuses, verdict, summary
// and exit status stand in the [conformance.Report] and are never recomputed,
// and nothing is redacted here, since the recorder has already done so. It
// never prints, reads the environment or looks at a terminal.
package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/wholefile"
)

// The names of the formats, as they stand in --report FORMAT=FILE.
const (
	Text     = "text"     // for a terminal
	JSON     = "json"     // the report itself, see [Schema]
	JUnit    = "junit"    // for test panels of CI services
	HTML     = "html"     // one file, to show to others
	Markdown = "markdown" // for the step summary of a CI service
	GitHub   = "github"   // annotations on standard output of a workflow
	SARIF    = "sarif"    // 2.1.0, for code scanning
	HAR      = "har"      // 1.2, the exchanges of all findings
	Badge    = "badge"    // JSON of a shields endpoint
)

// writer is one format with the function that writes it.
type writer struct {
	name  string
	write func(io.Writer, *c.Report, Options) error
}

// writers in the order in which help texts list them.
func writers() []writer {
	alike := func(write func(io.Writer, *c.Report) error) func(io.Writer, *c.Report, Options) error {
		return func(w io.Writer, r *c.Report, _ Options) error { return write(w, r) }
	}
	return []writer{
		{Text, WriteText},
		{JSON, alike(writeJSON)},
		{JUnit, alike(writeJUnit)},
		{HTML, writeHTML},
		{Markdown, writeMarkdown},
		{GitHub, alike(writeGitHub)},
		{SARIF, writeSARIF},
		{HAR, alike(writeHAR)},
		{Badge, alike(writeBadge)},
	}
}

// Formats returns the names that [Write] knows.
func Formats() []string {
	return lists.Of(writers(), func(f writer) string { return f.name })
}

// Write writes r in the named format. Text is written plain, 80 columns wide;
// [Options.Write] has choices. It returns an error for an unknown format, and the
// first error of w.
func Write(format string, w io.Writer, r *c.Report) error {
	return Options{}.Write(format, w, r)
}

// Write is the function [Write] with choices. Other formats than text take from them
// the commands that send a finding again.
func (o Options) Write(format string, w io.Writer, r *c.Report) error {
	if r == nil {
		return errors.New("write report: there is no report")
	}
	for _, f := range writers() {
		if f.name != format {
			continue
		}
		if err := f.write(w, r, o); err != nil {
			return fmt.Errorf("write %s report: %w", format, err)
		}
		return nil
	}
	return fmt.Errorf("write report: unknown format %q, known are %s", format, strings.Join(Formats(), ", "))
}

// WriteFile writes r in the named format to a file. The file appears whole or
// not at all: the bytes go to a file beside it that is renamed at the end, so
// that an error leaves what stood there before. A device or a pipe, which
// cannot be renamed onto, is written directly.
func WriteFile(format, path string, r *c.Report) error {
	return Options{}.WriteFile(format, path, r)
}

// WriteFile is the function [WriteFile] with choices.
func (o Options) WriteFile(format, path string, r *c.Report) error {
	if !slices.Contains(Formats(), format) {
		return fmt.Errorf("write report: unknown format %q, known are %s", format, strings.Join(Formats(), ", "))
	}
	// Rendering first keeps a fault of the writer apart from one of the disk.
	var b bytes.Buffer
	if err := o.Write(format, &b, r); err != nil {
		return err
	}
	err := wholefile.Write(path, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s report to %s: %w", format, path, err)
}

// Text of an endpoint stands in messages, names and bodies. On its way into a
// report it must not be able to move a cursor, hide what follows, reverse the
// reading direction or start a line that a CI service takes for a command.

// line returns s as one line: every control, direction and line character
// becomes a space or a visible escape like \x1b.
func line(s string) string { return strings.Join(strings.Fields(foreign.Line(s)), " ") }

// block returns s as lines without control characters.
func block(s string) []string { return foreign.Block(s) }

// text is block in one string.
func text(s string) string { return strings.Join(block(s), "\n") }

// limit cuts s to about n bytes at a rune and says what is missing.
func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s … (%s in the JSON report)", s[:n], quantity.Count(len(s)-n, "more byte"))
}

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
