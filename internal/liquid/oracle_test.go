package liquid

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/stretchr/testify/require"
)

// answer is what Liquid itself made of a template; neither for an error that is
// none of Liquid.
type answer struct{ Output, Error *string }

// askOracle renders templates with Liquid itself, all in one process. It skips
// the test where that is not installed.
func askOracle(t *testing.T, templates []string) []answer {
	t.Helper()
	const version = "5.4.0"
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	found, err := exec.CommandContext(ctx, "ruby", "-e", `require "liquid"; print Liquid::VERSION`).Output()
	if err != nil || string(found) != version {
		matrixtest.Missing(t, "ruby", "needs ruby with Liquid %s (Debian: apt-get install ruby ruby-liquid)", version)
	}
	record, err := os.ReadFile(filepath.Join("testdata", "record.json"))
	require.NoError(t, err)
	question, err := json.Marshal(map[string]any{"record": json.RawMessage(record), "templates": templates})
	require.NoError(t, err)
	ruby := exec.CommandContext(ctx, "ruby", filepath.Join("testdata", "oracle.rb"))
	ruby.Stdin, ruby.Env = bytes.NewReader(question), append(os.Environ(), "TZ=UTC")
	output, err := ruby.Output()
	require.NoError(t, err)
	var answers []answer
	require.NoError(t, json.Unmarshal(output, &answers))
	require.Len(t, answers, len(templates))
	return answers
}

// The expected outputs of the cases are those of Liquid itself. The cases of
// own.yaml are ours.
func TestLiquidOracle(t *testing.T) {
	var templates []string
	var cases []liquidCase
	for group, list := range readLiquidCases(t) {
		if group == "own" {
			continue
		}
		for _, c := range list {
			templates, cases = append(templates, c.Template), append(cases, c)
		}
	}
	for i, answer := range askOracle(t, templates) {
		require.Equal(t, cases[i].Want, answer.Output, cases[i].Template)
		require.Equal(t, cases[i].Error, answer.Error, cases[i].Template)
	}
}

// Inputs and arguments of every kind, for every filter and every comparison.
// Floats as places in arrays and ranges as properties are left out: their
// results are an accident of the language that Liquid is written in.
var (
	matrixInputs = []string{
		"nil", "true", "0", "-7", "2.5", "-2.55", "100.0", "''", "'a,b;c'", "' 42x '", "record.html", "record.s", "record.arr",
		"record.nums", "record.nested", "record.objs", "record.map", "record.emptyarr", "(1..3)", "record.date", "record.i",
	}
	matrixArguments = []string{"", ": 0", ": 1", ": -1", ": nil", ": 'a'", ": ','", ": '2'", ": 1, 2", ": 'n', 'x'", ": 'v'", ": record.nums", ": record.map"}
	notInOracle     = []string{"json", "except", "only", "keys", "sha256", "base64", "raw", "squish", "find", "find_index", "has", "reject", "h"}
	unstable        = []string{"sort_natural", "sort"} // equal items come in any order there
)

func matrixTemplates() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		if slices.Contains(notInOracle, name) {
			continue
		}
		for _, input := range matrixInputs {
			for _, args := range matrixArguments {
				tooMany := filters[name].most == 0 && args != "" && args != ": 1"
				if tooMany || slices.Contains(unstable, name) && args != "" {
					continue
				}
				out = append(out, fmt.Sprintf("{%% assign x = %s | %s%s %%}{{ x }}|{{ x | size }}", input, name, args))
			}
		}
	}
	for _, left := range append(slices.Clone(matrixInputs), "empty") {
		for _, right := range append(slices.Clone(matrixInputs), "empty") {
			for _, op := range []string{"==", "!=", "<", ">", "<=", ">=", "contains"} {
				out = append(out, fmt.Sprintf("{%% if %s %s %s %%}T{%% else %%}F{%% endif %%}", left, op, right))
			}
		}
	}
	for _, input := range matrixInputs {
		for _, attributes := range []string{"", "limit: 1", "offset: 1", "reversed", "limit: -1", "offset: -1", "limit: 0 offset: 1"} {
			out = append(out, fmt.Sprintf("{%% for i in %s %s %%}[{{ i }}]{%% else %%}none{%% endfor %%}", input, attributes))
		}
		out = append(out, fmt.Sprintf("{%% tablerow i in %s cols: 2 %%}{{ i }}{%% endtablerow %%}", input))
		for _, step := range []string{".size", ".first", ".last", "[0]", "[-1]", ".a", "['b']"} {
			out = append(out, fmt.Sprintf("{%% assign v = %s %%}{{ v%s }}", input, step))
		}
	}
	return out
}

// scrub writes a question mark for every byte that is no UTF-8.
func scrub(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == utf8.RuneError {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// matrixDifferences are the differences of docs/liquid.md in the matrix:
// parts of a template and of its published output.
var matrixDifferences = [][2]string{
	{``, `=>|\[`}, // arrays and maps inside texts,
	{`record\.\w+ \| (base64|escape|url_encode)`, ``}, // encoded
	{`\(1\.\.3\)`, ``}, // ranges that are printed or compared
	{`compact: |map: |where: |uniq: |sort: `, ``}, // properties of values without any
	{`truncate: |truncatewords: `, ``},            // nil, and white space at the end
	{`<=|>=`, `F`},                                // values without an order
	{`divided_by`, `Infinity|NaN`},
	{`times`, `-0\.0`},
	{`base64_(url_safe_)?decode`, ``}, // values other than texts
	{`record.map %\}\{\{ v.last`, ``},
}

func TestLiquidOracleMatrix(t *testing.T) {
	matrixtest.Long(t)
	templates := matrixTemplates()
	require.Greater(t, len(templates), 8000)
	answers := askOracle(t, templates)
	record, same, met := readRecord(t), 0, map[int]int{}
next:
	for i, text := range templates {
		got := rendered(text, record)
		switch answer := answers[i]; {
		case answer.Output == nil && answer.Error == nil:
			continue
		case answer.Error != nil && strings.HasPrefix(got, "error: "), answer.Output != nil && *answer.Output == scrub(got):
			same++
			continue
		default:
			published := "error: " + text
			if answer.Output != nil {
				published = *answer.Output
			}
			for n, known := range matrixDifferences {
				if regexp.MustCompile(known[0]).MatchString(text) && regexp.MustCompile(known[1]).MatchString(published) {
					met[n]++
					continue next
				}
			}
			t.Errorf("%s\nprints %q\nnot %q", text, got, published)
		}
	}
	t.Logf("%d agree, differences met: %v", same, met)
	require.Len(t, met, len(matrixDifferences))
	require.Greater(t, same, 11_000)
}
