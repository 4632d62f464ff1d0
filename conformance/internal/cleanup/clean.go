// Package cleanup deletes what a run has written, and reports leftovers and how sure they are.
package cleanup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
)

// What bounds the clean-up at the end of a run; what it does not reach stays in the journal.
// A slow endpoint gets twice the time that its declared speed needs, where no hook can help.
const (
	CleanUpTime     = 30 * time.Second
	MostCleanUpTime = 10 * time.Minute
)

// CleanUp removes what the run wrote. Only journalled keys are ever deleted,
// through delete batches where the object takes them, else through the hook.
func (s *Cleanup) CleanUp(ctx context.Context, r *conformance.Report, late bool) {
	if s.Catalog == nil {
		return
	}
	// A run that was interrupted cleans up all the same, for a shorter while.
	limit := s.DeletingTime(len(s.Journal.Pending()))
	if ctx.Err() != nil {
		limit = CleanUpTime / 3
	}
	s.Cleaned = s.cleanKeys(context.WithoutCancel(ctx), limit, !late, &r.Residue)
}

// DeletingTime is how long the clean-up of that many keys may take.
func (s *Cleanup) DeletingTime(keys int) time.Duration {
	if s.Opts.Hooks.Cleanup.Set() || s.Catalog.Speed == nil || s.Catalog.Speed.MaximumRecordsPerSecond < 1 {
		return CleanUpTime
	}
	needed := float64(keys) / float64(s.Catalog.Speed.MaximumRecordsPerSecond)
	return max(CleanUpTime, time.Duration(min(2*needed, MostCleanUpTime.Seconds())*float64(time.Second)))
}

// cleanKeys deletes the pending keys of the journal, looks whether they are gone, and sorts the
// leftovers. Each of the three steps has the whole limit, 0 for none: looking must not take the
// time that deleting needs. witnesses permits updates where no read-back shows the records.
func (s *Cleanup) cleanKeys(ctx context.Context, limit time.Duration, witnesses bool, res *conformance.Residue) []*Cleaning {
	groups := s.pendingGroups()
	step := func(do func(sc *Scenario, g *Cleaning)) {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if limit > 0 {
			limited, cancel = context.WithTimeout(ctx, limit)
		}
		defer cancel()
		for _, g := range groups {
			if len(g.Keys) > 0 {
				do(s.NewScenario(limited, line.CleanUpCheck, g.Object), g)
			}
		}
	}
	step(func(sc *Scenario, g *Cleaning) { g.sight = sc.findSight(g, witnesses) })
	step(func(sc *Scenario, g *Cleaning) { sc.deleteGroup(g) })
	step(func(sc *Scenario, g *Cleaning) { settle(res, sc, g, sc.look(g)) })
	const notOwn = "not deleted, since it is no key that this run makes: give --key-template or --key-range if the run had one, else the journal was changed"
	for _, g := range groups {
		for _, k := range g.foreign {
			if k.State != journal.Refused { // else the journal knows that no record exists
				keep(res, s.Redactor, k, notOwn, k.State != journal.Unknown)
			}
		}
	}
	return groups
}

// pendingGroups sorts the pending keys by object and field.
func (s *Cleanup) pendingGroups() []*Cleaning {
	var groups []*Cleaning
	for _, k := range s.Journal.Pending() {
		i := slices.IndexFunc(groups, func(g *Cleaning) bool { return g.Name == k.Object && g.Field == k.Field })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &Cleaning{Name: k.Object, Field: k.Field, Object: s.Catalog.Object(k.Object), Answers: map[string]Deletion{}})
		}
		list := &groups[i].Keys
		if s.owns != nil && !s.owns.Owns(k.Identifier) {
			list = &groups[i].foreign
		}
		*list = append(*list, k)
	}
	return groups
}

// deleteGroup removes the keys: what the delete batches leave goes to the hook.
func (sc *Scenario) deleteGroup(g *Cleaning) {
	why := "the object takes no delete batches, and no cleanup hook is configured"
	var id rpc.Field
	deletes := g.Object != nil && g.Object.Accepts(rpc.OperationDelete)
	if deletes {
		if id, deletes = g.Object.Field(g.Field); !deletes {
			why = fmt.Sprintf("field %q is gone", g.Field)
		}
	}
	for _, k := range g.Keys {
		g.answer(k, Deletion{why: why})
	}
	if deletes {
		order := []journal.State{journal.Written, journal.Unknown, journal.Refused, journal.Deleted} // absent keys that fail their batch are late
		place := func(k journal.Key) int { return slices.Index(order, k.State) }
		sc.deleteKeys(g, id, slices.SortedStableFunc(slices.Values(g.Keys), func(a, b journal.Key) int { return cmp.Compare(place(a), place(b)) }))
	}
	left := lists.Where(g.Keys, func(k journal.Key) bool { return !g.AnswerTo(k).Acknowledged })
	if len(left) > 0 && sc.Opts.Hooks.Cleanup.Set() {
		sc.HookKeys(g, left)
	}
}

