package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/server/api"
)

// settings are the credentials of a connection by the id of their field. Its
// methods are for what passed CheckCredentials.
type settings map[string]json.RawMessage

// has reports whether a field is given: null is the same as left out.
func (s settings) has(id string) bool { return connector.Has(s[id]) }

// text is the value of a field, "" when it is left out; CheckCredentials has
// seen that it is a text.
func (s settings) text(id string) string { return connector.Text(s[id]) }

// integer reads a whole number; 1e3 and 1000.0 are whole numbers to JSON.
func (s settings) integer(id string, otherwise int64) int64 {
	if n, ok := wholeNumber(s[id]); ok && s.has(id) {
		return n
	}
	return otherwise
}

// wholeNumber takes 5432 and 5432.0: some clients write all numbers as floats.
// Beyond 2^53 a float may mean its neighbour.
func wholeNumber(raw json.RawMessage) (int64, bool) {
	word := string(bytes.TrimSpace(raw))
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(word, 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -(1<<53) {
		return 0, false
	}
	return int64(f), true
}

// CheckCredentials compares credentials with the fields of a type and returns
// all problems together, in the order of the fields, unknown keys last. Field
// is of the form credentials.host. No message quotes a value: it may be a secret
// that was put into the wrong field.
func (c *Catalogue) CheckCredentials(typ string, credentials map[string]json.RawMessage) []api.Problem {
	t, ok := c.types[typ]
	if !ok {
		return []api.Problem{{Field: "type", Message: "is not a type of source; use one of " + strings.Join(c.order, ", ")}}
	}
	var problems []api.Problem
	s := settings(credentials)
	for i := range t.ConfigurationFields.Fields {
		f := &t.ConfigurationFields.Fields[i]
		if message := t.checkField(f, s); message != "" {
			problems = append(problems, api.Problem{Field: "credentials." + f.ID, Message: message})
		}
	}
	if t.check != nil {
		known := problems
		for _, p := range t.check(s) { // a field is not objected to twice
			if !slices.ContainsFunc(known, func(k api.Problem) bool { return strings.HasPrefix(p.Field+".", k.Field+".") }) {
				problems = append(problems, p)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(credentials)) {
		if t.field(key) == nil {
			problems = append(problems, api.Problem{Field: "credentials." + key, Message: t.unknownField()})
		}
	}
	return problems
}

// Read gives credentials that were sent as they are kept: another spelling of a
// field is that field, and with lenient each value is read as its field means it.
// Of an unknown type they stay as they are.
func (c *Catalogue) Read(typ string, sent map[string]json.RawMessage, lenient bool) (read map[string]json.RawMessage, problems []api.Problem) {
	t, ok := c.types[typ]
	if !ok {
		return sent, nil
	}
	if read = sent; lenient {
		read = connector.Coerce(t.ConfigurationFields.Fields, sent)
	}
	if t.entry == nil {
		return read, nil
	}
	read, problems = t.entry.Canonical(read)
	for i := range problems {
		problems[i].Field = "credentials." + problems[i].Field
	}
	return read, problems
}

// Unknown lists the credentials that a type does not have, sorted; none of an
// unknown type.
func (c *Catalogue) Unknown(typ string, credentials map[string]json.RawMessage) (names []string) {
	t, ok := c.types[typ]
	if !ok {
		return nil
	}
	for _, name := range sortedKeys(credentials) {
		if t.field(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// unknownField lists the known fields; the one that was sent may hold a
// secret even in its name.
func (t *sourceType) unknownField() string {
	if len(t.ConfigurationFields.Fields) == 0 {
		return "is not a field of " + t.ServiceName + ", which has none"
	}
	ids := lists.Of(t.ConfigurationFields.Fields, func(f api.ConfigField) string { return f.ID })
	return "is not a field of " + t.ServiceName + "; its fields are " + strings.Join(ids, ", ")
}

// checkField returns the problem of one field, or "".
func (t *sourceType) checkField(f *api.ConfigField, s settings) string {
	if !s.has(f.ID) {
		if slices.Contains(f.Rules.Words, required) {
			return "is required"
		}
		return ""
	}
	raw := s[f.ID]
	if !json.Valid(raw) {
		return "is not JSON"
	}
	switch f.Type {
	case fieldText:
		return t.checkText(f, raw)
	case fieldInteger:
		n, ok := wholeNumber(raw)
		if !ok {
			return "must be a whole number, such as " + f.Placeholder + ", without quotes"
		}
		if pattern := t.matches[f.ID]; pattern != nil && !pattern.MatchString(strconv.FormatInt(n, 10)) {
			return "is out of range: " + f.Hint
		}
	case fieldBoolean:
		if s := string(bytes.TrimSpace(raw)); s != "true" && s != "false" {
			return "must be true or false"
		}
	case fieldObject, fieldArray:
		// The type's own check knows the content.
	}
	return ""
}

// checkText returns what is wrong with a text, "" when nothing is. It
// never repeats the text.
func (t *sourceType) checkText(f *api.ConfigField, raw json.RawMessage) string {
	var v string
	if json.Unmarshal(raw, &v) != nil {
		return "must be a string"
	}
	switch {
	case v == "" && slices.Contains(f.Rules.Words, required):
		return "must not be empty"
	case v == "":
		return ""
	case len(v) > maxFieldBytes:
		return fmt.Sprintf("must not be longer than %d bytes", maxFieldBytes)
	case strings.ContainsRune(v, 0) || !utf8.ValidString(v):
		return "must not hold a NUL character"
	case len(f.PossibleValues) > 0 && !slices.Contains(f.PossibleValues, v):
		return "must be one of " + strings.Join(f.PossibleValues, ", ")
	}
	if pattern := t.matches[f.ID]; pattern != nil && !pattern.MatchString(v) {
		return "must match " + f.Matches
	}
	return ""
}

// maxFieldBytes is far more than any credential; the longest are keys in PEM.
const maxFieldBytes = 64 << 10

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Details is the part of the credentials that may be shown: GET returns it as
// connection_details. Fields that are left out or unknown are not in it.
func (c *Catalogue) Details(typ string, credentials map[string]json.RawMessage) map[string]any {
	details := map[string]any{}
	t, ok := c.types[typ]
	if !ok {
		return details
	}
	s := settings(credentials)
	if t.entry != nil {
		return t.entry.details(s)
	}
	for _, f := range t.ConfigurationFields.Fields {
		if f.IsPasswordTypeField || !s.has(f.ID) {
			continue
		}
		if v, ok := plainValue(f.Type, s[f.ID]); ok {
			details[f.ID] = v
		}
	}
	return details
}

// plainValue is the value of a field as replies show it.
func plainValue(typ string, raw json.RawMessage) (v any, ok bool) {
	if json.Unmarshal(raw, &v) != nil {
		return nil, false
	}
	if n, whole := wholeNumber(raw); whole && typ == fieldInteger {
		v = n // a seed of 2^60 must not come back rounded
	}
	return v, true
}

// Secrets lists every secret of the credentials in every form in which it could
// show in a message, the longest first, so that messages can be cleaned.
func (c *Catalogue) Secrets(typ string, credentials map[string]json.RawMessage) []string {
	t, ok := c.types[typ]
	if !ok {
		return nil
	}
	var found []string
	s := settings(credentials)
	for _, f := range t.ConfigurationFields.Fields {
		if f.IsPasswordTypeField && s.has(f.ID) {
			found = connector.Secrets(found, s[f.ID])
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(found)
}

// Secrets are those of the built-in catalogue.
func Secrets(typ string, credentials map[string]json.RawMessage) []string {
	return BuiltIn().Secrets(typ, credentials)
}

// shortestSecret is the least length worth cleaning from a message: drivers do not print
// passwords, and taking every "e" out of a text would hide the reason of it.
const shortestSecret = 4

// cleaned is an error whose text held a secret. errors.Is finds the wrapped
// error by its kind only.
type cleaned struct {
	text string
	kind error
}

func (e *cleaned) Error() string        { return e.text }
func (e *cleaned) Is(target error) bool { return errors.Is(e.kind, target) }

// clean takes the secrets out of an error.
func clean(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	text := cleanText(err.Error(), secrets)
	if text == err.Error() {
		return err
	}
	var q *QueryError
	if errors.As(err, &q) {
		return &QueryError{Message: cleanText(q.Message, secrets), Position: q.Position}
	}
	return &cleaned{text, err}
}

// cleanText replaces secrets. Very short ones are left: no driver prints them,
// and a text without any "e" is of no help.
func cleanText(text string, secrets []string) string {
	var pairs []string
	for _, s := range secrets {
		if len(s) >= shortestSecret {
			pairs = append(pairs, s, "[secret]")
		}
	}
	return strings.NewReplacer(pairs...).Replace(text) // in one pass, the first of the list wins
}
