package loadgen

import (
	"math/rand/v2"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/batch"
)

// repeat gives a share of the records keys that were written before. It returns
// -1 where it did: the batch is no run of keys any more.
func (w *worker) repeat(t *task, b *batch.Batch, first int64) int64 {
	share := w.e.work.Repeats
	if share <= 0 || len(w.known) < 4 {
		return first
	}
	out := first
	for i := range b.Size() {
		if w.random.Float64() >= share {
			continue
		}
		if old := w.known[w.random.IntN(len(w.known))]; old.ground == t.ground {
			b.StampOne(i, old.first+int64(w.random.IntN(t.shape.Size)))
			out = -1
		}
	}
	return out
}

// existing chooses keys that were acknowledged; a delete takes them away.
// Where records were written beforehand they are everybody's, else those of the
// connection itself: no other works on them at the same time.
func (w *worker) existing(t *task) (int64, bool) {
	if w.e.plan.primed {
		w.e.pool.Lock()
		defer w.e.pool.Unlock()
		return choose(&w.e.pool.known, t, w.random)
	}
	return choose(&w.known, t, w.random)
}

func choose(known *[]written, t *task, random *rand.Rand) (int64, bool) {
	all := *known
	from := 0
	if len(all) > 0 {
		from = random.IntN(len(all))
	}
	for i := range all {
		at := (from + i) % len(all)
		if k := all[at]; k.ground == t.ground {
			if t.shape.Operation == rpc.OperationDelete {
				all[at] = all[len(all)-1]
				*known = all[:len(all)-1]
			}
			return k.first, true
		}
	}
	return 0, false
}

// remember keeps keys that were acknowledged.
func (w *worker) remember(t *task, first int64) {
	if first < 0 || w.e.remembered == 0 || t.own || !t.creates() {
		return
	}
	k := written{t.ground, first}
	if len(w.known) < w.e.remembered {
		w.known = append(w.known, k)
	} else if !w.e.plan.primed {
		w.known[w.random.IntN(len(w.known))] = k
	}
}
