package store

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

// news is what a process knows of the others that work on its schema. It has a
// connection of its own, on which it hears of their changes; a question once in a
// while shows that the connection is a good one.
type news struct {
	store   *Store
	engine  *postgres
	known   int64     // the version of this program
	start   time.Time // moments are counted from here, by a clock that nobody moves
	version atomic.Int64
	outages atomic.Int64 // lost connections
	heard   atomic.Int64 // the moment of the last question that was answered; 0: none is good

	mu   sync.Mutex
	seen int64 // the highest generation that was read
	ears map[*ear]struct{}

	stop  context.CancelFunc
	ended chan struct{}
}

const (
	// askEvery is how often the server is asked, and trusted how long an answer is
	// good: after that nobody knows what the others have done.
	askEvery = time.Second
	trusted  = 4 * time.Second
	// Between two attempts to connect.
	shortest = 50 * time.Millisecond
	longest  = 2 * time.Second
)

const readMoment = "SELECT version, generation, keys, " + serverTime + " FROM installation"

func newNews(s *Store, p *postgres) *news {
	return &news{store: s, engine: p, known: migrations.Version(), start: time.Now(), ears: map[*ear]struct{}{}, ended: make(chan struct{})}
}

// begin hears the others from now on. Where the first attempt to connect fails, it
// goes on behind.
func (n *news) begin(ctx context.Context) {
	c, _ := n.connect(ctx)
	ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	go n.follow(ctx, c)
}

func (n *news) end() {
	n.stop()
	<-n.ended
}

// follow hears until ctx ends, over lost connections.
func (n *news) follow(ctx context.Context, c *link) {
	defer close(n.ended)
	for wait := shortest; ctx.Err() == nil; wait = min(2*wait, longest) {
		if c == nil {
			c, _ = n.connect(ctx)
		}
		if c != nil {
			wait = shortest
			n.tell(notice{}) // of what was missed
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
func (n *news) connect(ctx context.Context) (*link, error) {
	c, err := n.engine.dial(ctx, false)
	if err != nil {
		return nil, err
	}
	c.patience = trusted
	if err = c.command(`LISTEN "` + c.channel + `"`); err == nil {
		n.mu.Lock()
		n.seen = 0 // it may be another database that answers now
		n.store.generation.Add(1)
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
func (n *news) hear(ctx context.Context, c *link) {
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
func (n *news) ask(c *link) error {
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
func (n *news) take(c *link, payload string) error {
	topic, text, _ := strings.Cut(payload, " ")
	if topic != "=" {
		n.tell(notice{topic, text})
		return nil
	}
	var at standing
	if _, err := fmt.Sscan(text, &at.version, &at.generation, &at.keys); err != nil {
		return nil // nobody of us wrote that
	}
	if at.version != n.version.Load() || at.keys != n.store.keys.now() {
		return n.ask(c)
	}
	n.hint(at.generation)
	return nil
}

// hint takes in a generation that a notice tells of. Every role of the database may
// give notices: this one may be false, and the next true one must count all the same.
func (n *news) hint(generation int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if generation > n.seen {
		n.store.generation.Add(1)
	}
}

// arrived learns what another process has left, and opens its keys. A key that
// does not open is told to the next who changes something.
func (n *news) arrived(c *link, at standing) error {
	n.learn(at)
	if n.guard() != nil || n.store.keys.now() == at.keys {
		return nil
	}
	err := n.store.keys.renew(at.keys, func(query string, each func(database.Cells) error, args ...any) error {
		_, err := c.Run(query, each, args...)
		return err
	})
	if err == nil {
		n.tell(notice{}) // after a restore everything is another thing
	} else if c.db.IsClosed() {
		return err
	}
	return nil
}

// learn keeps what is known of the schema.
func (n *news) learn(at standing) {
	n.version.Store(at.version)
	n.mu.Lock()
	defer n.mu.Unlock()
	if at.generation > n.seen {
		n.seen = at.generation
		n.store.generation.Add(1)
	}
}

// guard refuses a schema that a newer program has made another one.
func (n *news) guard() error {
	if version := n.version.Load(); version > n.known {
		return migrations.Newer(version)
	}
	return nil
}

// generation never gives the same number twice while nobody can know what the
// others do.
func (n *news) generation() uint64 {
	if !n.hears() {
		return n.store.generation.Add(1)
	}
	return n.store.generation.Load()
}

// hears tells that the last answer is not too old.
func (n *news) hears() bool {
	heard := n.heard.Load()
	return heard != 0 && time.Since(n.start) <= time.Duration(heard)+trusted
}

// began is what a change does first: it learns where the schema stands.
func (n *news) began(tx *Tx) error {
	at := tx.conn.(*link).at
	n.learn(at)
	if err := n.guard(); err != nil {
		return err
	}
	if n.store.keys.now() == at.keys {
		return nil
	}
	err := n.store.keys.renew(at.keys, tx.query)
	if tx.epoch = n.store.keys.now(); err == nil {
		n.tell(notice{}) // as above
	}
	return err
}

// commit ends a change and tells the others.
func (n *news) commit(tx *Tx) error {
	at, err := tx.conn.(*link).settle(tx.changed, tx.notices)
	switch {
	case err != nil:
		n.store.generation.Add(1) // it may be the answer that was lost, and not the change
	case tx.changed:
		n.learn(at)
	}
	return err
}

// ear is one who listens.
type ear struct {
	heard  chan notice
	missed atomic.Bool
}

// earRoom is how many notices wait for one who listens; who has more to hear is
// told that there were too many.
const earRoom = 256

func (n *news) tell(said notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.ears {
		select {
		case e.heard <- said:
		default:
			e.missed.Store(true)
		}
	}
}

func (n *news) listen(ctx context.Context, hear func(topic, text string)) error {
	e := &ear{heard: make(chan notice, earRoom)}
	n.mu.Lock()
	n.ears[e] = struct{}{}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.ears, e)
	}()
	hear("", "")
	for {
		said, err := take(ctx, n.store, e.heard)
		if err != nil {
			return err
		}
		if e.missed.Swap(false) {
			for range len(e.heard) {
				<-e.heard
			}
			said = notice{}
		}
		hear(said.topic, said.text)
	}
}
