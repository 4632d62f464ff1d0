package executor

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// The model of the matrices: what a run has to do, derived from the rows of the
// source and the destination's answers so far, with plain maps. It shares no
// code with the executor.

// promise is an operation and its promise.
type promise struct {
	name      string // as the tables show it
	words     string
	operation string
	strategy  string // of a mirror
	skip      bool   // historical_sync_operation skip_current_records
	highWater bool   // high_water_mark_attribute
}

// promises lists the operations (spec 2.6, 4.2). All of them promise that a row
// without an identifier, or whose identifier occurs twice, is never sent; that a
// record which the run does not name as failed has arrived; and that a record
// which was acknowledged is not sent again for nothing.
func promises() []promise {
	return []promise{
		{name: "insert", operation: api.OperationInsert,
			words: "each row that the source has during a run is created once; it is not changed later, and never deleted"},
		{name: "update", operation: api.OperationUpdate,
			words: "records that the destination has get the values of their rows; none is created, none deleted"},
		{name: "upsert", operation: api.OperationUpsert,
			words: "after a run each row has a record with its values; none is deleted"},
		{name: "mirror, deletes", operation: api.OperationMirror, strategy: api.MirrorDeletes,
			words: "as upsert, and of what this sync has sent nothing is left that has no row; records of others stay"},
		{name: "mirror, nulls", operation: api.OperationMirror, strategy: api.MirrorNulls,
			words: "as upsert, a value that became null too; none is deleted"},
		{name: "mirror, swap", operation: api.OperationMirror, strategy: api.MirrorSwap,
			words: "where the destination can replace its table: it holds the valid rows and nothing else, or what it held before, never a mixture; elsewhere as mirror with deletes, and each row is sent in each run"},
		{name: "append by key", operation: api.OperationAppend,
			words: "each row that the source has during a run is added once in the life of the sync; twice only when the answer was lost"},
		{name: "append by mark", operation: api.OperationAppend, highWater: true,
			words: "each row whose moment lies between the mark and the latest moment of the source is added once; the mark never passes a row that was refused"},
		{name: "append, skip", operation: api.OperationAppend, skip: true,
			words: "rows that are there before the first run has ended are never added; later ones once, as in append by key"},
	}
}

// config is the configuration of a sync of this kind.
func (p promise) config(pairs ...string) api.SyncConfig {
	c := config(p.operation, pairs...)
	if p.strategy != "" {
		c.MirrorStrategy = api.Ptr(p.strategy)
	}
	if p.skip {
		c.HistoricalSyncOperation = api.Ptr(api.HistorySkip)
	}
	if p.highWater {
		c.HighWaterMarkAttribute = api.Ptr("at")
	}
	return c
}

// once reports operations that send a record once in its life.
func (p promise) once() bool {
	return p.operation == api.OperationInsert || p.operation == api.OperationAppend
}

// deletes reports those that remove missing records.
func (p promise) deletes() bool {
	return p.operation == api.OperationMirror && p.strategy != api.MirrorNulls
}

// row is a row of the source: the values of its columns as JSON texts.
type row map[string]string

func (r row) key() string { return r["id"] }

func (r row) at() (int64, bool) {
	at, err := strconv.ParseInt(r["at"], 10, 64)
	return at, err == nil
}

// mapped is the record of a row as one text; pairs are "column:field".
func (r row) mapped(pairs []string) map[string]string {
	out := map[string]string{}
	for _, pair := range pairs {
		column, field, _ := strings.Cut(pair, ":")
		out[field] = r[column]
	}
	return out
}

// record is mapped as one text, but for the key: the form in which the tables
// of the matrices store it.
func (r row) record(pairs []string) string {
	var b strings.Builder
	for _, pair := range pairs[1:] {
		column, field, _ := strings.Cut(pair, ":")
		b.WriteString(field)
		b.WriteByte('=')
		b.WriteString(r[column])
		b.WriteByte(';')
	}
	return b.String()
}

