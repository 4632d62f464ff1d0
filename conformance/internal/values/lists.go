package values

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// asArray compares lists: as a whole, by what the list before has left in them, and item
// by item.
func asArray(p Pair) (Difference, bool) {
	var sent, stored, before []json.RawMessage
	if !p.Field.Array || json.Unmarshal(p.Sent, &sent) != nil {
		return Difference{}, false
	}
	if json.Unmarshal(p.Stored, &stored) != nil {
		return Difference{Class: Retyped, How: "it is no list"}, true
	}
	if p.Before != nil {
		_ = json.Unmarshal(p.Before, &before) // else nothing was there
	}
	a, b, old := lists.Of(sent, Text), lists.Of(stored, Text), lists.Of(before, Text)
	switch {
	case len(b) > len(a) && len(old) > 0 && (slices.Equal(b, slices.Concat(old, a)) || slices.Equal(b, slices.Concat(a, old))):
		return Difference{Class: Added, How: "its items stand next to those from before"}, true
	case len(b) > len(a) && len(old) == len(b) && slices.Equal(b, slices.Concat(a, old[len(a):])):
		return Difference{Class: Added, How: "what the list before was longer is still there"}, true
	case len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))):
		return Difference{Class: ItemsUnordered, How: "its items are in another order"}, true
	case len(b) < len(a) && slices.Equal(once(a), once(b)) && len(once(b)) == len(b):
		return Difference{Class: ItemsUnordered, How: "its repetitions are gone"}, true
	}
	return byItem(p, sent, stored), true
}

// once sorts texts and leaves out repetitions.
func once(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

func byItem(p Pair, sent, stored []json.RawMessage) Difference {
	item := p.Field
	item.Array = false
	for i := range min(len(sent), len(stored)) {
		if d := Classify(Pair{Field: item, Sent: sent[i], Stored: stored[i]}); d.Class != Equal {
			if len(sent) != len(stored) {
				break
			}
			d.How = fmt.Sprintf("item %d: %s", i+1, d.How)
			return d
		}
	}
	return Difference{Class: Items, How: fmt.Sprintf("%s of %d", quantity.Count(len(stored), "item"), len(sent))}
}
