// Package report writes the outcome of a run in the formats that people and machines read, reads
// the JSON report back and compares two of them.
//
// It owns the shape of each format and the escaping that keeps text of an endpoint inside its
// place. It does not judge: statuses, verdict, summary and exit status come from the
// [conformance.Report] and are never recomputed, and nothing is redacted here, since the recorder
// has already done so. It never prints, reads the environment or looks at a terminal.
package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/wholefile"
)

// The names of the formats, as in --report FORMAT=FILE.
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
var writers = []writer{
	{Text, WriteText}, {JSON, writeJSON}, {JUnit, writeJUnit}, {HTML, writeHTML}, {Markdown, writeMarkdown},
	{GitHub, writeGitHub}, {SARIF, writeSARIF}, {HAR, writeHAR}, {Badge, writeBadge},
}

// Formats returns the names that [Options.Write] knows.
func Formats() []string { return lists.Of(writers, func(f writer) string { return f.name }) }

// Write writes r in the named format; others than text use only the options of commands that send a finding again.
func (o Options) Write(format string, w io.Writer, r *c.Report) error {
	if r == nil {
		return errors.New("write report: there is no report")
	}
	i := slices.IndexFunc(writers, func(f writer) bool { return f.name == format })
	if i < 0 {
		return fmt.Errorf("write report: unknown format %q, known are %s", format, strings.Join(Formats(), ", "))
	}
	if err := writers[i].write(w, r, o); err != nil {
		return fmt.Errorf("write %s report: %w", format, err)
	}
	return nil
}

// WriteFile writes r in the named format to a file, which appears whole or not at all: an error
// leaves the previous file. A device or a pipe is written directly.
func (o Options) WriteFile(format, path string, r *c.Report) error {
	// Rendering first keeps a fault of the writer apart from one of the disk.
	var b bytes.Buffer
	if err := o.Write(format, &b, r); err != nil {
		return err
	}
	place := wholefile.Write
	if o.Private {
		place = wholefile.WritePrivate
	}
	err := place(path, func(w io.Writer) error {
		_, err := b.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s report to %s: %w", format, path, err)
	}
	return nil
}

// Text of an endpoint must not move a cursor, hide or reverse what follows, or start a command of a CI service.

// line returns s as one line: control, direction and line characters become spaces or escapes like \x1b.
func line(s string) string { return strings.Join(strings.Fields(foreign.Line(s)), " ") }

// text returns s without control characters, with its lines.
func text(s string) string { return strings.Join(foreign.Block(s), "\n") }

// limit cuts s to about n bytes at a rune and notes how much is missing.
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

// Schema returns the JSON Schema (draft 2020-12) of the JSON report. Members may be added
// within one schema_version; readers ignore those they do not know.
func Schema() []byte { return slices.Clone(schema) }

// writeJSON loses nothing: diff and replay start from this format.
func writeJSON(w io.Writer, r *c.Report, _ Options) error { return encode(w, whole(*r)) }

// encode writes v as indented JSON in which every character prints, and none acts on a terminal.
func encode(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(foreign.JSON(b), '\n'))
	return err
}

// jsonObject has its members in this order. One whose name ends in ",omitempty" is left out where it is empty.
type jsonObject []jsonMember

type jsonMember struct {
	name  string
	value any
}

// MarshalJSON encodes the members that are not left out.
func (o jsonObject) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for _, m := range o {
		name, optional := strings.CutSuffix(m.name, ",omitempty")
		if v := reflect.ValueOf(m.value); optional && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, name), ':')
		marshal := func() ([]byte, error) { return json.Marshal(m.value) }
		if inner, is := m.value.(jsonObject); is {
			marshal = inner.MarshalJSON // package json would read again what this wrote
		}
		value, err := marshal()
		if err != nil {
			return nil, err
		}
		out = append(out, value...)
	}
	return append(out, '}'), nil
}

// whole returns a copy of r in which no list is null, so that readers in any language can loop.
func whole(r c.Report) c.Report {
	fill(reflect.ValueOf(&r).Elem())
	return r
}

// fill makes null lists and maps empty, unless they are left out. It copies what it changes.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for field, member := range v.Fields() {
			tag := field.Tag.Get("json")
			if field.IsExported() && tag != "-" && (!strings.HasSuffix(tag, ",omitempty") || !member.IsZero()) {
				fill(member)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			v.Set(copied)
			fill(copied.Elem())
		}
	case reflect.Slice:
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(copied, v)
		v.Set(copied)
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}

// list turns null into an empty list.
func list[T any](s []T) []T { return append([]T{}, s...) }

// maxReport bounds a report that is read, in bytes.
const maxReport = 64 << 20

// Read reads a JSON report of exactly the schema_version that this program writes. It ignores
// unknown members and checks verdict, statuses and levels; an error names where the input is wrong.
func Read(r io.Reader) (*c.Report, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read report: %w", err)
	case len(b) > maxReport:
		return nil, fmt.Errorf("read report: it is larger than %d MiB", maxReport>>20)
	}
	reads, _ := strconv.Atoi(c.SchemaVersion)
	file := rawjson.File{Expected: "the JSON report of destkit conform", Version: reads}
	var head struct {
		Version *json.RawMessage `json:"schema_version"`
	}
	if err := file.Decode(b, &head); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if head.Version == nil {
		return nil, errors.New("read report: there is no schema_version, this is not a JSON report of destkit conform")
	}
	if want := fmt.Sprintf("%q", c.SchemaVersion); string(*head.Version) != want {
		return nil, fmt.Errorf("read report: schema_version is %s, this program reads %s", *head.Version, want)
	}
	var out c.Report
	if err := file.Decode(b, &out); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if err := checkWords(&out); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	return &out, nil
}

// checkWords refuses words that nothing in this package would show rightly.
func checkWords(r *c.Report) error {
	if !slices.Contains([]c.Verdict{c.Conformant, c.ConformantInPart, c.NonConformant, c.Unknown}, r.Verdict) {
		return fmt.Errorf("unknown verdict %q", r.Verdict)
	}
	seen := map[string]bool{}
	for i, check := range r.Checks {
		switch {
		case check.ID == "":
			return fmt.Errorf("checks[%d] has no id", i)
		case seen[check.ID]:
			return fmt.Errorf("check %s stands there twice", check.ID)
		}
		seen[check.ID] = true
	}
	for _, check := range slices.Concat(r.Checks, r.Own) {
		if !slices.Contains(statusOrder, check.Status) {
			return fmt.Errorf("check %s has the unknown status %q", check.ID, check.Status)
		}
		if !slices.Contains([]c.Level{c.Must, c.Should, c.Info}, check.Level) {
			return fmt.Errorf("check %s has the unknown level %q", check.ID, check.Level)
		}
	}
	return nil
}
