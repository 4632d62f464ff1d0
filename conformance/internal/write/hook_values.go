package write

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

// HookShows explains a difference that a read-back hook makes when it gives what the
// database keeps instead of the declared type: many have no booleans and no lists. The
// endpoint is right then, so the hook is named first. It is "" for other differences.
func HookShows(p values.Pair) (cause, fix string) {
	shown, what := "", ""
	switch {
	case p.Field.Array && listAsText(p.Sent, p.Stored):
		shown, what = "the text of a list for the list", "a list"
	case p.Field.Type == rpc.TypeBoolean && !p.Field.Array && boolAsOther(string(p.Sent), string(p.Stored)):
		shown, what = "1 for true and 0 for false", "true and false" // one cause for both values
		if p.Stored[0] == '"' {
			shown = "text for true and false"
		}
	default:
		return "", ""
	}
	return fmt.Sprintf("the read-back hook shows %s, as the database keeps it; or the endpoint stores another type than the declared one.", shown),
		fmt.Sprintf("let the hook give %s (docs/judge.md, the read-back hook); if it does, store the declared type.", what)
}

// boolAsOther reports whether a boolean is shown by a number or a text that means the same.
func boolAsOther(sent, stored string) bool {
	means := map[string][]string{"true": {"1", "t", "true", "y", "yes"}, "false": {"0", "f", "false", "n", "no"}}[sent]
	for _, word := range means {
		if strings.EqualFold(strings.Trim(stored, `"`), word) && stored != sent {
			return true
		}
	}
	return false
}

// listAsText reports whether a list is shown as a text that holds the same items, as JSON
// or as the text of an array in PostgreSQL.
func listAsText(sent, stored json.RawMessage) bool {
	var text string
	var items, held []any
	if json.Unmarshal(stored, &text) != nil || json.Unmarshal(sent, &items) != nil {
		return false
	}
	if inner, ok := strings.CutPrefix(text, "{"); ok && strings.HasSuffix(inner, "}") {
		return inner == "}" || strings.Count(inner, ",") >= len(items)-1
	}
	return json.Unmarshal([]byte(text), &held) == nil && len(held) == len(items)
}
