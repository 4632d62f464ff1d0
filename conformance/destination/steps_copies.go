package destination

import (
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

// valuesOfOneBatch: parallel batches with the same keys may come in any order,
// but a record must be one of them whole.
func (sc *scenario) valuesOfOneBatch() error {
	parts := sc.parallel.copies
	if err := sc.needReadback(); err != nil {
		return err
	}
	if !sc.acceptedTwice() {
		return sc.noneAccepted() // one batch alone shows nothing of several
	}
	seen, err := sc.observe(parts[0])
	if err != nil {
		return err
	}
	for i, r := range parts[0] {
		got := seen[exchange.KeyText(r.key)]
		whole := slices.ContainsFunc(parts, func(p []*record) bool {
			e := asSent(p[i])
			return !slices.ContainsFunc(slices.Collect(maps.Keys(e.Values)), func(name string) bool { return sc.fieldDiffers(e, name, got) })
		})
		if got.count > 0 && whole {
			sc.Saw(conformance.SeenStored, 1)
		}
		if got.count > 0 && !whole {
			sc.brokenAs(sc.strangeValue(parts, i, got), rpc.OperationUpsert, "all values of "+string(r.key)+" from one of the parallel batches", "a mixture: "+shown(got), sc.replyFor(r))
		}
	}
	return sc.Held()
}

// acceptedTwice reports whether some record was accepted from two of the batches.
func (sc *scenario) acceptedTwice() bool {
	times := map[place]int{}
	for _, b := range sc.latest {
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
func (sc *scenario) strangeValue(parts [][]*record, i int, got observed) string {
	for name := range parts[0][i].values {
		sent := slices.ContainsFunc(parts, func(p []*record) bool {
			return !sc.fieldDiffers(asSent(p[i]), name, got)
		})
		if !sent {
			return "value of " + name
		}
	}
	return ""
}

func (sc *scenario) notesStored() error {
	seen, err := sc.observe(recordsOf(sc.expectations(exists)))
	if err != nil {
		return err
	}
	first := sc.history[0].records[0]
	same := true
	for name := range first.values {
		same = same && !sc.fieldDiffers(asSent(first), name, seen[exchange.KeyText(first.key)])
	}
	if same {
		sc.Note("an older batch that is sent again after a newer one wins: the last arrival counts")
	} else {
		sc.Note("an older batch that is sent again after a newer one leaves the newer values")
	}
	return nil
}
