package connector

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Coerce reads credentials as their fields mean them, for a service that types
// nothing: "" is the same as left out for what is optional, "5439" is a number
// where one is meant, and an object is its text or the other way round. What
// cannot be read so stays, for the check to refuse.
func Coerce(fields []api.ConfigField, given map[string]Raw) map[string]Raw {
	read := maps.Clone(given)
	for i := range fields {
		f := &fields[i]
		raw := bytes.TrimSpace(given[f.ID])
		switch {
		case !Has(raw), !json.Valid(given[f.ID]):
		case string(raw) == `""` && !slices.Contains(f.Rules.Words, Required):
			delete(read, f.ID)
		default:
			read[f.ID] = coerced(f.Type, raw)
		}
	}
	return read
}

// coerced is one value as a type means it.
func coerced(typ string, raw Raw) Raw {
	var text string
	isText := json.Unmarshal(raw, &text) == nil
	inside := strings.TrimSpace(text)
	switch {
	case typ == String && !isText:
		return asText(raw)
	case typ == Boolean:
		if !isText {
			inside = string(raw) // 1 and 0
		}
		if value, err := strconv.ParseBool(inside); err == nil {
			return Raw(strconv.FormatBool(value))
		}
	case typ == Integer && isText:
		if n, err := strconv.ParseInt(inside, 10, 64); err == nil {
			return Raw(strconv.FormatInt(n, 10))
		}
	case typ == Object && isText && strings.HasPrefix(inside, "{"),
		typ == Array && isText && strings.HasPrefix(inside, "["):
		if json.Valid([]byte(inside)) {
			return Raw(inside)
		}
	}
	return raw
}

// asText is a number, a boolean, an object or a list as the text that it was
// before a client read it as JSON.
func asText(raw Raw) Raw {
	var short bytes.Buffer
	if json.Compact(&short, raw) != nil {
		return raw
	}
	text, err := json.Marshal(short.String())
	if err != nil {
		return raw
	}
	return text
}
