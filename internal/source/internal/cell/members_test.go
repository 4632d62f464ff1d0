package cell

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzMembers compares the split of an object with encoding/json.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, `{ "a" : 1 , "b":[{"c":"}"}],"d":"\"" }`, `{"a":-1.5e3}`, `{"\u0061":true}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !utf8.Valid(text) || !json.Valid(text) || len(text) == 0 || text[0] != '{' {
			return
		}
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &want))
		got := map[string]json.RawMessage{}
		require.NoError(t, Members(text, func(key, value []byte) error {
			got[string(key)] = append(json.RawMessage(nil), value...)
			return nil
		}))
		require.Len(t, got, len(want))
		for key, value := range want {
			require.Equal(t, string(value), string(got[key]))
			var a, b any
			require.NoError(t, json.Unmarshal(value, &a))
			require.NoError(t, json.Unmarshal(AppendCanonical(nil, value), &b))
			require.Equal(t, a, b)
		}
	})
}
