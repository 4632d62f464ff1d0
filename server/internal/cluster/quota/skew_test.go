package quota

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

// TestMomentsAreMovedToTheSafeSide: whatever the clocks show, how fast they run
// and how long an exchange takes, a send is never said to be earlier than it was, and
// nothing is used too early or too long.
func TestMomentsAreMovedToTheSafeSide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Now()
		ahead := time.Duration(rapid.Int64Range(1<<50, 1<<60).Draw(t, "ahead"))
		fast := rapid.Float64Range(-0.0009, 0.0009).Draw(t, "fast") // of the database's clock
		there := func(local time.Duration) time.Time {
			return time.Unix(0, int64(ahead+local+time.Duration(fast*float64(local))))
		}
		s := skew{base: base}
		local := time.Duration(0)
		for range rapid.IntRange(1, 20).Draw(t, "exchanges") {
			some := func(label string, most time.Duration) time.Duration {
				return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, label))
			}
			if rapid.IntRange(0, 9).Draw(t, "set") == 0 {
				ahead += time.Duration(rapid.SampledFrom([]int64{-1e12, -1e9, 1e9, 1e12}).Draw(t, "by")) // a clock was set
			}
			local += some("idle", 10*time.Second)
			asked := local
			local += some("way", 50*time.Millisecond)
			now := there(local)
			local += some("back", 50*time.Millisecond)
			b := s.learn(asked, local, now)
			require.LessOrEqual(t, b.high-b.low, local-asked+2*slop)

			sent := asked - some("ago", 200*time.Millisecond)
			r := b.there(pace.Report{Sent: []pace.Units{{At: base.Add(sent), N: 1}}})
			later := some("later", 400*time.Millisecond)
			g := b.here(pace.Grant{Chunks: []pace.Units{{At: there(local + later), N: 1}}, Until: there(local + later)})
			require.False(t, r.Sent[0].At.Before(there(sent)))
			require.False(t, g.Chunks[0].At.Before(base.Add(local+later)))
			require.False(t, g.Until.After(base.Add(local+later)))
		}
	})
}
