package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/rawjson"
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
