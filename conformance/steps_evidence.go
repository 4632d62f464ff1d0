package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// evidenceSteps judge what the destination holds: by read-back, else by witness
// operations, else they are INCONCLUSIVE.
func evidenceSteps() []definition {
	return []definition{
		step(`^every record is stored exactly or refused$`, func(w *world) any { return w.storedOrRefused }),
		step(`^no (record|copy in another object) exists$`, func(w *world) any { return w.noneThere }),
		step(`^every acknowledged record exists once$`, func(w *world) any { return w.existOnce }),
		step(`^(every record|everything else) is unchanged by the last batch$`, func(w *world) any { return w.unchanged }),
		step(`^every record has the values of one batch$`, func(w *world) any { return w.valuesOfOneBatch }),
	}
}

// unanswered reports latest batches that crashed as a whole: an odd record may
// fail, its batch may not. The error of a lone record is a refusal of it.
func (w *world) unanswered() {
	for _, b := range w.latest {
		lone := len(b.records) == 1 && b.reply.isError()
		if !b.answered() && !lone {
			w.brokenFor(b.operation, "a result for each record", b.reply.short(), b.reply)
		}
	}
}

// expectations are the records of the latest batches with what must be stored.
func (w *world) expectations(want func(*expected) bool) []*expected {
	var out []*expected
	for _, e := range w.model.all() {
		if e.known && want(e) && slices.ContainsFunc(w.sets, func(s set) bool {
			return slices.ContainsFunc(s.records, func(r *record) bool { return r.place() == e.record.place() })
		}) {
			out = append(out, e)
		}
	}
	return out
}

func exists(e *expected) bool { return e.exists }

func recordsOf(es []*expected) []*record {
	out := make([]*record, len(es))
	for i, e := range es {
		out[i] = e.record
	}
	return out
}

func (w *world) storedOrRefused() error {
	w.unanswered()
	if err := w.held(); err != nil {
		return err
	}
	due := w.expectations(exists)
	if len(due) == 0 {
		return w.allRefused()
	}
	if w.readback == nil {
		if w.valuesMatter {
			return inconclusive("readback", "only a read-back can tell which values are stored")
		}
		return w.witnessed(recordsOf(due), true)
	}
	seen, err := w.observeUntil(recordsOf(due), func(s map[string]observed) bool { return len(w.differences(due, s)) == 0 })
	if err != nil {
		return err
	}
	for _, d := range w.differences(due, seen) {
		w.brokenFor(w.lastOperation(), d.expected, d.actual, w.replyFor(d.record))
	}
	w.proof("%d records read back", len(due))
	return w.held()
}

// allRefused: odd values may all be refused; that ordinary records are refused
// shows nothing of what the endpoint does with those that it accepts.
func (w *world) allRefused() error {
	if !w.valuesMatter {
		return inconclusive("fixtures", "every record was refused: give values that the endpoint accepts under fixtures")
	}
	w.proof("every record was refused")
	return nil
}

// difference is one deviation of the store from what was acknowledged.
type difference struct {
	record           *record
	expected, actual string
}

