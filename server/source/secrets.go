package source

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Details is the part of the credentials that may be shown: what GET returns as
// connection_details (facts B3). Fields that are left out or unknown are not in
// it.
func Details(typ string, credentials map[string]json.RawMessage) map[string]any {
	details := map[string]any{}
	t, ok := types[typ]
	if !ok {
		return details
	}
	s := settings(credentials)
	for _, f := range t.ConfigurationFields.Fields {
		if f.IsPasswordTypeField || !s.has(f.ID) {
			continue
		}
		var v any
		if json.Unmarshal(s[f.ID], &v) != nil {
			continue
		}
		if n, ok := wholeNumber(s[f.ID]); ok && f.Type == fieldInteger {
			v = n // a seed of 2^60 must not come back rounded
		}
		details[f.ID] = v
	}
	return details
}

// Secrets lists every secret of the credentials in every form in which it could
// show in a message, the longest first, so that messages can be cleaned.
func Secrets(typ string, credentials map[string]json.RawMessage) []string {
	t, ok := types[typ]
	if !ok {
		return nil
	}
	var found []string
	s := settings(credentials)
	for _, f := range t.ConfigurationFields.Fields {
		if f.IsPasswordTypeField && s.has(f.ID) {
			found = appendSecrets(found, s[f.ID], true)
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

// appendSecrets adds a value as it stands in JSON and as it reads. Of an object,
// such as the key of a service account, the members with a telling name are
// secrets of their own.
func appendSecrets(found []string, raw json.RawMessage, secret bool) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		if secret {
			found = append(found, string(raw))
		}
		for name, value := range members {
			found = appendSecrets(found, value, telling(name))
		}
		return found
	}
	var v string
	if !secret || json.Unmarshal(raw, &v) != nil || v == "" {
		return found
	}
	found = append(found, v)
	if escaped := strings.Trim(string(raw), " \t\r\n"); len(escaped) > 2 && escaped[1:len(escaped)-1] != v {
		found = append(found, escaped[1:len(escaped)-1])
	}
	if json.Valid([]byte(v)) && strings.HasPrefix(strings.TrimSpace(v), "{") {
		found = appendSecrets(found, json.RawMessage(v), false)
	}
	return found
}

// telling says that a member of a key file is a secret by its name.
func telling(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"key", "secret", "token", "password"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
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
// and a text without any "e" helps nobody.
func cleanText(text string, secrets []string) string {
	var pairs []string
	for _, s := range secrets {
		if len(s) >= shortestSecret {
			pairs = append(pairs, s, "[secret]")
		}
	}
	return strings.NewReplacer(pairs...).Replace(text) // in one pass, the first of the list wins
}