// contents are what a destination holds: records by key.
type contents map[string]string

// known is what the sync knows of a key.
type known struct {
	sent  bool   // it was acknowledged, and no delete since
	value string // what was acknowledged
	open  bool   // the last word on it is no success
	// unsure: a run has ended in the middle, and its log of this key is
	// unknown outside.
	unsure bool
}

// model is what a sync has done so far.
type model struct {
	promise
	keys    map[string]known
	pairs   string // of the mapping of the last run that came to its end; "" none
	ended   bool   // a run has come to its end
	doubt   bool   // a run was killed, perhaps after it had ended
	mark    int64  // high-water mark
	marked  bool
	run     int64    // the latest
	passed  []passed // runs that were killed, perhaps after they had ended
	swapped bool     // the destination replaces its table
}

// passed is a killed run by its mark: the mark holds when the run had ended.
type passed struct {
	run   int64
	mark  int64
	valid map[string]row // rows that it had to send
}

func newModel(p promise) *model { return &model{promise: p, keys: map[string]known{}} }

// task is what a run has to do.
type task struct {
	rows, invalid int64
	valid         map[string]row
	present       map[string]bool // keys that have a row, valid or not
	write, remove map[string]bool
	// What a run may additionally do, after one that ended in the middle.
	mayWrite, mayRemove map[string]bool
	skips               bool           // the rows are taken as sent
	below               map[string]row // rows below the mark of a killed run that it had to send
	top                 int64
	topped              bool
}

// see sorts out the rows that belong to the run.
func (m *model) see(rows []row) *task {
	t := &task{
		valid: map[string]row{}, present: map[string]bool{}, write: map[string]bool{}, remove: map[string]bool{},
		mayWrite: map[string]bool{}, mayRemove: map[string]bool{},
	}
	for _, r := range rows {
		if at, ok := r.at(); ok && (!t.topped || at > t.top) {
			t.top, t.topped = at, true
		}
	}
	copies, faulty := map[string]int64{}, map[string]bool{}
	for _, r := range rows {
		at, timed := r.at()
		switch {
		case m.highWater && !timed: // counted in each run, since no mark is above it
			faulty[r.key()] = true
		case m.highWater && (at >= t.top || m.marked && at < m.mark):
			continue
		}
		t.rows++
		if r.key() == "null" {
			t.invalid++
			continue
		}
		t.present[r.key()] = true
		copies[r.key()]++
		t.valid[r.key()] = r
	}
	for key, n := range copies {
		if n > 1 || faulty[key] {
			t.invalid += n
			delete(t.valid, key)
		}
	}
	return t
}

// expect returns what a run over these rows has to do.
func (m *model) expect(rows []row, pairs []string) *task {
	t := m.see(rows)
	mapping := text(pairs)
	full := !m.once() && m.pairs != "" && m.pairs != mapping && !m.doubt
	mayFull := !m.once() && m.doubt
	t.skips = m.skip && !m.ended
	for key, r := range t.valid {
		k, met := m.keys[key]
		changed := k.open || k.value != m.value(r, pairs)
		var must bool
		switch {
		case m.highWater:
			must = !k.sent || k.value != m.value(r, pairs)
		case m.once():
			must = !k.sent
		default:
			must = full || m.strategy == api.MirrorSwap || !k.sent || changed
		}
		switch {
		case met && k.unsure && !full && m.strategy != api.MirrorSwap:
			t.mayWrite[key] = true
		case must:
			t.write[key] = true
		case mayFull:
			t.mayWrite[key] = true
		}
	}
	for key, k := range m.keys {
		switch {
		case !m.deletes() || t.present[key]:
		case k.unsure:
			t.mayRemove[key] = true
		default:
			t.remove[key] = true
		}
	}
	return t
}

