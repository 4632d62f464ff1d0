package destsim

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// whenCut begins both ways of DUR-004.
const whenCut = "when the client goes away in the middle of the reply to the first batch of 20 or more records of a sync run, "

// cutReplies is DUR-004: a destination that does not bear it when the client goes away in
// the middle of a reply and sends the batch again. It looks at one batch of a sync run, so
// that a load is not held up by its waiting.
type cutReplies struct {
	takesBack bool

	runs    byRun[bool] // sync runs that had their batch
	sent    shared[fingerprint, *delivery]
	watched perCall[*delivery] // the batch that may be cut
	again   perCall[bool]      // the batch was cut before
}

// delivery is one batch and what became of its reply.
type delivery struct {
	content fingerprint
	answer  []byte
	settled chan struct{} // closed when the client has taken the reply or has gone
	gone    bool
	undo    []undo // of the second half, in order
}

// undo is how a record is left: as it was before, or, when it was not there,
// with its identifier alone.
type undo struct {
	table            *store.Table
	field, key, data []byte
}

func (k *cutReplies) seams() seams {
	return seams{batch: k.batch, rows: k.rows, write: k.write, answered: k.again.forget}
}

func (k *cutReplies) batch(c *call, b *batch) {
	if b.Len() < cutBatch {
		return
	}
	content := b.fingerprint(0, b.Len())
	d, mine := k.claim(content, b.Plan.SyncRunID)
	switch {
	case mine:
		k.watched.set(c, d)
	case d == nil || !d.wait(c):
	case k.takesBack:
		c.answer(json.RawMessage(d.answer))
	default:
		k.again.set(c, true)
	}
}

// claim gives the earlier delivery of the same content, or a new one when this
// is the first such batch of its sync run.
func (k *cutReplies) claim(content fingerprint, run int64) (d *delivery, mine bool) {
	if d = k.sent.get(content); d != nil {
		return d, false
	}
	k.runs.change(run, func(had bool) bool { mine = !had; return true })
	if mine {
		d = &delivery{content: content, settled: make(chan struct{})}
	}
	return d, mine
}

// wait reports whether the client of the first delivery has gone.
func (d *delivery) wait(c *call) bool {
	t := time.NewTimer(2 * c.sim.leaving())
	defer t.Stop()
	select {
	case <-d.settled:
		return d.gone
	case <-t.C:
	case <-c.r.Context().Done():
	case <-c.sim.life.Done():
	}
	return false
}

// leaving is for how long half of a reply waits for the client to go away
// (200 ms).
func (s *Sim) leaving() time.Duration { return 4 * s.delays.Meet }

// rows notes how the second half stood, and does not find what was cut before.
func (k *cutReplies) rows(c *call, r *record, rows store.Rows) store.Rows {
	rows = blind(func(r *record) bool {
		return k.again.get(c) && r.operation != rpc.OperationUpdate && r.operation != rpc.OperationDelete
	}).rows(c, r, rows)
	d := k.watched.get(c)
	if d == nil || r.index < r.batch.Len()/2 {
		return rows
	}
	note := func(data []byte) {
		d.undo = append(d.undo, undo{r.object.table, r.active.quoted, bytes.Clone(r.key), bytes.Clone(data)})
	}
	return changedRows{
		Rows: rows,
		put: func(old *store.Row, data []byte) error {
			if old != nil {
				note(old.Data)
			} else {
				note(encodeCells([]cell{{r.active, r.key}}))
			}
			return rows.Put(old, data)
		},
		remove: func(old *store.Row) error { note(old.Data); return rows.Remove(old) },
	}
}

// write sends the reply in two halves. The delivery is known before the first
// byte leaves: the client may be faster with its next call than we are.
func (k *cutReplies) write(c *call, h *httpReply) {
	d := k.watched.take(c)
	if d == nil || c.err != nil {
		return
	}
	d.answer = bytes.Clone(c.result)
	k.sent.set(d.content, d)
	h.stall, h.stallAt = c.sim.leaving(), onWire(h)/2
	h.stalled = func(gone bool) { k.settle(c.sim, d, gone) }
}

func (k *cutReplies) settle(s *Sim, d *delivery, gone bool) {
	switch {
	case !gone:
		k.sent.forget(d.content)
	case k.takesBack:
		s.restoreRows(d.undo)
	}
	d.gone = gone
	close(d.settled)
}

// restoreRows leaves rows as the list says; a simulator that is closed cannot.
func (s *Sim) restoreRows(list []undo) {
	_ = s.write(func(u store.Unit) error {
		for _, before := range slices.Backward(list) {
			if err := putRow(u, before.table, before.field, before.key, before.data); err != nil {
				return err
			}
		}
		return nil
	})
}
