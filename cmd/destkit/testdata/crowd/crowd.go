// Package crowd is many clients of a service that do everything at once: every
// operation of the API and of /_control in any order, with ids of things that are
// gone, bodies that are wrong, and callers that leave before the answer. It makes and
// counts the calls; who uses it says what must be true afterwards.
package crowd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/openapi"
)

// Config says whom the crowd meets, and with what.
type Config struct {
	Root    string // of the service, before /api/v1
	Key     string // of a workspace that is kept: nothing in it is deleted
	Clients int
	Calls   int // of each client
	Seed    uint64
	// Destinations are addresses that clients connect, with an object thing_0 of the
	// fields id, first and second; those that answer nothing useful among them.
	Destinations []string
	// Source is a SQLite file with a table rows of those columns.
	Source string
	// Replace also takes the service back and replaces its world, which ends
	// everything that is kept.
	Replace bool
}

// Crowd keeps what its clients share.
type Crowd struct {
	config     Config
	http       *http.Client
	operations []*openapi.Operation
	tally      *Tally
	kept       *tenant
	configs    map[string]map[string]any // of the syncs that are kept, by their ids

	mu      sync.Mutex
	tenants []*tenant
}

// maxTenants bounds the organizations whose tokens are remembered.
const maxTenants = 4

// New prepares a crowd. Its tally counts all that its clients do.
func New(config Config) *Crowd {
	return &Crowd{
		config: config, tally: NewTally(), operations: openapi.Operations(),
		kept: &tenant{key: config.Key, known: map[string][]known{}},
		http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: config.Clients, MaxIdleConns: config.Clients},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Keep names a sync of the kept workspace with its configuration.
func (c *Crowd) Keep(id int64, config map[string]any) {
	if c.configs == nil {
		c.configs = map[string]map[string]any{}
	}
	c.configs[fmt.Sprint(id)] = config
	c.kept.add("sync_id", nil, fmt.Sprint(id))
}

// Tally is what was counted so far.
func (c *Crowd) Tally() *Tally { return c.tally }

// Close ends the connections.
func (c *Crowd) Close() { c.http.CloseIdleConnections() }

// Run lets every client make its calls, and returns when the last one has ended or
// left.
func (c *Crowd) Run(ctx context.Context) {
	var clients sync.WaitGroup
	for i := range c.config.Clients {
		clients.Go(func() {
			one := &client{Crowd: c, ctx: ctx, random: rand.New(rand.NewPCG(c.config.Seed, uint64(i)))}
			for range c.config.Calls {
				if ctx.Err() != nil {
					return
				}
				one.act()
			}
		})
	}
	clients.Wait()
}

// client is one of the crowd. What it does follows from the seed, its number, and
// the ids that the crowd has seen.
type client struct {
	*Crowd
	ctx    context.Context
	random *rand.Rand
}

// act makes one call.
func (c *client) act() {
	switch n := c.random.IntN(100); {
	case n < 50:
		c.operate(c.kept, c.harmless())
	case n < 85:
		if t := c.tenant(); t != nil {
			c.operate(t, c.operation())
			return
		}
		c.found()
	default:
		c.control()
	}
}

// chance is true n times of a hundred.
func (c *client) chance(n int) bool { return c.random.IntN(100) < n }

func (c *client) text(of ...string) string { return of[c.random.IntN(len(of))] }

// leave ends some calls early, as callers do that give up, and those in the end that
// wait for whole worlds or for time to pass.
func (c *client) leave(ctx context.Context, r *request) (bounded context.Context, early bool, cancel context.CancelFunc) {
	after := unansweredAfter
	switch {
	case c.chance(5):
		early, after = true, time.Duration(c.random.IntN(20_000))*time.Microsecond
	case strings.HasPrefix(r.path, "/_control/"):
		early, after = true, controlUnanswered
	}
	bounded, cancel = context.WithTimeout(ctx, after)
	return bounded, early, cancel
}

// unansweredAfter is after how long a call of the API counts as never answered;
// controlPatience is when callers of the control API give up.
const unansweredAfter, controlUnanswered = 5 * time.Minute, 15 * time.Second
