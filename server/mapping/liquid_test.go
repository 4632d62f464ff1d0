package mapping

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// liquidCase is one template with what it prints, or with its error.
type liquidCase struct {
	Template string  `yaml:"template"`
	Want     *string `yaml:"want"`
	Error    *string `yaml:"error"`
}

const liquidCases = "testdata/liquid"

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
	text, err := os.ReadFile(filepath.Join(liquidCases, "record.json"))
	require.NoError(t, err)
	record, err := decodeValue(text)
	require.NoError(t, err)
	return record.(map[string]any)
}

func TestLiquid(t *testing.T) {
	record := readRecord(t)
	count := 0
	for group, cases := range readLiquidCases(t) {
		t.Run(group, func(t *testing.T) {
			for _, c := range cases {
				count++
				template, err := ParseTemplate(c.Template)
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

// The same templates through Liquid itself, in one process. The cases of
// own.yaml are ours.
func TestLiquidOracle(t *testing.T) {
	const version = "5.4.0"
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	found, err := exec.CommandContext(ctx, "ruby", "-e", `require "liquid"; print Liquid::VERSION`).Output()
	if err != nil || string(found) != version {
		missing := "needs ruby with Liquid " + version + " (Debian: apt-get install ruby-liquid)"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	record := json.RawMessage(mustRead(t, filepath.Join(liquidCases, "record.json")))
	type question struct {
		Template string          `json:"template"`
		Record   json.RawMessage `json:"record"`
	}
	var questions []question
	var cases []liquidCase
	for group, list := range readLiquidCases(t) {
		if group == "own" {
			continue
		}
		for _, c := range list {
			questions, cases = append(questions, question{c.Template, record}), append(cases, c)
		}
	}
	input, err := json.Marshal(questions)
	require.NoError(t, err)
	ruby := exec.CommandContext(ctx, "ruby", filepath.Join(liquidCases, "oracle.rb"))
	ruby.Stdin, ruby.Env = bytes.NewReader(input), append(os.Environ(), "TZ=UTC")
	output, err := ruby.Output()
	require.NoError(t, err)
	var answers []struct{ Output, Error *string }
	require.NoError(t, json.Unmarshal(output, &answers))
	require.Len(t, answers, len(cases))
	for i, c := range cases {
		require.Equal(t, c.Want, answers[i].Output, c.Template)
		require.Equal(t, c.Error, answers[i].Error, c.Template)
	}
}

func mustRead(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}
