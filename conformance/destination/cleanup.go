package destination

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
)

// What bounds the clean-up at the end of a run; what it does not reach is named in the
// report and stays in the journal. A slow endpoint gets twice the time that its declared
// speed needs, where no hook can help.
const (
	cleanUpTime     = 30 * time.Second
	mostCleanUpTime = 10 * time.Minute
)

// cleanUp removes what the run wrote. Only journalled keys are ever deleted,
// through delete batches where the object takes them, else through the hook.
func (s *session) cleanUp(ctx context.Context, r *conformance.Report, late bool) {
	if s.catalog == nil {
		return
	}
	// A run that was interrupted cleans up all the same, for a shorter while.
	limit := s.deletingTime(len(s.journal.Pending()))
	if ctx.Err() != nil {
		limit = cleanUpTime / 3
	}
	s.cleaned = s.cleanKeys(context.WithoutCancel(ctx), limit, !late, &r.Residue)
}

// deletingTime is how long the clean-up of that many keys may take.
func (s *session) deletingTime(keys int) time.Duration {
	if s.opts.Hooks.Cleanup.Set() || s.catalog.speed == nil || s.catalog.speed.MaximumRecordsPerSecond < 1 {
		return cleanUpTime
	}
	needed := float64(keys) / float64(s.catalog.speed.MaximumRecordsPerSecond)
	return max(cleanUpTime, time.Duration(min(2*needed, mostCleanUpTime.Seconds())*float64(time.Second)))
}

// cleanUpCheck stands in the records of clean-up calls.
var cleanUpCheck = &conformance.Check{ID: "CLEAN", Title: "Clean-up"}

// cleaning is what is known of the journalled keys of one object and field.
type cleaning struct {
	name, field string
	object      *object // nil when it is not listed any more
	keys        []journal.Key
	foreign     []journal.Key       // in the journal, and not made by its run
	answers     map[string]deletion // by text of the key
	sight       sight
	stillThere  []journal.Key // that the read-back shows after their delete
}

// deletion is how the removal of one key was answered.
type deletion struct {
	acknowledged bool
	hook         bool   // by the cleanup hook
	why          string // else
	refused      string // the words of a refusal
	absent       bool   // they are those that keys get which were never there
	unanswered   bool   // nothing came back for it
	reply        *reply // to the delete batch
}

// cleanKeys deletes the pending keys of the journal, looks whether they are gone,
// and sorts what is left. Each of the three steps has the whole limit, 0 for
// none: looking must not take the time that deleting needs. witnesses permits
// updates where no read-back shows what is there.
func (s *session) cleanKeys(ctx context.Context, limit time.Duration, witnesses bool, res *conformance.Residue) []*cleaning {
	groups := s.pendingGroups()
	step := func(do func(sc *scenario, g *cleaning)) {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if limit > 0 {
			limited, cancel = context.WithTimeout(ctx, limit)
		}
		defer cancel()
		for _, g := range groups {
			if len(g.keys) > 0 {
				do(s.newScenario(limited, cleanUpCheck, g.object), g)
			}
		}
	}
	step(func(sc *scenario, g *cleaning) { g.sight = sc.findSight(g, witnesses) })
	step(func(sc *scenario, g *cleaning) { sc.deleteGroup(g) })
	step(func(sc *scenario, g *cleaning) { settle(res, sc, g, sc.look(g)) })
	for _, g := range groups {
		for _, k := range g.foreign {
			if k.State == journal.Refused {
				continue // nothing of it is there, the journal says
			}
			keep(res, s.newScenario(ctx, cleanUpCheck, g.object), k, notOwn, k.State != journal.Unknown)
		}
	}
	return groups
}

// notOwn is why a key of a journal is left where it is.
const notOwn = "not deleted, since it is no key that this run makes: give --key-template or --key-range if the run had one, else the journal was changed"

// pendingGroups sorts the pending keys by object and field.
func (s *session) pendingGroups() []*cleaning {
	type group struct{ object, field string }
	groups := map[group]*cleaning{}
	var order []*cleaning
	for _, k := range s.journal.Pending() {
		g := group{k.Object, k.Field}
		if groups[g] == nil {
			groups[g] = &cleaning{name: k.Object, field: k.Field, object: s.catalog.object(k.Object), answers: map[string]deletion{}}
			order = append(order, groups[g])
		}
		if s.owns != nil && !s.owns.owns(k.Identifier) {
			groups[g].foreign = append(groups[g].foreign, k)
			continue
		}
		groups[g].keys = append(groups[g].keys, k)
	}
	return order
}

