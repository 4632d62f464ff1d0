package loadgen

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/records"
)

// ack is what became of consecutive records of one batch: the keys key, key+1, …
// got the rows row, row+1, … of a task. It has no pointers, since there may be many.
type ack struct {
	start, end int64 // of the request, on the clock of the run
	key        int64 // its number; of a file with its own identifiers, that of the row
	row, count int32
	task       uint16
	state      records.State
}

// ackBytes is what one of them takes.
const ackBytes = 40

// mostAcks bounds what a run remembers to verify it: beyond it, fewer keys are.
const mostAcks = 64 << 20

// acks is what all connections remember of the keys that are chosen to be verified.
// Every write of a chosen key is remembered, none of the others has to be.
type acks struct {
	used   atomic.Int64 // bytes of all connections
	most   int64
	salt   uint64        // of the run: another one has other keys verified
	below  atomic.Uint64 // keys whose hash is below it are chosen; allKeys: all
	next   atomic.Int64  // bytes at which fewer are chosen again
	mu     sync.Mutex
	tasks  []*task
	halved bool
}

const allKeys = math.MaxUint64

// newAcks begins to remember a share of the keys, from 0 to 1, which the seed chooses.
func newAcks(share float64, seed uint64) *acks {
	a := &acks{most: mostAcks, salt: seed * 0x9e3779b97f4a7c15}
	a.below.Store(threshold(share))
	a.next.Store(a.most)
	return a
}

func threshold(share float64) uint64 {
	if share >= 1 {
		return allKeys
	}
	return uint64(share * math.MaxUint64)
}

// share is how many of the keys are chosen, 0 to 1.
func (a *acks) share() float64 { return float64(a.below.Load()) / math.MaxUint64 }

// register gives a task its number.
func (a *acks) register(t *task) uint16 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := slices.Index(a.tasks, t); at >= 0 {
		return uint16(at)
	}
	a.tasks = append(a.tasks, t)
	return uint16(len(a.tasks) - 1)
}

// halve chooses half as many keys. Connections forget the others at their next
// batch, so that it takes a while until less is used.
func (a *acks) halve(used int64) {
	at := a.next.Load()
	if used > at && a.next.CompareAndSwap(at, used+a.most/8) {
		a.below.Store(a.below.Load() / 2)
		a.mu.Lock()
		a.halved = true
		a.mu.Unlock()
	}
}

// chosen reports whether a key is verified. It depends on nothing but the number and the
// seed, so that all connections choose the same keys.
func (a *acks) chosen(key int64, below uint64) bool {
	if below == allKeys {
		return true
	}
	h := uint64(key) + 0x9e3779b97f4a7c15 ^ a.salt
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h^h>>31 < below
}

func (a *acks) anyChosen(of *ack, below uint64) bool {
	for i := range int64(of.count) {
		if a.chosen(of.key+i, below) {
			return true
		}
	}
	return false
}

// acknowledge remembers what became of a batch.
func (w *worker) acknowledge(t *task, b *records.Batch, start, end int64, failed bool) {
	log := w.e.acks
	below := log.below.Load()
	if below != w.kept {
		w.forget(below)
	}
	before := cap(w.acks)
	w.runs(t, b, failed, func(a ack) {
		if below != allKeys && !log.anyChosen(&a, below) {
			return
		}
		a.start, a.end, a.task = start, end, w.stock.number
		w.acks = append(w.acks, a)
	})
	if more := cap(w.acks) - before; more > 0 {
		if used := log.used.Add(int64(more) * ackBytes); used > log.most {
			log.halve(used)
		}
	}
}

// runs divides a batch into runs of consecutive keys with one state.
func (w *worker) runs(t *task, b *records.Batch, failed bool, take func(ack)) {
	n, rows, wrong, state := b.Size(), len(t.rows), w.check.Bad, records.Acked
	if failed {
		wrong, state = nil, records.Unknown
	}
	if len(wrong) == 0 && len(b.Moved) == 0 && !t.own && b.From+n <= rows {
		take(ack{key: b.First, row: int32(b.From), count: int32(n), state: state})
		return
	}
	states, keys := make([]records.State, n), make([]int64, n)
	for i := range n {
		states[i], keys[i] = state, b.First+int64(i)
		if t.own {
			keys[i] = int64((b.From + i) % rows)
		}
	}
	for _, x := range wrong {
		states[x.Record] = max(states[x.Record], x.State)
	}
	for _, m := range b.Moved {
		keys[m.Record] = m.Key
	}
	var run ack
	for i := range n {
		row := int32((b.From + i) % rows)
		if run.count > 0 && keys[i] == run.key+int64(run.count) && row == run.row+run.count && states[i] == run.state {
			run.count++
			continue
		}
		if run.count > 0 {
			take(run)
		}
		run = ack{key: keys[i], row: row, count: 1, state: states[i]}
	}
	take(run)
}

// forget drops the writes of keys that are not chosen any more.
func (w *worker) forget(below uint64) {
	w.kept = below
	before := cap(w.acks)
	kept := slices.DeleteFunc(w.acks, func(a ack) bool { return !w.e.acks.anyChosen(&a, below) })
	w.acks = append(make([]ack, 0, len(kept)+len(kept)/4), kept...)
	w.e.acks.used.Add(int64(cap(w.acks)-before) * ackBytes)
}

// remembers gives what a run remembers, by the keyspace and in the order of the keys, and
// forgets it.
func (e *engine) remembers() map[*keyspace][]ack {
	all := map[*keyspace][]ack{}
	for _, w := range e.workers {
		for _, a := range w.acks {
			g := e.acks.tasks[a.task].keyspace
			all[g] = append(all[g], a)
		}
		w.acks = nil
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b ack) int {
			switch {
			case a.key != b.key:
				if a.key < b.key {
					return -1
				}
				return 1
			case a.start < b.start:
				return -1
			case a.start > b.start:
				return 1
			}
			return 0
		})
	}
	return all
}

// deletes reports batches that remove records.
func (t *task) deletes() bool { return t.shape.Operation == rpc.OperationDelete }
