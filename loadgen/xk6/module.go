// Package xk6 is the extension k6/x/destkit of k6: it sends batches to a custom
// destination with the client and the checks of package loadgen, so that load
// beyond one machine is driven and spread by k6 and its operator.
//
// It owns what scripts see: options, results, metrics, and which keys an
// instance of a distributed run may use. Loops, rates, thresholds and figures
// are those of k6.
package xk6

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/grafana/sobek"
	"go.k6.io/k6/js/common"
	"go.k6.io/k6/js/modules"
	"go.k6.io/k6/lib"

	"github.com/destkit/destkit/loadgen"
)

func init() { modules.Register("k6/x/destkit", New()) }

// Module is the extension in one process; all VUs share it.
type Module struct {
	run string // of destinations without their own run

	mu     sync.Mutex
	shared map[string]*shared
	slots  map[int64]bool // of integers, that are taken
}

// New makes a module that knows no destination yet.
func New() *Module {
	return &Module{run: fmt.Sprintf("%06x", rand.Uint64()&0xffffff), shared: map[string]*shared{}, slots: map[int64]bool{}}
}

// shared is a destination of one process: its client, for all VUs. The client is
// made by the first VU that sends, as k6 allows no connections before.
type shared struct {
	module *Module
	number int // of the destinations of this process, from 0
	config *config

	mu     sync.Mutex
	client *loadgen.Client
	failed error
}

// instance is the extension in one VU.
type instance struct {
	module  *Module
	vu      modules.VU
	metrics *destinationMetrics
}

// NewModuleInstance implements modules.Module.
func (m *Module) NewModuleInstance(vu modules.VU) modules.Instance {
	i := &instance{module: m, vu: vu}
	if env := vu.InitEnv(); env != nil {
		var err error
		if i.metrics, err = registerMetrics(env.Registry); err != nil {
			common.Throw(vu.Runtime(), err)
		}
	}
	return i
}

// Exports implements modules.Instance.
func (i *instance) Exports() modules.Exports {
	named := map[string]any{"destination": i.destination}
	return modules.Exports{Default: named, Named: named}
}

// destination is destkit.destination(url, options) of a script. It checks what
// can be checked without asking the target.
func (i *instance) destination(url string, options sobek.Value) *destination {
	rt := i.vu.Runtime()
	if i.vu.InitEnv() == nil {
		common.Throw(rt, fmt.Errorf("destination: make it in the init context, outside of the functions that k6 calls: its metrics are registered there"))
	}
	given := map[string]any{}
	if !common.IsNullish(options) {
		object, ok := options.Export().(map[string]any)
		if !ok {
			common.Throw(rt, fmt.Errorf("destination: the options must be an object, such as {object: 'contacts', write: true}"))
		}
		given = object
	}
	c, err := newConfig(url, given)
	if err != nil {
		common.Throw(rt, fmt.Errorf("destination: %w", err))
	}
	s, err := i.module.share(c, given)
	if err != nil {
		common.Throw(rt, fmt.Errorf("destination: %w", err))
	}
	return &destination{instance: i, shared: s}
}

// share finds the destination that another VU has made with the same options.
func (m *Module) share(c *config, given map[string]any) (*shared, error) {
	text, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	key := c.options.Target.URL + "\n" + string(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.shared[key]; s != nil {
		return s, nil
	}
	for _, s := range m.shared {
		if c.ranged() && s.config.ranged() && c.options.KeyFrom <= s.config.options.KeyTo && s.config.options.KeyFrom <= c.options.KeyTo {
			return nil, fmt.Errorf("keyRange: another destination of this script, or of another VU, has keys of %d to %d: give each its own range", c.options.KeyFrom, c.options.KeyTo)
		}
	}
	c.options.RunID = cmp.Or(c.options.RunID, m.run)
	s := &shared{module: m, number: len(m.shared), config: c}
	m.shared[key] = s
	return s, nil
}

// slot takes one of the slots from first up to end, the one that is wished for
// where it is free; false: all are taken.
func (m *Module) slot(wished, first, end int64) (int64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range end - first {
		if at := first + (wished+i)%(end-first); !m.slots[at] {
			m.slots[at] = true
			return at, true
		}
	}
	return 0, false
}

// connect makes the client, once in a process. A failure stays: the target
// would refuse every iteration.
func (s *shared) connect(ctx context.Context, state *lib.State, dial dialing) (*loadgen.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil || s.failed != nil {
		return s.client, s.failed
	}
	o, err := s.forPart(state.Options.ExecutionSegment.String())
	if err != nil {
		s.failed = err
		return nil, err
	}
	o.Transport.Dial = dial
	client, err := loadgen.NewClient(ctx, o)
	if err != nil {
		if ctx.Err() == nil {
			s.failed = inFields(err)
		}
		return nil, inFields(err)
	}
	s.client = client
	for _, k := range client.Journal().Keys {
		state.Logger.Infof("destkit: run %s writes %s of %s from %s on, in batches of %d", o.RunID, k.Field, k.Object, k.First, client.BatchSize())
	}
	return client, nil
}

// made gives the client, nil where nothing was sent yet.
func (s *shared) made() *loadgen.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}