// deleteGroup removes the keys: what the delete batches leave goes to the hook.
func (sc *scenario) deleteGroup(g *cleaning) {
	for _, k := range g.keys {
		g.answers[exchange.KeyText(k.Identifier)] = deletion{why: "the object takes no delete batches, and no cleanup hook is configured"}
	}
	if o := g.object; o != nil && o.accepts(rpc.OperationDelete) {
		if id, ok := o.field(g.field); ok {
			sc.deleteKeys(g, id, g.keys)
		} else {
			for text := range g.answers {
				g.answers[text] = deletion{why: fmt.Sprintf("field %q is gone", g.field)}
			}
		}
	}
	left := slices.DeleteFunc(slices.Clone(g.keys), func(k journal.Key) bool { return g.answers[exchange.KeyText(k.Identifier)].acknowledged })
	if len(left) > 0 && sc.opts.Hooks.Cleanup.Set() {
		sc.hookKeys(g, left)
	}
}

// A delete batch that met a disturbance is repeated, each time after twice the pause.
const (
	deleteRepeats = 4
	deletePause   = 100 * time.Millisecond
	longestPause  = 5 * time.Second // that the endpoint can ask for
)

// passing reports whether a batch got no answer of the endpoint, for a reason that
// passes: a lost connection, a balancer, a limit.
func passing(b *batch, err error) bool {
	if err != nil {
		return errors.Is(err, wire.ErrAway)
	}
	return !b.reply.Ended() && b.reply.Kind != wire.KindTimeout || b.reply.Passing() && !b.answered()
}

// pause waits, as long as a Retry-After in seconds asks for; false when the clean-up is over.
func (sc *scenario) pause(d time.Duration, b *batch) bool {
	if b != nil {
		if seconds, err := strconv.Atoi(b.reply.Header.Get("Retry-After")); err == nil {
			d = max(d, min(time.Duration(max(0, seconds))*time.Second, longestPause))
		}
	}
	return elapse(sc.ctx, d) == nil
}

// cleanUpBatch sends one batch beside the budget of the run: what removes records
// must not be kept back by it.
func (sc *scenario) cleanUpBatch(operation string, records []*record, mapped []rpc.Field) (*batch, error) {
	b := &batch{object: records[0].object, operation: operation, records: records}
	r, err := sc.session.send(sc.ctx, sc.Check().ID, request{
		method: rpc.MethodSyncBatch, params: sc.batchParams(operation, records, mapped),
		object: b.object.APIName, records: len(records), odd: operation == rpc.OperationDelete, unrepeated: true,
	})
	if err != nil {
		return nil, err
	}
	b.reply = r
	b.read()
	return b, nil
}

// hookKeys asks the author's cleanup hook to remove keys. It has its own time, however
// long the delete batches took.
func (sc *scenario) hookKeys(g *cleaning, left []journal.Key) {
	ctx := sc.ctx
	if _, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
	}
	ids := make([]json.RawMessage, len(left))
	for i, k := range left {
		ids[i] = k.Identifier
	}
	_, err := hook.Call(ctx, sc.opts.Hooks.Cleanup, sc.hooks, sc.opts.Hooks.Timeout, "cleanup",
		map[string]any{"action": "begin", "object": g.name, "identifier_field": g.field, "identifiers": ids})
	for _, k := range left {
		d := deletion{acknowledged: err == nil, hook: true}
		if err != nil {
			d.why = "cleanup hook: " + err.Error()
		}
		g.answers[exchange.KeyText(k.Identifier)] = d
	}
}

// Clean resumes the clean-up of an earlier run from its journal: it deletes only
// journalled keys that carry the run of the journal, and says exactly what is left
// behind.
func Clean(ctx context.Context, target Target, opts conformance.Options) (*conformance.Residue, error) {
	path := opts.Journal
	if path == "" {
		return nil, usage("the journal is missing: destkit clean --journal FILE URL")
	}
	opts.Journal = ""
	s, err := newSession(target, opts)
	if err != nil {
		return nil, err
	}
	defer s.close()
	res, err := s.cleanJournal(ctx, path)
	if res != nil {
		s.redactor.Value(res)
	}
	return res, s.suite().HideError(err)
}

func (s *session) cleanJournal(ctx context.Context, path string) (res *conformance.Residue, err error) {
	if s.journal, err = journal.Open(path); err != nil {
		return nil, usage("%v", err)
	}
	defer s.journal.Close()
	if s.owns, err = newOwnership(s.journal.Header().Run, s.opts, nil); err != nil {
		return nil, err
	}
	c, err := s.discover(ctx)
	if err != nil {
		return nil, err
	}
	if p := s.nothingToJudge(ctx, c); p != nil && !s.opts.Hooks.Cleanup.Set() {
		return nil, asError(p)
	}
	if len(c.objects) == 0 && !s.opts.Hooks.Cleanup.Set() {
		return nil, fmt.Errorf("read the objects of the endpoint: %s", s.redactor.String(c.first.Failure()))
	}
	s.found(c)
	res = &conformance.Residue{Journal: path, Refused: []conformance.Leftover{}, Unknown: []conformance.Leftover{}}
	s.cleanKeys(ctx, 0, true, res)
	return res, nil
}
