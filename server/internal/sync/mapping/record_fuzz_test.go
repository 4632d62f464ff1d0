package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
)

// Whatever a source hands out as the text of a value, a record is made of it or
// it is refused; of JSON comes JSON.
func FuzzAppendRecord(f *testing.F) {
	for _, raw := range []string{
		``, `null`, `-`, `-0`, `1e400`, `0.10`, `"`, `""`, `"2021-03-29T16:32:23.5Z"`, `[1,["]"],{"a":[]}]`, `[1,,2]`, `[`, `[1 2]`, `"\\ud800"`, `{"a":1}`, "\"\xff\"",
	} {
		f.Add(raw)
	}
	type target struct {
		typ   string
		array bool
	}
	plans := map[target]*Plan{}
	for _, typ := range wireTypes {
		for _, array := range []bool{false, true} {
			object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{{FullName: "v", Type: typ, Array: array}}}
			m := mapped("v", "v")
			m.IsPrimaryIdentifier = !array
			plans[target{typ, array}] = compiledPlan(f, api.SyncConfig{Mappings: []api.Mapping{m}}, object, []api.Column{column("v", api.KindAny)}, testEnv)
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for to, p := range plans {
			record, key, invalid := p.AppendRecord(nil, texts(raw))
			if invalid != "" {
				require.Empty(t, record)
				continue
			}
			if json.Valid([]byte(raw)) && strings.TrimSpace(raw) == raw { // sources write no space around a value
				require.True(t, json.Valid(record), "%v: %s", to, record)
				require.Equal(t, string(key), string(AppendCanonical(nil, key)), "a key has one form")
			}
		}
	})
}
