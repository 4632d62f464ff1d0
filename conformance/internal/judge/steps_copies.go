package judge

import (
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// valuesOfOneBatch: parallel batches with the same keys may come in any order,
// but a record must be one of them whole.
func (sc *Scenario) valuesOfOneBatch() error {
	parts := sc.Parallel.Copies
	if err := sc.NeedReadback(); err != nil {
		return err
	}
	if !sc.acceptedTwice() {
		return sc.noneAccepted() // one batch alone shows nothing of several
	}
	seen, err := sc.Observe(parts[0])
	if err != nil {
		return err
	}
	for i, r := range parts[0] {
		got := seen[exchange.KeyText(r.Key)]
		whole := slices.ContainsFunc(parts, func(p []*write.Record) bool {
			e := write.AsSent(p[i])
			return !slices.ContainsFunc(slices.Collect(maps.Keys(e.Values)), func(name string) bool { return sc.fieldDiffers(e, name, got) })
		})
		if got.Count > 0 && whole {
			sc.Saw(conformance.SeenStored, 1)
		}
		if got.Count > 0 && !whole {
			sc.BrokenAs(sc.strangeValue(parts, i, got), rpc.OperationUpsert, "all values of "+string(r.Key)+" from one of the parallel batches", "a mixture: "+shown(got), sc.ReplyFor(r))
		}
	}
	return sc.Held()
}

// acceptedTwice reports whether some record was accepted from two of the batches.
func (sc *Scenario) acceptedTwice() bool {
	times := map[model.Place]int{}
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if b.Succeeded(r) {
				times[r.Place()]++
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
func (sc *Scenario) strangeValue(parts [][]*write.Record, i int, got write.Observed) string {
	for name := range parts[0][i].Values {
		sent := slices.ContainsFunc(parts, func(p []*write.Record) bool {
			return !sc.fieldDiffers(write.AsSent(p[i]), name, got)
		})
		if !sent {
			return "value of " + name
		}
	}
	return ""
}

func (sc *Scenario) notesStored() error {
	seen, err := sc.Observe(write.RecordsOf(sc.expectations(exists)))
	if err != nil {
		return err
	}
	first := sc.History[0].Records[0]
	same := true
	for name := range first.Values {
		same = same && !sc.fieldDiffers(write.AsSent(first), name, seen[exchange.KeyText(first.Key)])
	}
	if same {
		sc.Note("an older batch that is sent again after a newer one wins: the last arrival counts")
	} else {
		sc.Note("an older batch that is sent again after a newer one leaves the newer values")
	}
	return nil
}
