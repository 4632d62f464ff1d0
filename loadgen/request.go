package loadgen

import (
	"bytes"

	"github.com/destkit/destkit/loadgen/internal/batch"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// requestOf is the request of a batch.
func requestOf(b *batch.Batch) wire.Request { return wire.Request{Wire: b.Wire(), Body: b.Body()} }

// exampleOf is an example of an error of a whole batch.
func exampleOf(b *batch.Batch, at int64) Example {
	return Example{RequestID: string(bytes.Trim(b.ID(), `"`)), At: float64(at) / 1e9}
}

// due is the sample of a request that is sent now. intended is when it was due; 0: now.
func (w *worker) due(intended int64, waited bool) sample {
	start := w.e.clock.Now()
	if intended == 0 {
		intended = start
	}
	return sample{intended: intended, start: start, waited: waited}
}

// exchange sends one request and has its reply. Meanwhile the watch may break the call.
func (w *worker) exchange(r wire.Request, start int64) (rep wire.Reply, err error) {
	w.started.Store(max(start, 1))
	rep, err = w.line.Call(r, start)
	if w.started.Swap(0) < 0 {
		w.breaks.Lock() // the watch is at work on this connection
		w.line.Close()
		w.breaks.Unlock()
	}
	return rep, err
}

// finish closes a sample; false: the end of the run has broken the call, and what the reply
// would have been is not known.
func (w *worker) finish(s *sample, rep wire.Reply, err error) bool {
	s.connected = rep.Dialled > 0
	s.end = w.e.clock.Now()
	if err != nil && w.broken() {
		w.e.cut.Add(1)
		return false
	}
	s.failed, s.untimed = err != nil, untimed(err)
	return true
}

// keep hands a sample to whoever collects them.
func (w *worker) keep(s sample) {
	w.mu.Lock()
	w.samples = append(w.samples, s)
	w.mu.Unlock()
}
