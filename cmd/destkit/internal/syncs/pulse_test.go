package syncs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// at is a run under way with its counters.
func at(step string, rows, toSend, done int64) api.SyncRun {
	return api.SyncRun{
		ID: 3, SyncID: 1, Status: api.RunWorking, CurrentStep: &step,
		SourceRecordCount: &rows, SourceRecordUpdates: &toSend, RecordsProcessed: &done, RecordsUpdated: &done,
	}
}

func TestPulse(t *testing.T) {
	thousand := int64(1000)
	before := &api.SyncRun{SourceRecordCount: &thousand}
	for name, tc := range map[string]struct {
		before  *api.SyncRun
		after   time.Duration
		run     api.SyncRun
		records float64
		rows    float64
		left    time.Duration // -1: unknown
		share   float64
	}{
		"nothing yet":           {before, 4 * time.Second, at("reading", 0, 0, 0), 0, 0, -1, -1},
		"a first run":           {nil, 4 * time.Second, at("reading", 400, 400, 200), 50, 100, -1, -1},
		"too early":             {before, time.Second, at("reading", 100, 100, 100), 100, 100, -1, 0.1},
		"reading all":           {before, 4 * time.Second, at("reading", 400, 400, 200), 50, 100, 16 * time.Second, 0.3},
		"every tenth changed":   {before, 4 * time.Second, at("reading", 400, 40, 40), 10, 100, 6 * time.Second, 0.4},
		"nothing changed":       {before, 4 * time.Second, at("reading", 400, 0, 0), 0, 100, 6 * time.Second, 0.4},
		"more rows than before": {before, 4 * time.Second, at("reading", 2000, 0, 0), 0, 500, 0, 1},
		"deleting":              {nil, 4 * time.Second, at("deleting", 400, 400, 200), 50, 100, 4 * time.Second, 0.75},
		"a step of others":      {before, 4 * time.Second, at("Running Sync", 500, 500, 500), 125, 125, 4 * time.Second, 0.5},
		"nothing is sent":       {before, 4 * time.Second, at("retrying", 400, 400, 0), 0, 100, -1, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
			p := NewPulse(now, tc.before)
			f := p.Take(now.Add(tc.after), tc.run)
			require.Equal(t, tc.after, f.Elapsed)
			require.InDelta(t, tc.records, f.RecordsPerSecond, 0.01)
			require.InDelta(t, tc.rows, f.RowsPerSecond, 0.01)
			require.Equal(t, tc.left, f.Left)
			require.InDelta(t, tc.share, f.Share, 0.001)
		})
	}
}

// TestPulseForgets: a rate is that of the last seconds, of a run that ended that
// of the whole.
func TestPulseForgets(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	p := NewPulse(now, nil)
	p.Take(now.Add(time.Second), at("reading", 1000, 1000, 1000))
	for s := 2; s <= 30; s++ {
		p.Take(now.Add(time.Duration(s)*time.Second), at("reading", 1000, 1000, 1000))
	}
	f := p.Take(now.Add(31*time.Second), at("deleting", 1000, 1100, 1050))
	require.InDelta(t, 5, f.RecordsPerSecond, 0.5)
	require.LessOrEqual(t, len(p.beats), 13)
	ended := at("", 1000, 1100, 1100)
	ended.Status = api.RunCompleted
	f = p.Take(now.Add(44*time.Second), ended)
	require.InDelta(t, 25, f.RecordsPerSecond, 0.01)
	require.Zero(t, f.Left)
}

// TestPulseTime: the service reports how long a run took, unless its clock moved.
func TestPulseTime(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		late         bool
		served, want time.Duration
	}{
		"better than polls":       {false, 300 * time.Millisecond, 300 * time.Millisecond},
		"the clock was moved":     {false, 24 * time.Hour, time.Second},
		"the clock stood still":   {false, 0, time.Second},
		"seen after it had begun": {true, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPulse(now, nil)
			p.Late = tc.late
			r := api.SyncRun{Status: api.RunFailed, CreatedAt: api.Time{Time: now}, CompletedAt: api.At(now.Add(tc.served))}
			require.Equal(t, tc.want, p.Take(now.Add(time.Second), r).Elapsed)
		})
	}
}
