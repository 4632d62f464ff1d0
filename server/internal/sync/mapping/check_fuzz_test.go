package mapping

import (
	"encoding/json"
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
