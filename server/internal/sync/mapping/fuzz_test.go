package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// Any configuration: a list of problems, or a valid one that stays valid and
// the same when it is stored. Never a panic, and never a message without end.
func FuzzCheck(f *testing.F) {
	seed := func(change func(s *Subject)) {
		s := valid()
		change(&s)
		text, err := json.Marshal(s.Config)
		require.NoError(f, err)
		f.Add(text)
	}
	seed(func(*Subject) {})
	seed(func(s *Subject) { Normalize(&s.Config) })
	seed(func(s *Subject) {
		s.Config.Operation, s.Config.MirrorStrategy = "mirror", api.Ptr("upload_and_swap")
		s.Config.ScheduleFrequency, s.Config.CronExpression = api.Ptr("expression"), api.Ptr("0 6 * * 1")
	})
	f.Add([]byte(`{"mappings":[{"from":{"type":"liquid_template","data":"{{ record.NAME }}"},"to":"a.b","position":-5},{"to":"a"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := valid()
		if json.Unmarshal(text, &s.Config) != nil {
			return
		}
		problems := Check(s)
		for _, p := range problems {
			require.NotEmpty(t, p.Message)
		}
		Normalize(&s.Config)
		if len(problems) > 0 {
			return
		}
		require.Empty(t, Check(s))
		once := roundTrip(t, s.Config)
		again := roundTrip(t, s.Config)
		Normalize(&again)
		require.Equal(t, once, roundTrip(t, again))
	})
}

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
