package pace

import (
	"context"
	"time"
)

// Source brings the shares of several processes together: all of them exchange
// with the one Window of a limit, wherever it is kept (spec 8: the limit is the
// connection's, whoever runs).
type Source interface {
	// Exchange hands a report to the window and brings what it grants. All moments
	// are those of this machine's clock, with a monotonic reading. After an error
	// it is unknown whether the report has arrived.
	Exchange(ctx context.Context, r Report) (Grant, error)
}

// Units are so many requests, or records, at a moment.
type Units struct {
	At time.Time
	N  int64
}

// Report is what a share tells the window, and what it asks for.
type Report struct {
	// Holder is whom the window knows the share as. A share that has lost what it
	// held goes on under another number, and what it held before lapses.
	Holder uint64
	// Sent is what was sent since the last report, of what was granted; Stray what
	// was sent after it had lapsed, which counts on top.
	Sent, Stray []Units
	// Keep is what is left of all that was granted: Ready units that wait to be
	// let go, and those that are on their way. Whatever is neither here nor in
	// Sent is given back.
	Keep, Ready int64
	// Want is how many units are wanted beyond those, Least how many of them have
	// to come at one moment: the records of a batch.
	Want, Least int64
	// Limit replaces the limit; 0 leaves it. Known is the last one heard of, for a
	// window that has lost its memory; 0 is none.
	Limit, Known int64
	// Reset ends a pause, and Paused begins one: nothing is sent before that
	// moment. The zero moment says nothing.
	Reset  bool
	Paused time.Time
}

// Grant is the answer of the window.
type Grant struct {
	// Lapsed: the holder has lost all it held, and gets nothing under this number.
	Lapsed bool
	// Chunks may be let go, each from its moment on, in this order.
	Chunks []Units
	// Until is the end of all that is held, old and new: what is not sent by then
	// counts as sent, and must not be sent any more.
	Until time.Time
	// Limit and Paused are what holds for all.
	Limit  int64
	Paused time.Time
	// Again is when it is worth while to ask for what is lacking; zero when
	// nothing lacks.
	Again time.Time
}