// A delete batch that met a disturbance is repeated, each time after twice the pause.
const (
	DeleteRepeats = 4
	deletePause   = 100 * time.Millisecond
	longestPause  = 5 * time.Second // that the endpoint can request
)

// HookKeys calls the author's cleanup hook, which has a separate time limit, to remove keys.
func (sc *Scenario) HookKeys(g *Cleaning, left []journal.Key) {
	ctx := sc.Ctx
	if _, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), CleanUpTime)
		defer cancel()
	}
	_, err := hook.Call(ctx, sc.Opts.Hooks.Cleanup, sc.Hooks, sc.Opts.Hooks.Timeout, "cleanup",
		map[string]any{"action": "begin", "object": g.Name, "identifier_field": g.Field, "identifiers": identifiersOf(left)})
	d := Deletion{Acknowledged: err == nil, hook: true}
	if err != nil {
		d.why = "cleanup hook: " + err.Error()
	}
	for _, k := range left {
		g.answer(k, d)
	}
}

func (s *Cleanup) CleanJournal(ctx context.Context, path string) (res *conformance.Residue, err error) {
	if s.Journal, err = journal.Open(path); err != nil {
		return nil, conformance.Usage("%v", err)
	}
	defer s.Journal.Close()
	if s.owns, err = discover.NewOwnership(s.Journal.Header().Run, s.Opts, nil); err != nil {
		return nil, err
	}
	c, err := s.Discover(ctx)
	if err != nil {
		return nil, err
	}
	if p := s.NothingToJudge(ctx, c); p != nil && !s.Opts.Hooks.Cleanup.Set() {
		return nil, discover.AsError(p)
	}
	if len(c.Objects) == 0 && !s.Opts.Hooks.Cleanup.Set() {
		return nil, fmt.Errorf("read the objects of the endpoint: %s", s.Redactor.String(c.First.Failure()))
	}
	s.Found(c)
	res = &conformance.Residue{Journal: path, Refused: []conformance.Leftover{}, Unknown: []conformance.Leftover{}}
	s.cleanKeys(ctx, 0, true, res)
	return res, nil
}

// Cleanup is a run that can clean up after itself.
type Cleanup struct {
	discover.Discovery
	Cleaned []*Cleaning // what the clean-up has seen; nil before it
	// Owns recognises the keys of the run of a journal; nil: all in it are this run's.
	owns *discover.Ownership
}

// Scenario is a scenario that can look for leftovers.
type Scenario struct {
	*write.Scenario
	Unmet write.Unmet // what was reported, for the search for its cause
	c     *Cleanup
}

// NewScenario is a scenario of a check for an object, or for none.
func (s *Cleanup) NewScenario(ctx context.Context, c *conformance.Check, o *write.Object) *Scenario {
	return &Scenario{Scenario: s.Session.NewScenario(ctx, c, o), c: s}
}

// Cleaning is what is known of the journalled keys of one object and field.
type Cleaning struct {
	Name, Field string
	Object      *write.Object // nil when it is not listed any more
	Keys        []journal.Key
	foreign     []journal.Key       // in the journal, and not made by its run
	Answers     map[string]Deletion // by text of the key
	sight       sight
	StillThere  []journal.Key // that the read-back shows after their delete
}

func (g *Cleaning) AnswerTo(k journal.Key) Deletion { return g.Answers[exchange.KeyText(k.Identifier)] }

func (g *Cleaning) answer(k journal.Key, d Deletion) { g.Answers[exchange.KeyText(k.Identifier)] = d }

// Deletion is how the removal of one key was answered.
type Deletion struct {
	Acknowledged bool
	hook         bool            // by the cleanup hook
	why          string          // else
	Refused      string          // the words of a refusal
	absent       bool            // they are those that keys get which were never there
	unanswered   bool            // nothing came back for it
	Reply        *exchange.Reply // to the delete batch
}

func identifiersOf(keys []journal.Key) []json.RawMessage {
	return lists.Of(keys, func(k journal.Key) json.RawMessage { return k.Identifier })
}