func (w *world) differences(due []*expected, seen map[string]observed) []difference {
	var out []difference
	missing := 0
	for _, e := range due {
		got := seen[keyText(e.record.key)]
		if got.count == 0 {
			missing++
			if missing <= 3 {
				out = append(out, difference{e.record, "the acknowledged record " + clip(string(e.record.key), 80) + " in the destination", "it is not there"})
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(e.values)) {
			if d := w.fieldDiffers(e, name, got); d != "" {
				out = append(out, difference{e.record, fmt.Sprintf("%s of %s stored as %s", name, clip(string(e.record.key), 60), clip(string(e.values[name]), 120)), d})
			}
		}
	}
	if missing > 3 {
		out[0].actual += fmt.Sprintf("; %d of %d acknowledged records are missing", missing, len(due))
	}
	return out
}

func (w *world) fieldDiffers(e *expected, name string, got observed) string {
	f, ok := e.record.object.field(name)
	if !ok {
		f = newField(name)
	}
	raw, ok := got.fields[name]
	if !ok {
		if string(e.values[name]) == "null" {
			return "" // hooks may leave null fields out
		}
		return "the field is missing"
	}
	same, note := sameValue(f, e.values[name], raw)
	if note != "" {
		w.note("%s: %s", name, note)
	}
	if same {
		return ""
	}
	return "it is " + clip(string(raw), 120)
}

func (w *world) lastOperation() string {
	if len(w.latest) == 0 {
		return ""
	}
	return w.latest[len(w.latest)-1].operation
}

// replyFor is the reply to the last batch that carried a record.
func (w *world) replyFor(r *record) *reply {
	for _, b := range slices.Backward(w.batches) {
		if slices.ContainsFunc(b.records, func(o *record) bool { return o.place() == r.place() }) {
			return b.reply
		}
	}
	return nil
}

func (w *world) noneThere(what string) error {
	if what == "record" {
		return w.noneExists()
	}
	return w.nowhereElse()
}

// noneExists: none of the records of the scenario may be in the destination.
func (w *world) noneExists() error {
	var records []*record
	for _, s := range w.sets {
		records = append(records, s.records...)
	}
	if w.readback == nil {
		return w.witnessed(records, false)
	}
	absent := func(s map[string]observed) bool { return len(s) == 0 }
	seen, err := w.observeUntil(records, absent)
	if err != nil {
		return err
	}
	for _, r := range records {
		if got, ok := seen[keyText(r.key)]; ok && got.count > 0 {
			w.brokenFor(w.lastOperation(), "no record "+string(r.key)+" in the destination", "it is there", w.replyFor(r))
		}
	}
	w.proof("%d keys read back", len(records))
	return w.held()
}

func (w *world) existOnce() error {
	due := w.expectations(exists)
	if len(due) == 0 {
		return w.allRefused()
	}
	if w.readback == nil {
		return inconclusive("readback", "only a read-back can count the copies of a record")
	}
	seen, err := w.observe(recordsOf(due))
	if err != nil {
		return err
	}
	for _, e := range due {
		if n := seen[keyText(e.record.key)].count; n != 1 {
			w.brokenFor(w.lastOperation(), "one record "+string(e.record.key), fmt.Sprintf("%d copies of it", n), w.replyFor(e.record))
		}
	}
	w.proof("%d records counted", len(due))
	return w.held()
}

// unchanged: "everything else" is what the last batch did not name, records and
// fields; "every record" includes those that it named, as in a reported skip.
func (w *world) unchanged(what string) error {
	if what == "everything else" {
		return w.compareAll(w.model)
	}
	w.unanswered()
	if err := w.held(); err != nil {
		return err
	}
	return w.compareAll(w.modelBefore)
}

// compareAll reads every record of the scenario back and compares it with a
// model, absent ones included.
func (w *world) compareAll(m *model) error {
	if err := w.needReadback(); err != nil {
		return err
	}
	var known []*expected
	for _, e := range m.all() {
		if e.known {
			known = append(known, e)
		}
	}
	seen, err := w.observe(recordsOf(known))
	if err != nil {
		return err
	}
	var due []*expected
	for _, e := range known {
		if e.exists {
			due = append(due, e)
		}
	}
	if len(due) == 0 {
		return inconclusive("fixtures", "no record was there before the last batch, so that none could be changed by it")
	}
	for _, d := range w.differences(due, seen) {
		w.brokenFor(w.lastOperation(), d.expected, d.actual, w.replyFor(d.record))
	}
	w.proof("%d records read back", len(known))
	return w.held()
}

func (w *world) nowhereElse() error {
	if err := w.needReadback(); err != nil {
		return err
	}
	due := w.expectations(exists)
	looked := 0
	for _, o := range w.catalog.objects {
		if o.APIName == w.object.APIName {
			continue
		}
		for _, id := range o.identifiers() {
			var elsewhere []*record
			for _, e := range due {
				if e.record.id.Type == id.Type {
					elsewhere = append(elsewhere, &record{object: o, id: id, key: e.record.key})
				}
			}
			if len(elsewhere) == 0 {
				continue
			}
			seen, err := w.observe(elsewhere)
			if err != nil {
				return err
			}
			looked += len(elsewhere)
			for _, r := range elsewhere {
				if seen[keyText(r.key)].count > 0 {
					w.brokenFor(w.lastOperation(), fmt.Sprintf("%s in %q only", r.key, w.object.APIName), fmt.Sprintf("%q holds it too", o.APIName), w.replyFor(due[0].record))
				}
			}
		}
	}
	if looked == 0 {
		return notApplicable("no other object has an identifier of the same type")
	}
	w.proof("%d keys read back from other objects", looked)
	return w.held()
}

// valuesOfOneBatch: parallel batches with the same keys may come in any order,
// but a record must be one of them whole.
func (w *world) valuesOfOneBatch() error {
	parts, _ := w.vars["copies"].([][]*record)
	if err := w.needReadback(); err != nil {
		return err
	}
	seen, err := w.observe(parts[0])
	if err != nil {
		return err
	}
	for i, r := range parts[0] {
		got := seen[keyText(r.key)]
		whole := slices.ContainsFunc(parts, func(p []*record) bool {
			e := &expected{record: p[i], values: p[i].values}
			return !slices.ContainsFunc(slices.Collect(maps.Keys(e.values)), func(name string) bool { return w.fieldDiffers(e, name, got) != "" })
		})
		if got.count > 0 && !whole {
			w.brokenFor(rpc.OperationUpsert, "all values of "+string(r.key)+" from one of the parallel batches", "a mixture: "+shown(got), w.replyFor(r))
		}
	}
	return w.held()
}

func shown(o observed) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		parts = append(parts, name+"="+clip(string(o.fields[name]), 40))
	}
	return clip(strings.Join(parts, " "), 240)
}

func (w *world) notesStored() error {
	seen, err := w.observe(recordsOf(w.expectations(exists)))
	if err != nil {
		return err
	}
	first := w.history[0].records[0]
	same := true
	for name := range first.values {
		e := &expected{record: first, values: first.values}
		same = same && w.fieldDiffers(e, name, seen[keyText(first.key)]) == ""
	}
	if same {
		w.note("an older batch that is sent again after a newer one wins: the last arrival counts")
	} else {
		w.note("an older batch that is sent again after a newer one leaves the newer values")
	}
	return nil
}
