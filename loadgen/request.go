package loadgen

import "bytes"

// request is one request that is ready to be sent: a batch, or a call of a service's
// API. It is good until the next one of its connection.
type request struct {
	wire []byte // all of it: what a link writes
	// For net/http: body without the head, method and the path with its query. Without a
	// method it is a POST to the URL of the endpoint.
	body           []byte
	method, target string
}

// request of a batch.
func (b *batch) request() request { return request{wire: b.wire(), body: b.body()} }

// example of an error of the whole batch.
func (b *batch) example(at int64) Example {
	return Example{RequestID: string(bytes.Trim(b.id(), `"`)), At: float64(at) / 1e9}
}

// due is the sample of a request that is sent now. intended is when it was due; 0: now.
func (w *worker) due(intended int64, waited bool) sample {
	start := w.e.clock.now()
	if intended == 0 {
		intended = start
	}
	return sample{intended: intended, start: start, waited: waited}
}

// exchange sends one request and has its reply. Meanwhile the watch may break the call.
func (w *worker) exchange(r request, start int64) (rep reply, err error) {
	w.started.Store(max(start, 1))
	rep, err = w.line.call(r, start)
	if w.started.Swap(0) < 0 {
		w.breaks.Lock() // the watch is at work on this connection
		w.line.close()
		w.breaks.Unlock()
	}
	return rep, err
}

// finish closes a sample; false: the end of the run has broken the call, and what the reply
// would have been is not known.
func (w *worker) finish(s *sample, rep reply, err error) bool {
	s.connected = rep.dialled > 0
	s.end = w.e.clock.now()
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
