// Package liquid parses and renders the templates of mappings (spec 2.7) with
// github.com/osteele/liquid: it registers tags and filters, gives variables the
// published meaning, and bounds size, iterations, memory and time. docs/liquid.md
// lists the differences from the published language. Callers turn a template's
// output into a value.
package liquid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/parser"
	"github.com/osteele/liquid/render"
)

// Template is a template that was parsed. It is safe for use by many goroutines.
type Template struct {
	root   render.Node
	scope  map[string]any // constants, and variables that are not set yet
	reads  *reads
	length int
}

// Longest is the length of the longest template in bytes. No person writes one as
// long.
const Longest = 128 << 10

// Error is a mistake of a template, found when it is parsed or rendered. Its text
// names no line.
type Error struct {
	Line int // of the template, from 1; 0 for a mistake of values
	error
}

// Unwrap gives the error behind it.
func (e *Error) Unwrap() error { return e.error }

// syntaxError is a mistake of the text, in the published form.
func syntaxError(line int, err error) *Error {
	return &Error{line, fmt.Errorf("Liquid syntax error: %w", err)} //nolint:staticcheck // published
}

// valueError is any other mistake, in the published form.
func valueError(line int, err error) *Error {
	return &Error{line, fmt.Errorf("Liquid error: %w", err)} //nolint:staticcheck // published
}

// Parse reads a template. Errors are of type *Error; unknown filters and variables
// that nothing defines are found here already, not only when a record comes by.
func Parse(text string) (t *Template, err error) {
	if len(text) > Longest {
		return nil, fmt.Errorf("the template has more than %d bytes", Longest)
	}
	// Numbers that are too long for the library.
	defer func() {
		if cause := recover(); cause != nil {
			err = syntaxError(1, fmt.Errorf("%v", cause))
		}
	}()
	r := &reads{columns: map[string]bool{}, defined: map[string]bool{}, scope: map[string]any{
		"null": boxed{}, "empty": boxed{v: emptiness{}}, "blank": boxed{v: emptiness{blank: true}}, "continue": boxed{v: goOn{}},
	}}
	text = spread(text)
	// The library takes all that follows for the inside.
	outside := verbatim.ReplaceAllStringFunc(text, func(inside string) string { return strings.Repeat("\n", strings.Count(inside, "\n")) })
	if m := openVerbatim.FindStringSubmatchIndex(outside); m != nil {
		return nil, syntaxError(1+strings.Count(outside[:m[0]], "\n"), fmt.Errorf("'%s' tag was never closed", outside[m[2]:m[3]]))
	}
	config := newConfig(&run{}, r)
	root, failed := config.Compile(text, parser.SourceLoc{LineNo: 1})
	if failed != nil {
		return nil, syntaxError(failed.LineNumber(), syntaxText(failed))
	}
	r.walk([]render.Node{root}, 0)
	if r.failed != nil {
		return nil, r.failed
	}
	for _, used := range r.used {
		if !r.defined[used.name] {
			return nil, valueError(used.line, unknownVariable(used.name))
		}
		r.scope[used.name] = boxed{v: unknown(used.name)}
	}
	return &Template{root: root, scope: r.scope, reads: r, length: len(text)}, nil
}

// Forms that the library's tokens do not support: several tags in one, comments in one tag,
// outputs of several lines or in the form of a tag, and texts without escapes.
var (
	liquidTag     = regexp.MustCompile(`(?s)(\{%-?)\s*liquid\b(.*?)(-?%\})`)
	inlineComment = regexp.MustCompile(`(?s)(\{%-?)\s*#(.*?)(-?%\})`)
	echoTag       = regexp.MustCompile(`(?s)\{%(-?)\s*echo\b(.*?)(-?)%\}`)
	verbatim      = regexp.MustCompile(`(?s)\{%-?\s*raw\s*-?%\}.*?\{%-?\s*endraw\s*-?%\}|\{%-?\s*comment\b.*?\{%-?\s*endcomment\s*-?%\}`)
	tokens        = regexp.MustCompile(`(?s)\{\{.*?\}\}|\{%.*?%\}`)
	quoted        = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	emptyOutput   = regexp.MustCompile(`\{\{-?\s*-?\}\}`)
	openVerbatim  = regexp.MustCompile(`\{%-?\s*(raw|comment)\b`)
)

