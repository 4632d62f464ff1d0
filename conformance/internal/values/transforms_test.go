package values

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func fieldOf(kind string) rpc.Field {
	if kind == TypeArray {
		return rpc.Field{APIName: "f", Type: rpc.TypeString, Array: true}
	}
	return rpc.Field{APIName: "f", Type: kind}
}

// sentFor are the values that a run sends for the transforms of a type.
func sentFor(kind string) []json.RawMessage {
	var out []json.RawMessage
	for _, t := range all {
		if t.Type == kind {
			out = append(out, t.Shows...)
		}
	}
	return out
}

// TestEveryTransformShows proves the table: each value that the table gives for a transform reveals
// a field that applies it, and none reveals a field that keeps the sent value.
func TestEveryTransformShows(t *testing.T) {
	for _, tr := range all {
		f := fieldOf(tr.Type)
		require.NotEmpty(t, tr.Shows, tr.Says)
		for _, sent := range tr.Shows {
			require.True(t, json.Valid(sent), "%s", sent)
			stored := tr.Apply(sent)
			require.True(t, json.Valid(stored), "%s: %s", tr.Says, stored)
			d := Classify(Pair{Field: f, Sent: sent, Stored: stored})
			require.NotEqual(t, Equal, d.Class, "%s of a %s does not change %s", tr.Says, tr.Type, sent)
			require.NotEqual(t, Other, d.Class, "%s of a %s makes %s of %s", tr.Says, tr.Type, stored, sent)
		}
		var classes []Class
		for _, sent := range sentFor(tr.Type) {
			classes = append(classes, Classify(Pair{Field: f, Sent: sent, Stored: tr.Apply(sent)}).Class)
		}
		require.Contains(t, classes, tr.Class, "%s of a %s is recognised by one value at least", tr.Says, tr.Type)
	}
}

// TestConformantFieldsShowNothing: what keeps a value, or gives it back in a notation
// that is as good, is no difference.
func TestConformantFieldsShowNothing(t *testing.T) {
	for _, kind := range append(rpc.FieldTypes(), TypeArray) {
		for _, sent := range sentFor(kind) {
			var v any
			require.NoError(t, json.Unmarshal(sent, &v))
			again := sent
			if kind == rpc.TypeString || kind == TypeArray {
				again, _ = json.Marshal(v) // with escapes for <, > and &
			}
			require.Equal(t, Equal, Classify(Pair{Field: fieldOf(kind), Sent: sent, Stored: again}).Class, "%s as %s", sent, again)
		}
	}
	for _, c := range []struct{ kind, sent, stored string }{
		{rpc.TypeDateTime, `"2021-03-29T16:32:23.456Z"`, `"2021-03-29T16:32:23Z"`},
		{rpc.TypeDateTime, `"2021-07-15T12:00:00Z"`, `"2021-07-15T14:00:00+02:00"`},
		{rpc.TypeDecimal, `"1.50"`, `1.5`},
		{rpc.TypeFloat, `16777217.0`, `16777217`},
	} {
		require.Equal(t, Equal, Classify(Pair{Field: rpc.Field{Type: c.kind}, Sent: json.RawMessage(c.sent), Stored: json.RawMessage(c.stored)}).Class, "%s as %s", c.sent, c.stored)
	}
}

// TestEachClassHasACause: one cause for each class, and none twice.
func TestEachClassHasACause(t *testing.T) {
	seen := map[string]Class{}
	for class, said := range causes {
		require.NotContains(t, seen, said[0])
		require.NotEmpty(t, said[1], class)
		seen[said[0]] = class
	}
	for _, tr := range all {
		require.Contains(t, causes, tr.Class)
	}
}
