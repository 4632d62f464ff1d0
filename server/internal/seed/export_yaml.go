package seed

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pairs is a mapping of YAML in its order; empty values are left out.
type pairs []pair

type pair struct {
	key   string
	value any
}

// anything is a value as JSON has it, without null, false, empty values and ids.
func anything(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if decoder.Decode(&tree) != nil {
		return nil
	}
	return sparse(tree)
}

func sparse(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key == "id" {
				delete(v, key)
			} else if value = sparse(value); vacant(value) {
				delete(v, key)
			} else {
				v[key] = value
			}
		}
	case []any:
		for i := range v {
			v[i] = sparse(v[i])
		}
	}
	return v
}

// vacant reports whether a value is empty.
func vacant(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// writeItem writes a mapping as an item of a list.
func writeItem(b *bytes.Buffer, indent string, entry pairs) {
	lead := indent + "- "
	for _, p := range entry {
		if p.key != "first" && p.key != "notifications_enabled" && vacant(p.value) {
			continue
		}
		b.WriteString(lead + yamlText(p.key) + ":")
		lead = indent + "  "
		list, isList := p.value.([]any)
		if isList && len(list) > 0 {
			b.WriteByte('\n')
			for _, one := range list {
				if inner, ok := one.(pairs); ok && !plainPairs(inner) {
					writeItem(b, indent+"    ", inner)
				} else {
					b.WriteString(indent + "    - " + yamlFlow(one) + "\n")
				}
			}
			continue
		}
		b.WriteString(" " + yamlFlow(p.value) + "\n")
	}
}

// plainPairs reports whether a mapping fits on one line.
func plainPairs(entry pairs) bool {
	return len(entry) <= 4 && !slices.ContainsFunc(entry, func(p pair) bool {
		switch p.value.(type) {
		case []any, pairs, map[string]any:
			return !vacant(p.value)
		}
		return false
	})
}

// yamlFlow writes a value on one line.
func yamlFlow(v any) string {
	switch v := v.(type) {
	case string:
		return yamlText(v)
	case pairs:
		var parts []string
		for _, p := range v {
			if !vacant(p.value) {
				parts = append(parts, yamlText(p.key)+": "+yamlFlow(p.value))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, yamlText(key)+": "+yamlFlow(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, yamlFlow(one))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case bool:
		return strconv.FormatBool(v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// bareWord is a text that YAML reads as the same text without quotes.
var bareWord = regexp.MustCompile(`^[A-Za-z][A-Za-z_]*(?: [A-Za-z_]+)*$`)

// yamlText quotes what YAML would read as something else. A string of JSON is one of
// YAML.
func yamlText(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
	default:
		if bareWord.MatchString(s) {
			return s
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(text)
}
