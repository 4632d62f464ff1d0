package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// A template is one JSON object: the fields of a record, with placeholders in
// its strings. A string that is one placeholder of a number or a boolean becomes
// that number or boolean where the field has such a type.
//
//	{"email": "{{key}}", "age": "{{int 18 90}}", "city": "{{pick Oslo Rome}}"}
//
// The placeholders: key (the identifier of the run, also where it is left out),
// int FROM TO, float FROM TO, bool, word, words, pick A B C, date, date_time,
// hex DIGITS.

// FromTemplate renders the template for every record of the pool.
func (m *Maker) FromTemplate(text []byte) ([]Row, error) {
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil || members == nil {
		return nil, wire.Usagef("template: it must be one JSON object: %v", describeJSON(err, decoder.InputOffset()))
	}
	for name := range members {
		if !slices.ContainsFunc(m.Object.Fields, func(f rpc.Field) bool { return f.APIName == name }) {
			return nil, wire.Usagef("template: the object %q has no field %q", m.Object.APIName, name)
		}
	}
	kept := []rpc.Field{m.Object.Identifier}
	for _, f := range m.Object.Mapped[1:] {
		if _, there := members[f.APIName]; there {
			kept = append(kept, f)
		} else if f.Required {
			return nil, wire.Usagef("template: the field %q is required and not in it", f.APIName)
		}
	}
	m.Object.Mapped = kept
	if v, there := members[m.Object.Identifier.APIName]; there && v != "{{key}}" {
		return nil, wire.Usagef("template: the identifier %q must be \"{{key}}\", so that it carries the run", m.Object.Identifier.APIName)
	}
	rows := make([]Row, Pooled)
	for i := range rows {
		if err := m.templateRow(&rows[i], members); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (m *Maker) templateRow(r *Row, members map[string]any) error {
	for i, f := range m.Object.Mapped {
		r.Member(f.APIName)
		if i == 0 {
			r.Key(m.Keys, f.Type == rpc.TypeInteger)
			continue
		}
		value, err := m.render(members[f.APIName], f)
		if err != nil {
			return wire.Usagef("template: field %q: %v", f.APIName, err)
		}
		r.Text = append(r.Text, value...)
	}
	r.Text = append(r.Text, '}')
	return nil
}

// render fills the placeholders of a value.
func (m *Maker) render(value any, f rpc.Field) ([]byte, error) {
	switch v := value.(type) {
	case string:
		text, err := m.fill(v)
		if err != nil {
			return nil, err
		}
		scalar := f.Type == rpc.TypeInteger || f.Type == rpc.TypeFloat || f.Type == rpc.TypeBoolean
		if scalar && strings.HasPrefix(v, "{{") && json.Valid([]byte(text)) {
			return []byte(text), nil
		}
		return rawjson.AppendString(nil, text), nil
	case []any:
		out := []byte{'['}
		for i, element := range v {
			text, err := m.render(element, f)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, text...)
		}
		return append(out, ']'), nil
	}
	return json.Marshal(value)
}

// fill replaces {{…}} in a text.
func (m *Maker) fill(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		inner, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return "", fmt.Errorf("{{%s is never closed with }}", rest)
		}
		word, err := placeholder(strings.Fields(inner), m.Random)
		if err != nil {
			return "", err
		}
		out.WriteString(word)
		text = after
	}
}

// placeholder makes the value of one.
func placeholder(args []string, random *rand.Rand) (string, error) {
	name := strings.Join(args[:min(1, len(args))], "")
	switch {
	case name == "int" && len(args) == 3:
		from, errFrom := strconv.ParseInt(args[1], 10, 64)
		to, errTo := strconv.ParseInt(args[2], 10, 64)
		if errFrom != nil || errTo != nil || from > to || to-from < 0 {
			return "", fmt.Errorf("{{int FROM TO}} wants two whole numbers in order")
		}
		return strconv.FormatInt(from+random.Int64N(max(to-from+1, 1)), 10), nil
	case name == "float" && len(args) == 3:
		from, errFrom := strconv.ParseFloat(args[1], 64)
		to, errTo := strconv.ParseFloat(args[2], 64)
		if errFrom != nil || errTo != nil || from > to {
			return "", fmt.Errorf("{{float FROM TO}} wants two numbers in order")
		}
		return strconv.FormatFloat(from+random.Float64()*(to-from), 'f', 4, 64), nil
	case name == "pick" && len(args) > 1:
		return args[1+random.IntN(len(args)-1)], nil
	case name == "hex" && len(args) == 2:
		digits, err := strconv.Atoi(args[1])
		if err != nil || digits < 1 || digits > 256 {
			return "", fmt.Errorf("{{hex DIGITS}} wants a number from 1 to 256")
		}
		out := make([]byte, digits)
		for i := range out {
			out[i] = "0123456789abcdef"[random.IntN(16)]
		}
		return string(out), nil
	case len(args) == 1:
		if field, ok := plainPlaceholders[name]; ok {
			text := string(appendValue(nil, rpc.Field{Type: field}, random))
			return strings.Trim(text, `"`), nil
		}
		if name == "word" {
			return vocabulary[random.IntN(len(vocabulary))], nil
		}
	}
	return "", fmt.Errorf("{{%s}} is no placeholder: key, int FROM TO, float FROM TO, bool, word, words, pick A B, date, date_time, hex DIGITS", strings.Join(args, " "))
}

// plainPlaceholders make a value as a field of this type has it.
var plainPlaceholders = map[string]string{
	"bool": rpc.TypeBoolean, "words": rpc.TypeString, "date": rpc.TypeDate, "date_time": rpc.TypeDateTime,
}

func describeJSON(err error, at int64) string {
	if err == nil {
		return "it is null"
	}
	return fmt.Sprintf("%v (near byte %d)", err, at)
}

// Pooled is how many different records are generated for one kind of batch.
const Pooled = 4096
