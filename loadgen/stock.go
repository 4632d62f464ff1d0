package loadgen

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/records"
)

// stock are the prepared batches of a task, taken in turn.
type stock struct {
	batches []*records.Batch
	most    int
	turn    int
	from    int    // the next row of the pool
	uses    int    // since a batch was filled
	number  uint16 // of the task, where the run is verified
}

// variants is how many batches of one kind a connection prepares: as many as all
// connections need to send every record of the pool, within a bound of memory. No
// more: batches in the cache of the processor are patched and sent twice as fast.
func (e *engine) variants(t *task) int {
	const room = 256 << 20
	connections := max(e.connections, 1)
	size := (len(t.rows[0].Text)+16)*t.shape.Size + len(t.shape.Plan) + records.HeadRoom
	pool := (len(t.rows)-1)/(t.shape.Size*connections) + 1
	return max(min(pool, 8, room/(size*len(e.current().tasks)*connections)), 1)
}

// batch is the next prepared batch of a task, or one filled from a file.
func (w *worker) batch(t *task) *records.Batch {
	if w.latest != t {
		if w.latest, w.stock = t, w.stocks[t]; w.stock == nil {
			w.stock = &stock{most: w.e.variants(t)}
			if w.e.acks != nil {
				w.stock.number = w.e.acks.register(t)
			}
			w.stocks[t] = w.stock
		}
	}
	s := w.stock
	if t.inTurn {
		if s.batches == nil {
			s.batches = []*records.Batch{records.NewBatch(t.shape, w.end.Head)}
		}
		n := int64(t.shape.Size)
		return w.draw(t, s.batches[0], int((t.turn.Add(n)-n)%int64(len(t.rows))))
	}
	if len(s.batches) < s.most {
		if s.batches == nil {
			s.from = w.random.IntN(len(t.rows))
		}
		s.batches, s.turn = append(s.batches, records.NewBatch(t.shape, w.end.Head)), len(s.batches)
		return w.next(t, s)
	}
	if s.turn++; s.turn >= len(s.batches) {
		s.turn = 0
	}
	if s.uses++; s.uses >= redraw(t.shape) && s.most*t.shape.Size < len(t.rows) {
		return w.next(t, s)
	}
	return s.batches[s.turn]
}

// redraw is after how many batches one is filled with other records of the pool:
// without it few connections at a low rate would send the same few for ever, and
// what one record in a hundred meets would meet all or none. So rarely that it
// costs about a hundredth of the sending.
func redraw(s *records.Shape) int { return max(8, s.Size/16) }

// next fills the batch whose turn it is with the next records of the pool.
func (w *worker) next(t *task, s *stock) *records.Batch {
	from := s.from
	s.from, s.uses = (from+t.shape.Size)%len(t.rows), 0
	return w.draw(t, s.batches[s.turn], from)
}

// draw fills a batch with the records of the pool from one on.
func (w *worker) draw(t *task, b *records.Batch, from int) *records.Batch {
	return w.fill(t, b, from, t.shape.Size)
}

// cut is a batch of the first n records of the one whose turn it is.
func (w *worker) cut(t *task, n int) *records.Batch {
	whole := w.stock.batches[w.stock.turn]
	return w.fill(t, records.NewBatch(t.shape, w.end.Head), whole.From, n)
}

// fill fills a batch with n records.
func (w *worker) fill(t *task, b *records.Batch, from, n int) *records.Batch {
	rows := t.rows[from:min(from+n, len(t.rows))]
	if len(rows) < n {
		rows = slices.Clone(rows)
		for len(rows) < n {
			rows = append(rows, t.rows[:min(n-len(rows), len(t.rows))]...)
		}
	}
	b.From = from
	b.Fill(w.end.Head, rows, w.id+strings.Repeat("0", records.IDCounter))
	return b
}

// repeat gives a share of the records keys that were written before. It returns
// -1 where it did: the batch is no run of keys any more.
func (w *worker) repeat(t *task, b *records.Batch, first int64) int64 {
	share := w.e.work.Repeats
	if share <= 0 || len(w.known) < 4 {
		return first
	}
	out := first
	for i := range b.Size() {
		if w.random.Float64() >= share {
			continue
		}
		if old := w.known[w.random.IntN(len(w.known))]; old.keyspace == t.keyspace {
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
		if k := all[at]; k.keyspace == t.keyspace {
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
	k := written{t.keyspace, first}
	if len(w.known) < w.e.remembered {
		w.known = append(w.known, k)
	} else if !w.e.plan.primed {
		w.known[w.random.IntN(len(w.known))] = k
	}
}
