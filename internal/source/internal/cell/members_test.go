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
		got := map[string]json.RawMessage{}
		require.NoError(t, Members(text, func(key, value []byte) error {
			got[string(key)] = AppendCanonical(nil, value)
			return nil
		}))
		var want, again any
		require.NoError(t, json.Unmarshal(text, &want))
		members, err := json.Marshal(got)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(members, &again))
		require.Equal(t, want, again)
	})
}
