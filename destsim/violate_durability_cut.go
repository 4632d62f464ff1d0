package destsim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// cutViolations are DUR-004: a destination that does not bear it when the
// client goes away in the middle of a reply and sends the batch again. It looks
// at one batch of a sync run, so that a load is not held up by its waiting.
func cutViolations() []violation {
	const cut = "when the client goes away in the middle of the reply to the first batch of 20 or more records of a sync run, "
	return []violation{
		keeps("DUR-004", cut+"the second half of the records loses what the batch wrote but for new identifiers, and the same batch again is acknowledged without a write", func(*Sim) seams { return (&cutReplies{takesBack: true}).seams() }),
		keeps("DUR-004.2", cut+"the same batch again adds a second copy of each record", func(*Sim) seams { return (&cutReplies{}).seams() }),
	}
}

// cutReplies watches for clients that go away.
type cutReplies struct {
	takesBack bool

	mu      sync.Mutex
	runs    map[int64]bool // sync runs that had their batch
	sent    map[fingerprint]*delivery
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
	return seams{batch: k.batch, rows: k.rows, write: k.write, answered: func(c *call) { k.again.take(c) }}
}

func (k *cutReplies) batch(c *call, b *batch) *rpc.Error {
	if b.Len() < cutBatch {
		return nil
	}
	content := b.fingerprint(b.all()...)
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
	return nil
}

// claim gives the earlier delivery of the same content, or a new one when this
// is the first such batch of its sync run.
func (k *cutReplies) claim(content fingerprint, run int64) (d *delivery, mine bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d = k.sent[content]; d != nil || k.runs[run] {
		return d, false
	}
	if k.runs == nil {
		k.runs, k.sent = map[int64]bool{}, map[fingerprint]*delivery{}
	}
	k.runs[run] = true
	return &delivery{content: content, settled: make(chan struct{})}, true
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
	if k.again.get(c) && r.operation != rpc.OperationUpdate && r.operation != rpc.OperationDelete {
		return blindRows{rows, r}
	}
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
func (k *cutReplies) write(c *call, _ *httpReply) {
	d := k.watched.take(c)
	if d == nil || c.err != nil {
		return
	}
	d.answer = bytes.Clone(c.result)
	k.mu.Lock()
	k.sent[d.content] = d
	k.mu.Unlock()
	c.w = &halvingWriter{ResponseWriter: c.w, call: c, done: func(gone bool) { k.settle(c.sim, d, gone) }}
}

func (k *cutReplies) settle(s *Sim, d *delivery, gone bool) {
	if gone && k.takesBack {
		s.restoreRows(d.undo)
	}
	if !gone {
		k.mu.Lock()
		delete(k.sent, d.content)
		k.mu.Unlock()
	}
	d.gone = gone
	close(d.settled)
}

// restoreRows leaves rows as the list says.
func (s *Sim) restoreRows(list []undo) {
	u, err := s.store.Begin()
	if err != nil {
		return // the simulator is closed
	}
	defer u.Rollback()
	for _, before := range slices.Backward(list) {
		err = u.With(before.table, before.field, before.key, func(rows store.Rows) error {
			found, err := rows.Find(before.field, before.key)
			if err != nil {
				return err
			}
			return rows.Put(append(found, nil)[0], before.data)
		})
		if err != nil {
			return
		}
	}
	_ = u.Commit()
}

// halvingWriter flushes half of a reply and waits whether the client goes away.
type halvingWriter struct {
	http.ResponseWriter
	call *call
	done func(gone bool)
}

// Unwrap lets the reply be flushed.
func (w *halvingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *halvingWriter) Write(body []byte) (int, error) {
	done := w.done
	if w.done = nil; done == nil {
		return w.ResponseWriter.Write(body)
	}
	half := len(body) / 2
	_, err := w.ResponseWriter.Write(body[:half])
	if err == nil {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // what cannot be flushed is not seen early
		w.call.sleep(w.call.sim.leaving())
		err = w.call.r.Context().Err()
	}
	if done(err != nil); err != nil {
		return half, err
	}
	n, err := w.ResponseWriter.Write(body[half:])
	return half + n, err
}
