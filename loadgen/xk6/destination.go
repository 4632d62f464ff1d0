package xk6

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"go.k6.io/k6/errext"
	"go.k6.io/k6/js/common"
	"go.k6.io/k6/lib"
	"go.k6.io/k6/lib/netext"

	"github.com/destkit/destkit/loadgen"
)

// destination is what destkit.destination gives a script: one connection of a VU
// to a target that all VUs share.
type destination struct {
	instance *instance
	shared   *shared
	sender   *loadgen.Sender
}

// Result is what syncBatch gives a script, under the names of the tags.
type Result struct {
	// OK: every record has one result with success.
	OK        bool   `js:"ok"`
	ID        string `js:"id"` // of the request
	Object    string `js:"object"`
	Operation string `js:"operation"`
	// Status of HTTP; 0 where there was no whole reply.
	Status       int     `js:"status"`
	Records      int     `js:"records"`
	Acknowledged int     `js:"acknowledged"`
	Duration     float64 `js:"duration"` // milliseconds
	// Errors by message, the most frequent first.
	Errors []Error `js:"errors"`
}

// Error counts equal errors of a batch.
type Error struct {
	Kind       string `js:"kind"` // as destkit load names them
	Message    string `js:"message"`
	Count      int64  `js:"count"`
	Identifier string `js:"identifier"` // the first record; "": the whole request
}

// SyncBatch sends the next batch and checks its reply: status, id, and one result
// with success for every record. Failures of a batch are in the result. Where no
// batch can be sent, now or later, it aborts the test of this instance.
func (d *destination) SyncBatch() *Result {
	vu := d.instance.vu
	rt, state, ctx := vu.Runtime(), vu.State(), vu.Context()
	if state == nil {
		common.Throw(rt, common.NewInitContextError("syncBatch: no batch can be sent in the init context"))
	}
	if d.sender == nil && !d.connect(ctx, state) {
		return nil
	}
	sent, err := d.sender.Send(ctx)
	var used *loadgen.UsedUpError
	switch {
	case errors.As(err, &used):
		d.abort(fmt.Errorf("syncBatch: %w", inFields(err)))
		return nil
	case err != nil:
		common.Throw(rt, fmt.Errorf("syncBatch: the iteration ended before the reply"))
	}
	d.instance.metrics.push(ctx, state, sent)
	r := &Result{
		OK: sent.Good(), ID: sent.RequestID, Object: sent.Object, Operation: sent.Operation, Status: sent.Status,
		Records: sent.Records, Acknowledged: sent.Acknowledged, Duration: float64(sent.Took) / float64(time.Millisecond), Errors: []Error{},
	}
	for _, e := range sent.Errors {
		r.Errors = append(r.Errors, Error{e.Kind, inWords(e.Message), e.Count, e.Identifier})
	}
	return r
}

// connect makes the client of the process and the connection of this VU.
func (d *destination) connect(ctx context.Context, state *lib.State) bool {
	var dial dialing
	if state.Dialer != nil {
		dial = dialer(state.Dialer)
	}
	client, err := d.shared.connect(ctx, state, dial)
	if err != nil {
		d.abort(fmt.Errorf("destination: %w", err))
		return false
	}
	d.sender = client.Sender(dial)
	return true
}

// abort ends the test of this instance, as exec.test.abort does: the same would
// befall every further iteration.
func (d *destination) abort(err error) {
	d.instance.vu.Runtime().Interrupt(&errext.InterruptError{Reason: err.Error()})
}

// Journal names the keys that this instance has written so far, as JSON that
// destkit load clean --journal reads; for handleSummary.
func (d *destination) Journal() string {
	client := d.shared.made()
	if client == nil {
		return ""
	}
	text, err := json.MarshalIndent(client.Journal(), "", "  ")
	if err != nil {
		common.Throw(d.instance.vu.Runtime(), fmt.Errorf("journal: %w", err))
	}
	return string(text) + "\n"
}

// Cleaned is what cleanup gives a script.
type Cleaned struct {
	Deleted int64    `js:"deleted"`
	Left    int64    `js:"left"`
	Reasons []string `js:"reasons"`
}

// Cleanup deletes what this instance has written, through delete batches; for
// teardown, when no other VU sends.
func (d *destination) Cleanup() *Cleaned {
	c := &Cleaned{Reasons: []string{}}
	client := d.shared.made()
	if client == nil {
		return c
	}
	got := client.Cleanup(d.instance.vu.Context())
	c.Deleted, c.Left = got.Deleted, got.Left
	c.Reasons = append(c.Reasons, got.Reasons...)
	return c
}

// dialing connects to an address.
type dialing func(ctx context.Context, network, address string) (net.Conn, error)

// dialer connects as k6 does, with its hosts, DNS, local addresses and blocked
// names, and so that k6 counts the bytes.
func dialer(d lib.DialContexter) dialing {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if counted, ok := conn.(*netext.Conn); ok && err == nil {
			if raw, ok := counted.Conn.(syscall.Conn); ok {
				return countedConn{counted, raw}, nil
			}
		}
		return conn, err
	}
}

// countedConn shows the socket under a connection of k6: the client checks on
// it whether the peer has closed it meanwhile.
type countedConn struct {
	*netext.Conn
	raw syscall.Conn
}

// SyscallConn implements syscall.Conn.
func (c countedConn) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() }
