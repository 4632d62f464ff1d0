package conformance

import (
	"maps"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
)

// valuesOfOneBatch: parallel batches with the same keys may come in any order,
// but a record must be one of them whole.
func (w *world) valuesOfOneBatch() error {
	parts := w.parallel.copies
	if err := w.needReadback(); err != nil {
		return err
	}
	if !w.acceptedTwice() {
		return w.noneAccepted() // one batch alone shows nothing of several
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
		if got.count > 0 && whole {
			w.Saw(SeenStored, 1)
		}
		if got.count > 0 && !whole {
			w.brokenAs(w.strangeValue(parts, i, got), rpc.OperationUpsert, "all values of "+string(r.key)+" from one of the parallel batches", "a mixture: "+shown(got), w.replyFor(r))
		}
	}
	return w.held()
}

// acceptedTwice reports whether some record was accepted from two of the batches.
func (w *world) acceptedTwice() bool {
	times := map[place]int{}
	for _, b := range w.latest {
		for _, r := range b.records {
			if b.succeeded(r) {
				times[r.place()]++
			}
		}
	}
	for _, n := range times {
		if n > 1 {
			return true
		}
	}
	return false
}

// strangeValue names a field whose value is none of those that were sent: it is
// stored wrongly, not mixed up. "" for a mixture.
func (w *world) strangeValue(parts [][]*record, i int, got observed) string {
	for name := range parts[0][i].values {
		sent := slices.ContainsFunc(parts, func(p []*record) bool {
			return w.fieldDiffers(&expected{record: p[i], values: p[i].values}, name, got) == ""
		})
		if !sent {
			return "value of " + name
		}
	}
	return ""
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
