package liquid

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// liquidCase is one template with its output or error.
type liquidCase struct {
	Template string  `yaml:"template"`
	Want     *string `yaml:"want"`
	Error    *string `yaml:"error"`
}

const liquidCases = "testdata/cases"

func readLiquidCases(t testing.TB) map[string][]liquidCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(liquidCases, "*.yaml"))
	require.NoError(t, err)
	all := map[string][]liquidCase{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []liquidCase
		require.NoError(t, yaml.UnmarshalWithOptions(text, &cases, yaml.Strict()), file)
		for i, c := range cases {
			require.True(t, (c.Want == nil) != (c.Error == nil), "%s case %d: want or error", file, i)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = cases
	}
	return all
}

func readRecord(t testing.TB) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "record.json"))
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var record map[string]any
	require.NoError(t, d.Decode(&record))
	return record
}

// rendered is what a template prints, or its error.
func rendered(text string, record map[string]any) string {
	template, err := Parse(text)
	if err != nil {
		return "error: " + err.Error()
	}
	got, err := template.Render(record, Limits{})
	if err != nil {
		return "error: " + err.Error()
	}
	return got
}

// readDifferences returns our output where it differs from the published one.
func readDifferences(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "differences.yaml"))
	require.NoError(t, err)
	known := map[string]string{}
	require.NoError(t, yaml.Unmarshal(text, &known))
	return known
}

// TestLiquid: all cases print the published output, but for the known
// differences, which all are ones.
func TestLiquid(t *testing.T) {
	record, known, count := readRecord(t), readDifferences(t), 0
	for _, cases := range readLiquidCases(t) {
		for _, c := range cases {
			count++
			got, want := rendered(c.Template, record), ""
			if c.Want != nil {
				want = *c.Want
			} else {
				want = "error: " + *c.Error
			}
			if ours, differs := known[c.Template]; differs {
				require.NotEqual(t, want, ours, "%s: no difference any more", c.Template)
				want = ours
				delete(known, c.Template)
			}
			require.Equal(t, want, got, c.Template)
		}
	}
	require.Empty(t, known, "differences without a case")
	require.Greater(t, count, 500)
}

// Every tag and every filter occurs in a case.
func TestLiquidCasesAreComplete(t *testing.T) {
	var text strings.Builder
	for _, cases := range readLiquidCases(t) {
		for _, c := range cases {
			if c.Error == nil {
				text.WriteString(c.Template + "\n")
			}
		}
	}
	for name := range filters {
		require.Regexp(t, `\| *`+name+`\b`, text.String())
	}
}