// countedBy is the task by which the rows of a run are counted: that of the mark, or of one that a killed
// run left although it had ended. The records of that run were acknowledged and must have arrived;
// rows that came below its mark since are no new events. A run that goes on had not ended. The runs
// after this one decide between several marks that fit.
func (m *model) countedBy(t *task, rows []row, pairs []string, read int64) *task {
	var by *task
	var fits []passed
	if t.rows == read {
		by = t
	}
	for _, p := range m.passed {
		after := *m
		after.mark, after.marked = p.mark, true
		other := after.expect(rows, pairs)
		if p.run == m.run || other.rows != read {
			continue
		}
		if fits = append(fits, p); by != nil {
			continue
		}
		by, other.below = other, map[string]row{}
		for key, r := range t.valid {
			if _, again := other.valid[key]; !again && p.valid[key] != nil && p.valid[key]["at"] == r["at"] {
				other.below[key] = r
			}
		}
	}
	m.passed = fits
	switch {
	case by == nil:
		return t
	case t.rows != read && len(fits) == 1: // then it had ended
		m.mark, m.marked = fits[0].mark, true
	}
	return by
}

// value is what reports whether a row has to be sent again.
func (m *model) value(r row, pairs []string) string {
	if m.highWater { // another moment is another event
		return r["at"]
	}
	return r.record(pairs)
}

// word is the last answer about a record that a run got.
type word struct {
	delete, success bool
}

// learn notes what became of a run: the last words about its records, and
// whether it came to its end. The words of a run that was killed are not known
// to have been written down.
func (m *model) learn(t *task, pairs []string, words map[string]word, completed, killed bool) {
	for _, set := range []map[string]bool{t.write, t.mayWrite, t.remove, t.mayRemove} {
		for key := range set {
			w, spoken := words[key]
			m.keys[key] = m.after(t, key, pairs, w, spoken, completed, killed)
			if k := m.keys[key]; !k.sent && !k.open && !k.unsure {
				delete(m.keys, key)
			}
		}
	}
	if killed {
		m.doubt = true
		if m.highWater && t.topped {
			m.passed = append(m.passed, passed{m.run, m.nextMark(t, words), t.valid})
		}
		return
	}
	if !completed {
		return
	}
	m.pairs, m.ended, m.doubt = text(pairs), true, false
	if m.highWater && t.topped {
		if mark := m.nextMark(t, words); !m.marked || mark > m.mark {
			m.mark, m.marked = mark, true
		}
	}
	// A higher mark of a killed run is kept by the runs after it.
	m.passed = slices.DeleteFunc(m.passed, func(p passed) bool { return m.marked && p.mark <= m.mark })
}

// took is learn where everything that was sent was acknowledged.
func (m *model) took(t *task, pairs []string) {
	words := map[string]word{}
	for key := range t.write {
		words[key] = word{success: true}
	}
	for key := range t.remove {
		words[key] = word{success: true, delete: true}
	}
	m.learn(t, pairs, words, true, false)
}

func (m *model) after(t *task, key string, pairs []string, w word, spoken, completed, killed bool) known {
	k := m.keys[key]
	r, valid := t.valid[key]
	switch {
	case killed, m.swapped && !completed:
		k.unsure = true
	case t.skips && completed && valid:
		return known{sent: true, value: m.value(r, pairs)}
	case t.skips:
		k.unsure = true
	case spoken && w.success && w.delete:
		return known{}
	case spoken && w.success:
		return known{sent: true, value: m.value(r, pairs)}
	case spoken:
		k.open, k.unsure = true, false
	case completed && valid: // it was in doubt, and turned out to be as it should
		return known{sent: true, value: m.value(r, pairs)}
	case completed:
		return known{}
	default:
		k.unsure = true
	}
	return k
}

// nextMark is the top, unless something below it was refused.
func (m *model) nextMark(t *task, words map[string]word) int64 {
	mark := t.top
	for key, w := range words {
		if at, _ := t.valid[key].at(); !w.success && at < mark {
			mark = at
		}
	}
	return mark
}

// either is the union of two sets.
func either(a, b map[string]bool) map[string]bool {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
