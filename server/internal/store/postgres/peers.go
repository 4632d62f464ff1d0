package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
)

// peers are what a process knows of the others that work on its schema. It has a
// connection of its own, on which it hears of their changes; a question once in a
// while shows that the connection is a good one.
type peers struct {
	keys    Keys
	engine  *Schema
	known   int64     // the version of this program
	start   time.Time // moments are counted from here, by a clock that is not moved
	version atomic.Int64
	counted atomic.Uint64 // changes of this process and of the others, and more
	outages atomic.Int64  // lost connections
	heard   atomic.Int64  // the moment of the last question that was answered; 0: none is good

	mu          sync.Mutex
	seen        int64 // the highest generation that was read
	subscribers map[*subscriber]struct{}

	stop  context.CancelFunc
	ended chan struct{}
}

const (
	// askEvery is how often the server is asked, and trusted how long an answer is
	// good: after that it is unknown what the others have done.
	askEvery = time.Second
	trusted  = 4 * time.Second
	// Between two attempts to connect.
	shortest = 50 * time.Millisecond
	longest  = 2 * time.Second
)

const readMoment = "SELECT version, generation, keys, " + serverTime + " FROM installation"

func newPeers(keys Keys, p *Schema) *peers {
	return &peers{keys: keys, engine: p, known: migrations.Version(), start: time.Now(), subscribers: map[*subscriber]struct{}{}, ended: make(chan struct{})}
}

// begin hears the others from now on. Where the first attempt to connect fails, it
// goes on behind.
func (n *peers) begin(ctx context.Context) {
	c, _ := n.connect(ctx)
	ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	go n.follow(ctx, c)
}

func (n *peers) end() {
	n.stop()
	<-n.ended
}