// spread brings such tokens into the library's form, but for those that are text.
// Tags keep their lines.
func spread(text string) string {
	if at := verbatim.FindStringIndex(text); at != nil {
		return spread(text[:at[0]]) + text[at[0]:at[1]] + spread(text[at[1]:])
	}
	text = liquidTag.ReplaceAllStringFunc(text, func(token string) string {
		m := liquidTag.FindStringSubmatch(token)
		lines := strings.Split(m[2], "\n")
		for i, line := range lines {
			if strings.TrimSpace(line) == "" {
				lines[i] = "#"
			}
		}
		return m[1] + " " + strings.Join(lines, "\n%}{% ") + " " + m[3]
	})
	text = inlineComment.ReplaceAllString(emptyOutput.ReplaceAllString(text, ""), "$1 comment %}$2{% endcomment $3")
	return tokens.ReplaceAllStringFunc(echoTag.ReplaceAllString(text, "{{$1 $2 $3}}"), func(token string) string {
		if token[1] == '{' {
			token = strings.ReplaceAll(token, "\n", " ")
		}
		return quoted.ReplaceAllStringFunc(token, func(text string) string {
			if text[0] == '"' {
				text = strings.ReplaceAll(text, `\`, `\\`)
			}
			return text
		})
	})
}

// syntaxText is what the library found wrong, with the tag as written in the
// template. That a bracket is open has a published text.
func syntaxText(failed parser.Error) error {
	_, text, _ := strings.Cut(failed.Error(), "): ")
	message, markup, found := strings.Cut(text, " in {")
	switch isSyntax := found && strings.HasPrefix(message, "syntax error"); {
	case isSyntax && strings.Count(markup, "[") > strings.Count(markup, "]"):
		return fmt.Errorf(`Expected close_square but found end_of_string in "{%.300s"`, markup) //nolint:staticcheck // published
	case isSyntax:
		return fmt.Errorf("cannot read {%.300s", markup)
	}
	return fmt.Errorf("%.300s", text)
}

// Columns are the columns that the template names, sorted. Only these need be
// read, unless ReadsAll.
func (t *Template) Columns() []string { return slices.Sorted(maps.Keys(t.reads.columns)) }

// ReadsAll reports whether the template uses the record as a whole, or a column
// whose name it computes.
func (t *Template) ReadsAll() bool { return t.reads.all }

// Render prints the template for one record, a map of column names to the values
// of JSON, with numbers as json.Number. Columns that the record does not have are
// an error of type *Error, as are all mistakes of values; Limits bound the work.
func (t *Template) Render(record map[string]any, limits Limits) (string, error) {
	return t.render(record, limits, false)
}

// RenderEscaped prints for JSON mode: outputs are escaped for the
// inside of a JSON string, unless they pass raw or json.
func (t *Template) RenderEscaped(record map[string]any, limits Limits) (string, error) {
	return t.render(record, limits, true)
}

// machine is a configuration of the library whose filters know the rendering.
type machine struct {
	config render.Config
	run    *run
	scope  map[string]any
}

// machines are those of JSON mode and the others.
var machines = map[bool]*sync.Pool{false: newMachines(false), true: newMachines(true)}

func newMachines(escape bool) *sync.Pool {
	return &sync.Pool{New: func() any {
		m := &machine{run: &run{}, scope: map[string]any{}}
		if m.config = newConfig(m.run, nil); escape {
			m.config.SetAutoEscapeReplacer(jsonText{})
		}
		return m
	}}
}

func (t *Template) render(columns map[string]any, limits Limits, escape bool) (text string, err error) {
	m := machines[escape].Get().(*machine)
	defer machines[escape].Put(m)
	*m.run = run{limits: limits.withDefaults(), length: t.length}
	maps.Copy(m.scope, t.scope)
	m.scope[recordName], m.scope[runName] = boxed{record(columns), m.run}, m.run
	defer func() {
		m.run.close()
		clear(m.scope)
		if cause := recover(); cause != nil { // a filter of the library
			err = valueError(0, fmt.Errorf("a filter cannot take its input: %.100v", cause))
		}
		if err != nil && m.run.limits.Context.Err() != nil {
			err = fmt.Errorf("render template: %w", context.Cause(m.run.limits.Context))
		}
	}()
	out := &output{run: m.run}
	failed := render.Render(t.root, out, m.scope, m.config)
	if failed == nil {
		return out.text.String(), nil
	}
	var cause error = failed
	for placed := parser.Error(nil); errors.As(cause, &placed) && placed.Cause() != nil; {
		cause = placed.Cause()
	}
	if filter, ok := errors.AsType[expressions.FilterError](cause); ok {
		cause = filter.Err
	}
	return "", valueError(0, cause)
}
