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

// liquidCase is one template with what it prints, or with its error.
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

func TestLiquid(t *testing.T) {
	record := readRecord(t)
	count := 0
	for group, cases := range readLiquidCases(t) {
		t.Run(group, func(t *testing.T) {
			for _, c := range cases {
				count++
				template, err := Parse(c.Template)
				got := ""
				if err == nil {
					got, err = template.Render(record, Limits{})
				}
				if c.Error != nil {
					require.EqualError(t, err, *c.Error, c.Template)
					continue
				}
				require.NoError(t, err, c.Template)
				require.Equal(t, *c.Want, got, c.Template)
			}
		})
	}
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
	for name := range tags {
		require.Regexp(t, `(\{%-?|\n) *`+name, text.String())
	}
}
