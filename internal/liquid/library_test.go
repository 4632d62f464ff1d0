package liquid

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	library "github.com/osteele/liquid"
	"github.com/osteele/liquid/render"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/unreached.txt")

// libraryValue is a value as the library knows it: Go's own numbers, and no
// kinds of ours.
func libraryValue(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		f, _ := v.Float64()
		return f
	case int64:
		return int(v)
	case decimal:
		f, _ := json.Number(v).Float64()
		return f
	case *big.Int:
		return v.String()
	case rawText:
		return string(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = libraryValue(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = libraryValue(item)
		}
		return out
	}
	return value
}

// engineValue is a value of the library as our filters know it.
func engineValue(value any) any {
	if list, ok := value.(interface{ AsArray() []any }); ok {
		value = list.AsArray()
	}
	if items, ok := value.([]any); ok {
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = engineValue(item)
		}
		return out
	}
	return liquidValue(value)
}

// withFilters has all filters of ours in the place of the library's.
func withFilters() *library.Engine {
	e := library.NewEngine()
	e.StrictVariables()
	for name, f := range filters {
		e.RegisterFilter(name, func(input any, args ...any) (any, error) {
			for i := range args {
				args[i] = engineValue(args[i])
			}
			if err := f.checkCount(len(args)); err != nil {
				return nil, err
			}
			value, err := f.apply(newRun(nil, Limits{}), engineValue(input), args)
			return libraryValue(value), err
		})
	}
	return e
}

// withTags also has every tag and block that can be added from outside: those of
// the library cannot be replaced where they are blocks, names of tags have
// letters, and a tag sees its arguments and its variables.
func withTags() *library.Engine {
	e := withFilters()
	count := func(by, shift int) library.Renderer {
		return func(c render.Context) (string, error) {
			name := strings.TrimSpace(c.TagArgs())
			now, _ := c.Get(" counter " + name).(int)
			c.Set(" counter "+name, now+by)
			if _, assigned := c.Get(name).(string); !assigned {
				c.Set(name, now+by)
			}
			return fmt.Sprint(now + shift), nil
		}
	}
	e.RegisterTag("increment", count(1, 0))
	e.RegisterTag("decrement", count(-1, -1))
	e.RegisterTag("echo", func(c render.Context) (string, error) {
		value, err := c.EvaluateString(c.TagArgs())
		return outputText(engineValue(value)), err
	})
	e.RegisterBlock("ifchanged", func(c render.Context) (string, error) {
		text, err := c.InnerString()
		if last, _ := c.Get(" changed").(*string); last != nil && *last == text {
			return "", err
		}
		c.Set(" changed", &text)
		return text, err
	})
	// Its lines are a template of their own; what they assign is carried over.
	e.RegisterTag("liquid", func(c render.Context) (string, error) {
		var source strings.Builder
		for line := range strings.Lines(c.TagArgs()) {
			if line = strings.TrimSpace(line); line != "" {
				source.WriteString("{% " + line + " %}")
			}
		}
		source.WriteString("{% carryover %}")
		bindings := maps.Clone(c.Bindings())
		bindings[" outer"] = c
		text, err := e.ParseAndRenderString(source.String(), bindings)
		if err != nil {
			return text, err
		}
		return text, nil
	})
	e.RegisterTag("carryover", func(c render.Context) (string, error) {
		outer, ok := c.Get(" outer").(render.Context)
		if !ok {
			return "", errors.New("carryover stands in a liquid tag only")
		}
		for name, value := range c.Bindings() {
			if name != " outer" {
				outer.Set(name, value)
			}
		}
		return "", nil
	})
	return e
}

// renderWith renders with an engine of the library, whose panics are failures.
func renderWith(e *library.Engine, text string, record map[string]any) (out string, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	out, failure := e.ParseAndRenderString(text, library.Bindings{recordName: record})
	if failure != nil {
		return "", failure
	}
	return out, nil
}

// reaches reports whether the library does what Ruby's Liquid does: the same
// output, every time, or any error where there is one. The words of errors are not
// compared.
func reaches(e *library.Engine, c liquidCase, record map[string]any) bool {
	// Go begins a walk over a map at a random one of eight slots: a map of two comes
	// in its order seven times of eight, and 400 times in a row never.
	tries := 25
	if strings.Contains(c.Template, "record.map") {
		tries = 400
	}
	for range tries {
		out, err := renderWith(e, c.Template, record)
		if (err != nil) != (c.Error != nil) || err == nil && out != *c.Want {
			return false
		}
	}
	return true
}

// TestLibraryReaches measures how many of the cases that Ruby's Liquid 5.4 answers
// (TestLiquidOracle compares them with it) the library reaches by its public
// extension points: filters, tags, blocks and strict variables. What it does not
// reach is why there is an engine of our own; testdata/unreached.txt lists it, and
// the test fails when that has become shorter, too.
func TestLibraryReaches(t *testing.T) {
	record := libraryValue(readRecord(t)).(map[string]any)
	plain, withFilters, withTags := library.NewEngine(), withFilters(), withTags()
	plain.StrictVariables()
	var unreached strings.Builder
	total, alone, filtered, all := 0, 0, 0, 0
	groups := readLiquidCases(t)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if group == "own" { // these are not Ruby's
			continue
		}
		for _, c := range groups[group] {
			total++
			if reaches(plain, c, record) {
				alone++
			}
			if reaches(withFilters, c, record) {
				filtered++
			}
			if reaches(withTags, c, record) {
				all++
				continue
			}
			want := "an error"
			if c.Want != nil {
				want = fmt.Sprintf("%q", *c.Want)
			}
			fmt.Fprintf(&unreached, "%s\t%q\t%s\n", group, c.Template, want)
		}
	}
	score := fmt.Sprintf("# Cases that github.com/osteele/liquid does not reach, of %d that Ruby's Liquid 5.4 answers:\n"+
		"# it reaches %d as it is with strict variables, %d with our filters too, %d with our tags and blocks as well.\n"+
		"# Below: group, template, what Liquid prints. Written by go test ./internal/liquid -run TestLibraryReaches -update\n",
		total, alone, filtered, all)
	t.Log("\n" + score)
	file := filepath.Join("testdata", "unreached.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(score+unreached.String()), 0o644))
	}
	golden, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(golden), score+unreached.String())
	require.Less(t, all, total, "the library reaches everything: the engine is not needed")
}
