// Package liquid parses and renders the templates of mappings (spec 2.7): Liquid
// 5.4 without include and render, strictly, with the service's own filters. Parse
// reads a template, Render prints it for one record, and errors know
// their line.
//
// It has an engine of its own, since github.com/osteele/liquid prints something
// else than the published language in many cases that its extension points do
// not reach. Where the library surely prints the same, templates are rendered with
// it (see agreement.go). The engine is tested against Ruby's Liquid. What a
// template's output becomes as a value is left to the callers.
package liquid

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Template is a template that was parsed. It is safe for use by many goroutines.
//
// It prints what Liquid 5.4 prints, byte for byte, with these exceptions: maps
// are gone through and printed in the order of their keys, since a record has no
// other; numbers with a fraction that came as text keep their digits (2.50 stays
// 2.50); equal items keep their order when they are sorted; blank is also nil,
// false and white space, as in the service; times without a zone are in UTC.
type Template struct {
	document *body
	reads    *reads
	shared   *shared // nil: only the engine renders it
}

// Longest is the length of the longest template in bytes. No person writes one
// as long.
const Longest = 128 << 10

// Parse reads a template strictly. Errors are of type *Error and have the
// published texts, such as `Liquid syntax error: Expected close_square but found
// end_of_string in "{{ record['ID' }}"`. Unknown filters and variables that
// nothing defines are found here already, not only when a record comes by.
func Parse(text string) (*Template, error) {
	if len(text) > Longest {
		return nil, fmt.Errorf("the template has more than %d bytes", Longest)
	}
	p := &sourceParser{reads: newReads()}
	document := newBody()
	tag, _, err := p.parseBody(cutSource(text), document)
	if err == nil && tag != "" {
		err = outerTag(tag)
	}
	if err != nil {
		return nil, &Error{Line: p.line, prefix: "Liquid syntax error: ", err: err}
	}
	if err := p.reads.check(); err != nil {
		return nil, err
	}
	t := &Template{document: document, reads: p.reads}
	if !p.differs {
		t.shared = share(text, t)
	}
	return t, nil
}

// outerTag is the error of a tag that stands in no block.
func outerTag(tag string) error {
	if tag == "else" || tag == "end" {
		return publishedf("Unexpected outer '%s' tag", tag)
	}
	return publishedf("Unknown tag '%s'", tag)
}

// Columns are the columns that the template names, sorted. Only these need be
// read, unless ReadsAll.
func (t *Template) Columns() []string { return slices.Sorted(maps.Keys(t.reads.columns)) }

// ReadsAll reports whether the template uses the record as a whole, or a column
// whose name it computes.
func (t *Template) ReadsAll() bool { return t.reads.all }

// Uses reports whether the template has a filter of this name.
func (t *Template) Uses(filter string) bool {
	return slices.ContainsFunc(t.reads.filters, func(m mention) bool { return m.name == filter })
}

// Render prints the template for one record, a map of column names to values:
// nil, bool, integers, floats, *big.Int, json.Number, string, []byte,
// time.Time, []any and map[string]any. Columns that the record does not have
// are an error of type *Error, as are all mistakes of values; Limits bound the
// work.
func (t *Template) Render(record map[string]any, limits Limits) (string, error) {
	if text, ok := t.shared.render(record, limits); ok {
		return text, nil
	}
	return t.render(newRun(record, limits))
}

// RenderEscaped prints for JSON mode: outputs are escaped for the
// inside of a JSON string, unless they pass raw or json.
func (t *Template) RenderEscaped(record map[string]any, limits Limits) (string, error) {
	r := newRun(record, limits)
	r.escape = true
	return t.render(r)
}

// render prints with the engine.
func (t *Template) render(r *run) (string, error) {
	defer r.close()
	err := t.document.render(r)
	var ours *Error
	switch {
	case err == nil:
	case errors.As(err, &ours):
		return "", ours
	case r.interrupt != nil: // break and continue outside a loop end the template
	default:
		return "", err
	}
	return r.out.String(), nil
}
