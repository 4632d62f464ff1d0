package loadgen

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Client sends single batches for a load engine with its own loops and
// figures: the work, the connections and the checks are those of Run. All
// senders of a client share its keys, so no two of them write the same one.
type Client struct {
	s     *session
	ended chan struct{}
	close sync.Once

	mu      sync.Mutex
	senders []*worker
}

// expectedSenders is for how many connections the memory of prepared batches is
// divided: a client does not know how many there will be.
const expectedSenders = 1000

// firstSender is far above the connections that prepare records; the number of a
// connection makes its ids and its choices.
const firstSender = 1 << 20

// Check refuses what can be refused before the target is called. The error is a
// *UsageError.
func (o Options) Check() error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if _, err := records.NewKeys(o.KeyTemplate, o.RunID, o.KeyFrom, o.KeyTo); err != nil {
		return err
	}
	_, err = wire.NewEndpoint(o.Target, o.Transport)
	return err
}

// NewClient fetches the objects, fields and speed of the target, and prepares
// the work; where the mix only updates or deletes, it writes the records for
// it. Of the options Target, Transport, Write, Work, MaxRecords, Seed, RunID
// and those of the keys count. The error is a *UsageError where nothing was
// sent because of the options, any other where the target could not be reached.
func NewClient(ctx context.Context, o Options) (*Client, error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.prime(ctx); err != nil {
		s.e.close()
		return nil, err
	}
	s.e.rearm()
	s.e.connections = max(s.e.connections, expectedSenders)
	c := &Client{s: s, ended: make(chan struct{})}
	go c.attend()
	return c, nil
}

// attend breaks calls that take too long.
func (c *Client) attend() {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-ticker.C:
			c.mu.Lock()
			senders := c.senders
			c.mu.Unlock()
			c.s.e.watch(senders, c.s.e.clock.Now())
		}
	}
}

// Sender adds a connection; dial makes it, and nil means Transport.Dial.
func (c *Client) Sender(dial func(ctx context.Context, network, address string) (net.Conn, error)) *Sender {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.s.e
	w := e.newWorker(firstSender + len(c.senders))
	s := &Sender{w: w}
	if dial != nil {
		end := *e.end
		end.Transport.Dial = dial
		if w.line = caller(wire.NewLink(e.ctx, &end)); end.Transport.Standard {
			shared, _ := end.RoundTripper()
			w.line = wire.NewStandard(e.ctx, &end, shared)
		}
	}
	c.senders = append(c.senders, w)
	return s
}

// BatchSize in records, as requested or as the target declares it.
func (c *Client) BatchSize() int { return c.s.e.plan.size }

// Journal names the keys that were used so far, in the form that ReadKeys reads.
func (c *Client) Journal() Journal {
	return Journal{Load: journalVersion, Run: c.s.o.RunID, Target: c.s.e.end.Shown(), Keys: c.s.written()}
}

// Cleanup deletes what the client has written, through delete batches; not while
// a Send is under way.
func (c *Client) Cleanup(ctx context.Context) *CleanupResult { return c.s.cleanup(ctx) }

// Close ends all connections; not while a Send is under way.
func (c *Client) Close() {
	c.close.Do(func() {
		close(c.ended)
		for _, w := range c.senders {
			w.line.Close()
		}
		c.s.e.close()
	})
}

// Sender is one connection, for one goroutine at a time.
type Sender struct{ w *worker }

// Sent is what became of one batch.
type Sent struct {
	RequestID         string
	Object, Operation string
	// Records of the batch, and how many of them have one result with success.
	Records, Acknowledged int
	// Status of HTTP; 0: there was no whole reply.
	Status int
	// Took is the time from sending to the last byte of the reply, checked;
	// connecting included. Untimed: a failure came sooner, which is no latency.
	Took    time.Duration
	Untimed bool
	// Errors by message, the most frequent first: one for a request that failed
	// as a whole, or those of single records.
	Errors []SentError
}

// SentError counts equal errors of one batch.
type SentError struct {
	Kind, Message string // one of the Kind constants; secrets are taken out
	Count         int64
	Identifier    string // of the first record that it is about; "": of the request
}

// Good reports whether every record was acknowledged.
func (s *Sent) Good() bool { return len(s.Errors) == 0 && s.Acknowledged == s.Records }

// UsedUpError means that a client has nothing more to send: MaxRecords, its
// keys, or the records that it could delete.
type UsedUpError struct{ Reason string }

func (e *UsedUpError) Error() string { return "nothing more to send: " + e.Reason }

// Send sends the next batch and checks its reply: status, id, and one result with success
// for every record (spec 7.2). Failures of the batch are in Sent; the error is a
// *UsedUpError, or that of ctx: two seconds after its end the call is broken, and no
// caller knows then what the reply would have been. Until then it goes on, so that
// Cleanup does not delete keys which the target is about to store.
func (s *Sender) Send(ctx context.Context) (*Sent, error) {
	w := s.w
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("send batch: %w", err)
	}
	t := w.choose()
	b, first, ok := w.prepare(t)
	if !ok {
		return nil, &UsedUpError{stopReason(w.e.reason.Load()).String()}
	}
	start := w.e.clock.Now()
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(interruptedGrace):
			w.line.Interrupt()
		}
	})
	v, rep, err := w.deliver(b, start)
	close(done)
	stop()
	end := w.e.clock.Now()
	if err != nil && ctx.Err() != nil {
		clear(w.tally)
		return nil, fmt.Errorf("send batch: %w", ctx.Err())
	}
	sent := &Sent{
		RequestID: string(bytes.Trim(b.ID(), `"`)), Object: t.keyspace.object.APIName, Operation: t.shape.Operation,
		Records: b.Size(), Acknowledged: v.Acknowledged, Status: rep.Status, Took: time.Duration(end - start), Untimed: untimed(err),
	}
	switch {
	case err != nil:
		w.fail(err, exampleOf(b, end))
	case v.Failed == 0:
		w.remember(t, first)
	}
	for _, e := range w.tally {
		sent.Errors = append(sent.Errors, SentError{e.Kind, e.Message, e.Count, e.Example.Identifier})
	}
	clear(w.tally)
	slices.SortFunc(sent.Errors, func(a, b SentError) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Message, b.Message))
	})
	return sent, nil
}
