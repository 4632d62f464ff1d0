package main

import (
	"time"

	"github.com/destkit/destkit/server/api"
)

// pulseWindow is the time over which a rate is measured: short enough to follow
// a change, long enough that one slow batch does not look like one.
const pulseWindow = 10 * time.Second

// pulseStart is how long a run is looked at before its end is foretold.
const pulseStart = 2 * time.Second

// pulse measures one run from what polls show. All times are those of this
// machine: the clock of the service can be moved and stopped.
type pulse struct {
	// before is the last completed run of the sync, which says how many rows are
	// to be expected; nil: nobody knows.
	before *api.SyncRun
	began  time.Time
	late   bool // the run was under way already
	beats  []beat
}

// beat is one poll.
type beat struct {
	at         time.Time
	rows, done int64
}

// figures are what can be said about a run beyond its counters.
type figures struct {
	elapsed time.Duration
	// recordsPerSecond were acknowledged or refused, rowsPerSecond read, over the
	// last seconds; over the whole run once it has ended.
	recordsPerSecond, rowsPerSecond float64
	// left is the time that the run may still take, share how much of it is done,
	// 0 to 1; negative while nobody knows.
	left  time.Duration
	share float64
}

func newPulse(now time.Time, before *api.SyncRun) *pulse {
	return &pulse{before: before, began: now, beats: []beat{{at: now}}}
}

// take looks at the run as it is now.
func (p *pulse) take(now time.Time, r api.SyncRun) figures {
	b := beat{now, number(r.SourceRecordCount), number(r.RecordsProcessed)}
	p.beats = append(p.beats, b)
	for len(p.beats) > 2 && now.Sub(p.beats[1].at) >= pulseWindow {
		p.beats = p.beats[1:]
	}
	f := figures{elapsed: now.Sub(p.began), left: -1, share: -1}
	since := p.beats[0]
	if over(r) {
		f.left, f.share, f.elapsed = 0, 1, p.whole(f.elapsed, r)
		since = beat{at: now.Add(-f.elapsed)}
	}
	if seconds := now.Sub(since.at).Seconds(); seconds > 0 {
		f.recordsPerSecond = max(0, float64(b.done-since.done)/seconds)
		f.rowsPerSecond = max(0, float64(b.rows-since.rows)/seconds)
	}
	if !over(r) {
		p.expect(&f, b, number(r.SourceRecordUpdates)+number(r.SourceRecordDeletes), words(r.CurrentStep))
	}
	return f
}

// whole is how long a run took. The service knows it better than polls do,
// unless its clock was moved or stopped meanwhile.
func (p *pulse) whole(seen time.Duration, r api.SyncRun) time.Duration {
	if r.CompletedAt == nil {
		return seen
	}
	served := r.CompletedAt.Sub(r.CreatedAt.Time)
	if served > 0 && (p.late || served <= seen) {
		return served
	}
	return seen
}

// expect estimates what is left. Rows are read and records sent at the same
// time, so the slower of the two decides.
func (p *pulse) expect(f *figures, b beat, toSend int64, step string) {
	rows := b.rows // all of them, once reading is over
	if stillReading(step) {
		if p.before == nil || b.rows == 0 {
			return
		}
		rows = max(number(p.before.SourceRecordCount), b.rows)
		// The rest of the rows is taken to differ as often as those so far.
		toSend = int64(float64(toSend) * float64(rows) / float64(b.rows))
	}
	toSend = max(toSend, b.done)
	if rows+toSend > 0 {
		f.share = float64(b.rows+b.done) / float64(rows+toSend)
	}
	reading, known := remaining(rows-b.rows, f.rowsPerSecond)
	sending, also := remaining(toSend-b.done, f.recordsPerSecond)
	if known && also && f.elapsed >= pulseStart {
		f.left = max(reading, sending)
	}
}

// stillReading tells that more rows may come.
func stillReading(step string) bool {
	return !is(step, "sending", "retrying", "deleting", "recording")
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
