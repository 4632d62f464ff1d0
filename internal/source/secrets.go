package source

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/connector"
)

// Details is the part of the credentials that may be shown: what GET returns as
// connection_details. Fields that are left out or unknown are not in
// it.
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

// shortestSecret is what is worth cleaning from a message: drivers do not print
// passwords, and taking every "e" out of a text would hide the reason of it.
const shortestSecret = 4

// cleaned is an error whose text held a secret. What it wraps is found by its
// kind only.
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
