package mapping

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"
)

// Template is a Liquid template of a mapping (spec 2.7): Liquid 5.4 without
// include and render, parsed and rendered strictly, with the service's own
// filters (facts C). It is parsed once and safe for use by many goroutines.
//
// It prints what Liquid 5.4 prints, byte for byte, with these exceptions: maps
// are gone through and printed in the order of their keys, since a record has no
// other; numbers with a fraction that came as text keep their digits (2.50 stays
// 2.50); equal items keep their order when they are sorted; blank is also nil,
// false and white space, as in the service; times without a zone are in UTC.
type Template struct {
	compiled *compiled
	reads    *reads
}

// In bytes; no person writes one as long.
const longestTemplate = 1 << 20

// ParseTemplate reads a template strictly. Errors have the published texts,
// such as `Liquid syntax error: Expected close_square but found end_of_string
// in "{{ record['ID' }}"`. Unknown filters and variables that nothing defines
// are found here already, not only when a record comes by.
func ParseTemplate(text string) (*Template, error) {
	if len(text) > longestTemplate {
		return nil, fmt.Errorf("the template has more than %d bytes", longestTemplate)
	}
	p := &sourceParser{reads: newReads()}
	document := newBody()
	source := cutSource(text)
	tag, _, err := p.parseBody(source, document)
	if err == nil && tag != "" {
		err = outerTag(tag)
	}
	if err != nil {
		return nil, publishedf("Liquid syntax error: %w", err)
	}
	if err := p.reads.check(); err != nil {
		return nil, err
	}
	compiled, err := compile(document)
	if err != nil {
		return nil, err
	}
	return &Template{compiled, p.reads}, nil
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

// ReadsAll tells that the template uses the record as a whole, or a column
// whose name it computes.
func (t *Template) ReadsAll() bool { return t.reads.all }

// Render prints the template for one record, a map of column names to values:
// nil, bool, integers, floats, *big.Int, json.Number, string, []byte,
// time.Time, []any and map[string]any. Columns that the record does not have
// are an error, as are all mistakes of values; Limits bound the work.
func (t *Template) Render(record map[string]any, limits Limits) (string, error) {
	return t.render(newRun(record, limits))
}

func (t *Template) render(r *run) (string, error) {
	if err := t.compiled.render(r); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// RenderJSON renders in JSON mode (facts C): outputs are escaped for the inside
// of a JSON string, unless they pass raw or json, and the result is read as
// YAML. It gives nil, bool, json.Number, string, []any or
// map[string]any.
func (t *Template) RenderJSON(record map[string]any, limits Limits) (any, error) {
	r := newRun(record, limits)
	r.escape = true
	text, err := t.render(r)
	if err != nil {
		return nil, err
	}
	// JSON is read as such, which keeps every digit of its numbers.
	if value, err := decodeValue([]byte(text)); err == nil {
		return value, nil
	}
	return readYAML(text)
}

var errAlias = errors.New("read output as YAML: aliases are not allowed")

// readYAML refuses aliases: a few of them can stand for any amount of data.
func readYAML(text string) (any, error) {
	file, err := yamlparser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, fmt.Errorf("read output as YAML: %s", firstLine(err))
	}
	for _, document := range file.Docs {
		if document.Body != nil && len(ast.Filter(ast.AliasType, document.Body)) > 0 {
			return nil, errAlias
		}
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("read output as YAML: %s", firstLine(err))
	}
	return plainYAML(value)
}

// firstLine drops the excerpt that the library adds: it shows data.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// plainYAML has text keys and the numbers of JSON.
func plainYAML(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if v[key], err = plainYAML(item); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, item := range v {
			if v[i], err = plainYAML(item); err != nil {
				return nil, err
			}
		}
	case nil, bool, string:
	case int, int64, uint64, float64:
		digits, err := decimalText(v)
		if err != nil {
			return nil, fmt.Errorf("read output as YAML: %w", err)
		}
		return json.Number(digits), nil
	default:
		return nil, fmt.Errorf("read output as YAML: a value of type %T is none of JSON", v)
	}
	return value, nil
}
