package syncs

import (
	"time"

	"github.com/destkit/destkit/server/api"
)

// pulseWindow is the time over which a rate is measured: short enough to follow
// a change, long enough that one slow batch does not look like one.
const pulseWindow = 10 * time.Second

// pulseStart is how long a run is looked at before its end is foretold.
const pulseStart = 2 * time.Second

// Pulse measures one run from what polls show. All times are those of this
// machine: the clock of the service can be moved and stopped.
type Pulse struct {
	// before is the last completed run of the sync, which predicts the number of
	// rows; nil when there is none.
	before *api.SyncRun
	began  time.Time
	Late   bool // the run was under way already
	beats  []beat
}

// beat is one poll.
type beat struct {
	at         time.Time
	rows, done int64
}

// Figures are what can be said about a run beyond its counters.
type Figures struct {
	Elapsed time.Duration
	// RecordsPerSecond were acknowledged or refused, RowsPerSecond read, over the
	// last seconds; over the whole run once it has ended.
	RecordsPerSecond, RowsPerSecond float64
	// Left is the time that the run may still take, Share how much of it is done,
	// 0 to 1; negative while that is not known.
	Left  time.Duration
	Share float64
}

// NewPulse begins to measure a run now; before is the last completed run of its sync,
// nil when there is none.
func NewPulse(now time.Time, before *api.SyncRun) *Pulse {
	return &Pulse{before: before, began: now, beats: []beat{{at: now}}}
}

// Take looks at the run as it is now.
func (p *Pulse) Take(now time.Time, r api.SyncRun) Figures {
	b := beat{now, Count(r.SourceRecordCount), Count(r.RecordsProcessed)}
	p.beats = append(p.beats, b)
	for len(p.beats) > 2 && now.Sub(p.beats[1].at) >= pulseWindow {
		p.beats = p.beats[1:]
	}
	f := Figures{Elapsed: now.Sub(p.began), Left: -1, Share: -1}
	since := p.beats[0]
	if Over(r) {
		f.Left, f.Share, f.Elapsed = 0, 1, p.whole(f.Elapsed, r)
		since = beat{at: now.Add(-f.Elapsed)}
	}
	if seconds := now.Sub(since.at).Seconds(); seconds > 0 {
		f.RecordsPerSecond = max(0, float64(b.done-since.done)/seconds)
		f.RowsPerSecond = max(0, float64(b.rows-since.rows)/seconds)
	}
	if !Over(r) {
		p.expect(&f, b, Count(r.SourceRecordUpdates)+Count(r.SourceRecordDeletes), Text(r.CurrentStep))
	}
	return f
}

// whole is how long a run took. The service knows it better than polls do,
// unless its clock was moved or stopped meanwhile.
func (p *Pulse) whole(seen time.Duration, r api.SyncRun) time.Duration {
	if r.CompletedAt == nil {
		return seen
	}
	served := r.CompletedAt.Sub(r.CreatedAt.Time)
	if served > 0 && (p.Late || served <= seen) {
		return served
	}
	return seen
}

// expect estimates the rest. Rows are read and records sent at the same
// time, so the slower of the two decides.
func (p *Pulse) expect(f *Figures, b beat, toSend int64, step string) {
	rows := b.rows // all of them, once reading is over
	if stillReading(step) {
		if p.before == nil || b.rows == 0 {
			return
		}
		rows = max(Count(p.before.SourceRecordCount), b.rows)
		// The rest of the rows is taken to differ as often as those so far.
		toSend = int64(float64(toSend) * float64(rows) / float64(b.rows))
	}
	toSend = max(toSend, b.done)
	if rows+toSend > 0 {
		f.Share = float64(b.rows+b.done) / float64(rows+toSend)
	}
	reading, known := remaining(rows-b.rows, f.RowsPerSecond)
	sending, also := remaining(toSend-b.done, f.RecordsPerSecond)
	if known && also && f.Elapsed >= pulseStart {
		f.Left = max(reading, sending)
	}
}

// stillReading reports whether more rows may come.
func stillReading(step string) bool {
	return !HasStatus(step, "sending", "retrying", "deleting", "recording")
}

// remaining is the time that n things take; it is unknown while nothing moves.
func remaining(n int64, perSecond float64) (time.Duration, bool) {
	if n <= 0 {
		return 0, true
	}
	if perSecond <= 0 {
		return 0, false
	}
	return time.Duration(float64(n) / perSecond * float64(time.Second)).Round(time.Second), true
}