// follow hears until ctx ends, over lost connections. Who listens begins after the
// connection that is given, and has missed nothing of it.
func (n *peers) follow(ctx context.Context, c *Conn) {
	defer close(n.ended)
	for wait := shortest; ctx.Err() == nil; wait = min(2*wait, longest) {
		if c == nil {
			if c, _ = n.connect(ctx); c != nil {
				n.tell(Notice{}) // of what was missed
			}
		}
		if c != nil {
			wait = shortest
			n.hear(ctx, c)
			n.heard.Store(0)
			n.outages.Add(1)
			_ = c.Close()
			c = nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

// connect opens the connection. Whatever was kept in memory before is not to be
// trusted after it.
func (n *peers) connect(ctx context.Context) (*Conn, error) {
	c, err := n.engine.dial(ctx, false)
	if err != nil {
		return nil, err
	}
	c.timeout = trusted
	if err = c.command(`LISTEN "` + c.channel + `"`); err == nil {
		n.mu.Lock()
		n.seen = 0 // it may be another database that answers now
		n.counted.Add(1)
		n.mu.Unlock()
		err = n.ask(c)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// hear takes notices, and asks when it is time to.
func (n *peers) hear(ctx context.Context, c *Conn) {
	for {
		until, cancel := context.WithDeadline(ctx, n.start.Add(time.Duration(n.heard.Load())).Add(askEvery))
		said, err := c.whole.WaitForNotification(until)
		late := until.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			err = n.take(c, said.Payload)
		case late:
			err = n.ask(c)
		}
		if err != nil {
			return
		}
	}
}

// ask reads where the schema stands now, and what time it is there.
func (n *peers) ask(c *Conn) error {
	asked := time.Since(n.start)
	var at standing
	var there int64 // microseconds
	_, err := c.Run(readMoment, func(row database.Cells) error {
		there, _ = row.Number(3)
		return at.read(row)
	})
	if err != nil {
		return err
	}
	n.engine.compare(there, time.Since(n.start)-asked)
	if err := n.arrived(c, at); err != nil {
		return err
	}
	n.heard.Store(int64(max(asked, 1)))
	return nil
}

// take reads a notice: one of ours, or one for those who listen.
func (n *peers) take(c *Conn, payload string) error {
	topic, text, _ := strings.Cut(payload, " ")
	if topic != "=" {
		n.tell(Notice{topic, text})
		return nil
	}
	var at standing
	if _, err := fmt.Sscan(text, &at.version, &at.generation, &at.keys); err != nil {
		return nil // none of us wrote that
	}
	if at.version != n.version.Load() || at.keys != n.keys.Epoch() {
		return n.ask(c)
	}
	n.hint(at.generation)
	return nil
}

// hint takes in a generation that a notice tells of. Every role of the database may
// give notices: this one may be false, and the next true one must count all the same.
func (n *peers) hint(generation int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if generation > n.seen {
		n.counted.Add(1)
	}
}

// arrived learns what another process has left, and opens its keys. A key that
// does not open is told to the next who changes something.
func (n *peers) arrived(c *Conn, at standing) error {
	n.learn(at)
	if n.guard() != nil || n.keys.Epoch() == at.keys {
		return nil
	}
	err := n.keys.Renew(at.keys, database.Reading(c))
	if err == nil {
		n.tell(Notice{}) // after a restore everything is another thing
	} else if c.db.IsClosed() {
		return err
	}
	return nil
}

// learn keeps what is known of the schema.
func (n *peers) learn(at standing) {
	n.version.Store(at.version)
	n.mu.Lock()
	defer n.mu.Unlock()
	if at.generation > n.seen {
		n.seen = at.generation
		n.counted.Add(1)
	}
}

// guard refuses a schema that a newer program has made another one.
func (n *peers) guard() error {
	if version := n.version.Load(); version > n.known {
		return migrations.Newer(version)
	}
	return nil
}

// generation never gives the same number twice while no one can know what the
// others do.
func (n *peers) generation() uint64 {
	if !n.hears() {
		return n.counted.Add(1)
	}
	return n.counted.Load()
}

// hears tells that the last answer is not too old.
func (n *peers) hears() bool {
	heard := n.heard.Load()
	return heard != 0 && time.Since(n.start) <= time.Duration(heard)+trusted
}

// began is what a change does first: it learns where the schema stands.
func (n *peers) began(at standing, query database.Query) (renewed bool, err error) {
	n.learn(at)
	if err := n.guard(); err != nil {
		return false, err
	}
	if n.keys.Epoch() == at.keys {
		return false, nil
	}
	if err = n.keys.Renew(at.keys, query); err == nil {
		n.tell(Notice{}) // as above
	}
	return true, err
}

// commit ends a change and tells the others.
func (n *peers) commit(c *Conn, changed bool, notices []Notice) error {
	at, err := c.settle(changed, notices)
	switch {
	case err != nil:
		n.counted.Add(1) // it may be the answer that was lost, and not the change
	case changed:
		n.learn(at)
	}
	return err
}

// subscriber is one who listens.
type subscriber struct {
	heard  chan Notice
	missed atomic.Bool
}

// subscriberRoom is how many notices wait for one who listens; who has more to hear is
// told that there were too many.
const subscriberRoom = 256

func (n *peers) tell(said Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.subscribers {
		select {
		case e.heard <- said:
		default:
			e.missed.Store(true)
		}
	}
}

func (n *peers) listen(ctx context.Context, closed <-chan struct{}, hear func(topic, text string)) error {
	e := &subscriber{heard: make(chan Notice, subscriberRoom)}
	n.mu.Lock()
	n.subscribers[e] = struct{}{}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.subscribers, e)
	}()
	hear("", "")
	for {
		said, err := e.next(ctx, closed)
		if err != nil {
			return err
		}
		if e.missed.Swap(false) {
			for range len(e.heard) {
				<-e.heard
			}
			said = Notice{}
		}
		hear(said.Topic, said.Text)
	}
}

// next waits for a notice, the end of ctx or the end of the store.
func (e *subscriber) next(ctx context.Context, closed <-chan struct{}) (said Notice, err error) {
	select { // a closed store refuses even where a notice is ready
	case <-closed:
		return said, database.ErrClosed
	default:
	}
	select {
	case said = <-e.heard:
		return said, nil
	case <-closed:
		return said, database.ErrClosed
	case <-ctx.Done():
		return said, ctx.Err()
	}
}
