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
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/destkit/destkit/conformance"
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
	write func(io.Writer, *conformance.Report, Options) error
}

// writers in the order in which help texts list them.
func writers() []writer {
	alike := func(write func(io.Writer, *conformance.Report) error) func(io.Writer, *conformance.Report, Options) error {
		return func(w io.Writer, r *conformance.Report, _ Options) error { return write(w, r) }
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
	var names []string
	for _, f := range writers() {
		names = append(names, f.name)
	}
	return names
}

// Write writes r in the named format. Text is written plain, 80 columns wide;
// [Options.Write] has choices. It returns an error for an unknown format, and the
// first error of w.
func Write(format string, w io.Writer, r *conformance.Report) error {
	return Options{}.Write(format, w, r)
}

// Write is the function [Write] with choices. Other formats than text take from them
// the commands that send a finding again.
func (o Options) Write(format string, w io.Writer, r *conformance.Report) error {
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
