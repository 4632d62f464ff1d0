package syncs

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// TestBar draws what a terminal gets.
func TestBar(t *testing.T) {
	var out, screen bytes.Buffer
	d := &bar{out: &out, screen: &screen}
	v := View{Sync{1, api.Ptr("Contacts")}, at("reading", 400, 400, 200), Figures{RecordsPerSecond: 50, Left: 16 * time.Second, Share: 0.3}}
	unknown := v
	unknown.Share, unknown.Left = -1, -1
	d.Moment([]View{unknown})
	require.Contains(t, screen.String(), "sync 1 (Contacts), run 3: reading, 400 read, 400 to send, 200 sent, 50/s")
	require.NotContains(t, screen.String(), "%")
	d.Moment([]View{v})
	require.Contains(t, screen.String(), "30%")
	require.Contains(t, screen.String(), "about 16s left")
	d.Moment([]View{v, v})
	require.Contains(t, screen.String(), "2 runs: 400 sent, 100/s")
	require.Empty(t, out.String())
	v.Run.Status = api.RunCompleted
	d.Ended(v)
	require.Contains(t, out.String(), "run 3: completed")
}

func TestWords(t *testing.T) {
	v := View{Sync{1, nil}, at("Reading", 22784, 22784, 19000), Figures{RecordsPerSecond: 5709, Left: 49 * time.Second}}
	require.Equal(t, "run 3 reading: 19,000 of 22,784 sent, 5,709/s, 49s left", shortText(v))
	v.Run.SourceRecordUpdates, v.RecordsPerSecond, v.Left = nil, 0, -1
	require.Equal(t, "run 3 reading: 22,784 read", shortText(v))
}
