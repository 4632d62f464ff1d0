package loadgen

import (
	"bytes"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// distinct bounds how many different messages of errors a connection keeps
// apart; the rest is counted together, by kind.
const distinct = 100

// noteRecord counts a record that was not acknowledged. message is raw JSON;
// the identifier is taken out of it, or every message would be another one.
func (w *worker) noteRecord(kind string, message, identifier []byte) {
	full := message
	message = wire.FirstPart(message)
	plain := bytes.Trim(identifier, `"`)
	w.scratch = append(append(w.scratch[:0], kind...), ' ')
	if i := bytes.Index(message, plain); len(plain) > 0 && i >= 0 {
		w.scratch = append(append(w.scratch, message[:i]...), "{identifier}"...)
		w.scratch = append(w.scratch, message[i+len(plain):]...)
	} else {
		w.scratch = append(w.scratch, message...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tally[string(w.scratch)]
	if t == nil {
		text := records.Message(kind, w.scratch[len(kind)+1:])
		if len(message) < len(full) {
			text = records.Message(kind, append(bytes.TrimRight(bytes.Clone(message), `\`), '"'))
		}
		t = w.newTally(string(w.scratch), kind, foreign.Clip(w.e.end.Redact(text), wire.LongestMessage))
		t.Example = Example{
			Identifier: w.e.end.Redact(foreign.Clip(identifier, wire.LongestQuote)), RequestID: string(bytes.Trim(w.check.Batch.ID(), `"`)), At: float64(w.e.clock.Now()) / 1e9,
		}
	}
	t.Count++
}

// newTally makes the count of a new message. The lock is held.
func (w *worker) newTally(key, kind, message string) *tally {
	if len(w.tally) >= distinct {
		key, message = kind, "(other messages)"
		if t := w.tally[key]; t != nil {
			return t
		}
	}
	t := &tally{Kind: kind, Message: message}
	w.tally[key] = t
	return t
}

// fail counts a request that failed as a whole.
func (w *worker) fail(err error, example Example) {
	f, ok := err.(*wire.Failure)
	if !ok {
		f = &wire.Failure{Kind: wire.KindHTTP, Message: err.Error()}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(f.Message) > 2*wire.LongestMessage { // a secret is taken out whole, before its end is cut off
		start := w.e.end.Redact(foreign.Clip(f.Message, 2*wire.LongestMessage))
		f = &wire.Failure{Kind: f.Kind, Message: foreign.Clip(start, wire.LongestMessage)}
	}
	key := f.Kind + " " + f.Message
	t := w.tally[key]
	if t == nil {
		t = w.newTally(key, f.Kind, foreign.Clip(w.e.end.Redact(f.Message), wire.LongestMessage))
		t.Example = example
	}
	t.Count++
}
