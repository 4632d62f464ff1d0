// Package control owns the control API, everything below /_control: who may use it, how the
// state is held while a handler works, the clock as people move it, which authorities are
// trusted, and the routes for what the store holds: organizations and people, rows of
// emulated warehouses, records of emulated destinations, topics with their messages, jobs
// of other products that trigger syncs, and the table of the specification's rules with
// the tests that prove them.
package control

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// Handlers answer the routes, one file for each subject.
type Handlers struct {
	Shared        *call.Shared
	Clock         *clock.Clock
	Organizations *organizations.Organizations
	Sources       *sources.Sources
	Gate          *destination.Gate
	Live          *runs.Live
	Runs          *runs.Engine // makes runs and lets them work
	// Position is how far a sync has read its topic.
	Position func(syncID int64) (int64, error)
}

// Data are the routes of topics, triggers, both ends of a sync, and the table of fidelity.
func (h *Handlers) Data() []call.ControlRoute {
	return append(slices.Concat(h.topicRoutes(), h.triggerRoutes(), h.dataRoutes()),
		call.Route("GET", "/fidelity", "?state=&section= lists the rules of the specification with their proofs", fidelity))
}

// change is one change that a caller made to the clock.
type change struct {
	Real   time.Time     `json:"at"`     // by the clock of the system
	Change string        `json:"change"` // advance, freeze, run or set
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Ran    *clock.Report `json:"ran,omitempty"` // what an advance did
}

// mostChanges bounds what is kept of the changes of the clock.
const mostChanges = 100

// changes keeps the last changes of the clock in this process.
type changes struct {
	mu   sync.Mutex
	list []change
}

func (k *changes) add(one change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list = append(k.list, one); len(k.list) > mostChanges {
		k.list = slices.Delete(k.list, 0, 1)
	}
}

// all are the changes, newest first.
func (k *changes) all() []change {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := append([]change{}, k.list...)
	slices.Reverse(list)
	return list
}

// Gate makes connections to destinations from now on with these certificates, as PEM, and
// gives their number.
type Gate interface {
	Trust(text []byte) (int, error)
}

// Trust adds authorities.
type Trust struct {
	gate Gate
}

// NewTrust trusts nothing yet.
func NewTrust(gate Gate) *Trust { return &Trust{gate: gate} }

// Routes are those of the control API.
func (t *Trust) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/trust", "body: certificates as PEM; destinations may be signed by them from now on", t.post),
	}
}

func (t *Trust) post(c *call.Control) (any, error) {
	text, err := c.Text(1 << 20)
	if err != nil {
		return nil, err
	}
	n, err := t.gate.Trust(text)
	if err != nil {
		return nil, problem.Refuse(http.StatusBadRequest, "%v", err)
	}
	return map[string]int{"trusted": n}, nil
}
