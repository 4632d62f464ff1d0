package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	c "github.com/destkit/destkit/conformance"
)

// maxReport bounds a report that is read, in bytes.
const maxReport = 64 << 20

// Read reads a JSON report. It accepts exactly the schema_version that this
// program writes, ignores members that it does not know, and checks the words
// on which others decide (verdict, statuses, levels). An error says where the
// input is wrong.
func Read(r io.Reader) (*c.Report, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read report: %w", err)
	case len(b) > maxReport:
		return nil, fmt.Errorf("read report: it is larger than %d MiB", maxReport>>20)
	case len(bytes.TrimSpace(b)) == 0:
		return nil, errors.New("read report: it is empty")
	}
	// The version comes first: with another one no other member has a meaning.
	var head struct {
		Version *json.RawMessage `json:"schema_version"`
	}
	if err := decode(b, &head); err != nil {
		return nil, err
	}
	if head.Version == nil {
		return nil, errors.New("read report: there is no schema_version, this is not a JSON report of destkit conform")
	}
	if want := fmt.Sprintf("%q", c.SchemaVersion); string(*head.Version) != want {
		return nil, fmt.Errorf("read report: schema_version is %s, this program reads %s", *head.Version, want)
	}
	var out c.Report
	if err := decode(b, &out); err != nil {
		return nil, err
	}
	if err := checkWords(&out); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	return &out, nil
}

// decode decodes exactly one JSON value and names the place of an error.
func decode(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		row, col := position(b, syntax.Offset)
		return fmt.Errorf("read report: line %d, column %d: not JSON: %w", row, col, err)
	case errors.As(err, &kind):
		row, col := position(b, kind.Offset)
		return fmt.Errorf("read report: line %d, column %d: %q cannot be a JSON %s", row, col, kind.Field, kind.Value)
	}
	return fmt.Errorf("read report: %w", err)
}

// position turns an offset behind a byte into its line and column, from 1.
func position(b []byte, offset int64) (row, col int) {
	head := b[:max(0, min(int(offset)-1, len(b)))]
	return 1 + bytes.Count(head, []byte("\n")), len(head) - bytes.LastIndexByte(head, '\n')
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
