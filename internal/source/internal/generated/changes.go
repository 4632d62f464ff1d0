package generated

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/server/api"
)

// Changes is the schedule of a generator: at the end of each step, so many rows
// are added, changed and removed.
type Changes struct {
	every                     time.Duration
	from                      time.Time // the beginning of the first step
	inserts, updates, deletes int64
}

// Limits of a schedule.
const (
	shortestStep = time.Second
	maxChanges   = 1_000_000_000
	// maxSteps bounds the steps before the first row is read; then the
	// schedule ends.
	maxSteps = 1_000_000
)

// changeFields are the members of the credential.
type changeFields struct {
	Every   string `json:"every"`
	From    string `json:"from"`
	Inserts int64  `json:"inserts"`
	Updates int64  `json:"updates"`
	Deletes int64  `json:"deletes"`
}

// ReadChanges reads the credential, which was checked. Without a from the
// steps count from since.
func ReadChanges(raw json.RawMessage, since time.Time) (Changes, error) {
	if !connector.Has(raw) {
		return Changes{}, nil
	}
	var f changeFields
	if err := json.Unmarshal(raw, &f); err != nil {
		return Changes{}, fmt.Errorf("read changes: %w", err)
	}
	c := Changes{from: since, inserts: f.Inserts, updates: f.Updates, deletes: f.Deletes}
	var err error
	if c.every, err = time.ParseDuration(f.Every); err != nil {
		return Changes{}, fmt.Errorf("read changes: %w", err)
	}
	if f.From != "" {
		if c.from, err = time.Parse(time.RFC3339, f.From); err != nil {
			return Changes{}, fmt.Errorf("read changes: %w", err)
		}
	}
	return c, nil
}

// checkChanges reports everything that is wrong with the schedule.
func checkChanges(columns, raw json.RawMessage) []api.Problem {
	const place = "credentials.changes"
	if !connector.Has(raw) {
		return nil
	}
	const shape = "must be an object with every, such as 1h, and at least one of inserts, updates and deletes"
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return []api.Problem{{Field: place, Message: shape}}
	}
	var problems []api.Problem
	object := func(name, message string) {
		problems = append(problems, api.Problem{Field: place + "." + name, Message: message})
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch name {
		case "every", "from", "inserts", "updates", "deletes":
		default:
			object(name, "is not known; changes have every, from, inserts, updates and deletes")
		}
	}
	if every, err := time.ParseDuration(connector.Text(members["every"])); err != nil || every < shortestStep {
		object("every", "must be a duration of 1s or more, such as 1h")
	}
	if connector.Has(members["from"]) {
		if _, err := time.Parse(time.RFC3339, connector.Text(members["from"])); err != nil {
			object("from", "must be a moment such as 2026-12-01T00:00:00Z")
		}
	}
	sum := int64(0)
	for _, name := range []string{"inserts", "updates", "deletes"} {
		if !connector.Has(members[name]) {
			continue
		}
		n, ok := plainNumber(members[name])
		if !ok || n < 0 || n > maxChanges {
			object(name, fmt.Sprintf("must be a whole number of 0 to %d", maxChanges))
			continue
		}
		sum += n
	}
	if sum == 0 && len(problems) == 0 {
		problems = append(problems, api.Problem{Field: place, Message: shape})
	}
	return append(problems, checkChangeable(columns, members)...)
}

// checkChangeable demands a column that an update can change.
func checkChangeable(raw json.RawMessage, members map[string]json.RawMessage) []api.Problem {
	columns, err := ReadColumns(raw)
	if n, ok := plainNumber(members["updates"]); err != nil || !ok || n <= 0 {
		return nil // the columns are checked elsewhere
	}
	for i := range columns {
		if !lasting[columns[i].Type] {
			return nil
		}
	}
	return []api.Problem{{Field: "credentials.changes.updates", Message: "needs a column of another type than id, uuid and email, which stay the same for the life of a row"}}
}

// lasting are the types whose values identify rows: updates leave them.
var lasting = map[string]bool{"id": true, "uuid": true, "email": true}

// history is the state of the rows after a number of steps. Rows are known by
// their number, from 1: those of the beginning first, then those that were
// added, in their order.
//
// The oldest rows are removed first. Updates go in rounds, each from the newest
// row of its beginning downwards until they meet the removed ones: so a step
// changes exactly as many rows as configured while there are enough, and the
// state of a row follows from two rounds alone, without any memory of rows.
type history struct {
	Changes
	rows  int64
	steps int64
	total int64 // rows that ever were
	gone  int64 // of these, so many were removed: the oldest
	round [2]updateRound
}

// updateRound is one round: update number first changes row top, the next one
// row top - 1, and so on.
type updateRound struct{ first, top, count int64 }

// after is the history at a moment.
func (c Changes) after(rows int64, now time.Time) *history {
	h := &history{Changes: c, rows: rows}
	if c.every > 0 && now.After(c.from) {
		h.steps = min(int64(now.Sub(c.from)/c.every), maxSteps)
	}
	h.total, h.gone = h.born(h.steps), h.removed(h.steps)
	if c.updates > 0 {
		h.rounds()
	}
	return h
}

// born is how many rows there ever were after a step.
func (h *history) born(step int64) int64 {
	return min(h.rows+h.inserts*step, maxRows)
}

// removed is how many rows are gone after a step, which removes no row that came
// in it. Where there are too few, those that come are removed as they come.
func (h *history) removed(step int64) int64 {
	if step == 0 {
		return 0
	}
	return min(step*h.deletes, h.rows+(step-1)*min(h.inserts, h.deletes), h.born(step-1))
}

// rounds goes through the rounds and keeps the last two.
func (h *history) rounds() {
	for done := int64(0); done < h.updates*h.steps; {
		step := done / h.updates // those before it are over
		r := updateRound{first: done, top: h.born(step)}
		r.count = h.within(r)
		if r.count == 0 { // no row is left that this step could change
			done = (step + 1) * h.updates
			continue
		}
		if done += r.count; done < (step+1)*h.updates && r.first == step*h.updates {
			done = (step + 1) * h.updates // all rows are changed in this step already
		}
		h.round[1], h.round[0] = h.round[0], r
	}
}

// within is how many rows a round changes before it meets those that are
// removed by then.
func (h *history) within(r updateRound) int64 {
	if h.deletes == 0 {
		return r.top
	}
	if r.top <= h.removed(r.first/h.updates+1) {
		return 0
	}
	low, high := int64(0), r.top
	for low < high {
		middle := low + (high-low)/2
		step := (r.first+middle)/h.updates + 1
		if r.top-middle > h.removed(step) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// life is one row: whether it is there, the step that changed it last, and the
// step in which it came or was changed, 0 for the beginning.
type life struct {
	there            bool
	updated, changed int64
}

// of returns the state of a row.
func (h *history) of(row int64) (l life) {
	if row > h.rows {
		l.changed = (row-h.rows-1)/h.inserts + 1
	}
	l.there = row > h.gone
	for i := range h.round {
		r := &h.round[i]
		at := r.top - row
		if at < 0 || at >= r.count {
			continue
		}
		if step := (r.first+at)/h.updates + 1; step <= h.steps {
			l.updated, l.changed = step, step
			break
		}
	}
	return l
}

// moment is the end of a step.
func (h *history) moment(step int64) time.Time {
	return h.from.Add(time.Duration(step) * h.every)
}
