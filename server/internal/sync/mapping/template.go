package mapping

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"

	"github.com/destkit/destkit/internal/liquid"
)

// renderValue renders a template in JSON mode: its output is read as YAML.
// It gives nil, bool, json.Number, string, []any or map[string]any.
func renderValue(t *liquid.Template, record map[string]any, limits liquid.Limits) (any, error) {
	text, err := t.RenderEscaped(record, limits)
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

// readYAML refuses aliases: a few of them can expand to any amount of data.
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
