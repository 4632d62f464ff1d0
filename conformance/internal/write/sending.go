package write

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Sending is the manner in which a step sends its records; the zero value sends
// ordinary records in batches as large as the endpoint allows.
type Sending struct {
	Identifiers []rpc.Field                                 // that Manner has found; at least one
	Every       bool                                        // maps every field that can be written, not only the ordinary ones
	Reshape     func(sc *Scenario, r *Record) *Record       // changes each record; nil: as it is
	Alone       bool                                        // records of a refused batch go again, each alone
	twice       bool                                        // each record is in its batch twice
	plan        func(sc *Scenario, s Set) Plan              // nil: as the service would send it
	through     func(sc *Scenario, s Set) ([]*Batch, error) // sends a set; nil: in batches
	single      bool                                        // one record in a batch; else as many as allowed
	spread      bool                                        // over as many batches as may be under way at once
	parallel    bool                                        // all batches at once
}

// Shape changes a record as the manner requires.
func (m *Sending) Shape(sc *Scenario, r *Record) *Record {
	if m.Reshape == nil {
		return r
	}
	return m.Reshape(sc, r)
}

// manners are the words behind the operation of a step; Manner completes those that need the object.
var manners = map[string]Sending{
	"":                                          {},
	"mapping every field":                       {Every: true},
	"mapping every field but arrays":            {Every: true, Reshape: withoutArrays},
	"mapping a new field":                       {Reshape: func(sc *Scenario, r *Record) *Record { return r.With(sc.NewFieldName(), values.Quote("new")) }},
	"mapping only what is required":             {Reshape: OnlyRequired},
	"mapping every second field":                {Reshape: everySecond},
	"mapping only the identifier":               {Reshape: OnlyIdentifier, Alone: true},
	"mapping one field beyond what is required": {Reshape: oneBeyond},
	"mapping fewer fields":                      {Reshape: fewerFields},
	"with null in every optional field":         {Every: true, Reshape: NullRest},
	"with nulls by turns":                       {Every: true, Reshape: NullsInTurn},
	"with arrays of each length":                {Reshape: arraysInTurn},
	"each twice":                                {twice: true},
	"in parallel batches":                       {parallel: true, spread: true},
	"one by one":                                {single: true},
	"one by one in parallel":                    {single: true, parallel: true},
	"one by one in parallel, each followed by a witness": {through: (*Scenario).sendsInLanes},
	"in bodies of 0.2, 1 and 4 MB":                       {through: (*Scenario).sendsLarge},
	"at the declared rate":                               {through: (*Scenario).sendsAtRate},
	"cutting the reply":                                  {through: (*Scenario).sendAndCut},
	"8 times in parallel with other values":              {through: func(sc *Scenario, s Set) ([]*Batch, error) { return sc.sendCopies(s, false) }},
	"8 times in parallel with another field each":        {through: func(sc *Scenario, s Set) ([]*Batch, error) { return sc.sendCopies(s, true) }},
	"4 times in parallel":                                {through: (*Scenario).sendRounds},
	"with members in different orders":                   {plan: reversedPlan},
	"without their identifier":                           {plan: withoutKeyPlan},
	"without credentials":                                {plan: func(*Scenario, Set) Plan { return Plan{Header: http.Header{"Authorization": nil}} }},
	"on a fresh connection":                              {plan: func(*Scenario, Set) Plan { return Plan{Fresh: true} }},
	"in another sync run":                                {},
	"in another sync":                                    {},
	"by each identifier":                                 {},
	"by the integer identifier":                          {},
	"by the second identifier":                           {Reshape: withoutOtherIdentifiers},
	"by a field that is no identifier":                   {Reshape: WithIdentifiers},
}

// Manner reads the words behind the operation of a step.
func (sc *Scenario) Manner(words string) (*Sending, error) {
	words = strings.TrimPrefix(words, ", ")
	m, known := manners[words]
	if !known {
		return nil, line.Harness("no manner is called %q", words)
	}
	m.Identifiers = []rpc.Field{{}}
	switch o := sc.Object; words {
	case "by each identifier":
		m.Identifiers = o.Identifiers()
	case "by the integer identifier":
		m.Identifiers = lists.Where(o.Identifiers(), func(f rpc.Field) bool { return f.Type == rpc.TypeInteger })[:1]
	case "by the second identifier":
		m.Identifiers = o.Identifiers()[1:2]
		fixed := func(f rpc.Field) bool {
			return f.APIName != m.Identifiers[0].APIName && f.Required && !f.Updateable
		}
		if i := slices.IndexFunc(o.Identifiers(), fixed); i >= 0 {
			return nil, line.NotApplicable("%s is required and may not be updated, so that every plan matches by it as well", o.Identifiers()[i].APIName)
		}
	case "by a field that is no identifier":
		m.Identifiers = append(o.NoIdentifier(), rpc.Field{})[:1]
	case "in another sync run":
		sc.run = sc.syncRun() + 1 // of the same sync
	case "in another sync":
		sc.syncRun()
		sc.run = sc.syncRuns.Add(2)
	case "each twice":
		if most := sc.LargestBatch(); most < 2 {
			return nil, line.NotApplicable("the endpoint takes batches of %d at most, and the check needs 2 records in one", most)
		}
	}
	return &m, nil
}

// reversedPlan sends the schema in reverse order, and the members of every second record.
func reversedPlan(sc *Scenario, s Set) Plan {
	mapped := mappedFields(s.Records)
	back := slices.Clone(mapped)
	slices.Reverse(back)
	return Plan{Params: sc.params(s.Operation, s.Records[0], back, s.Records, mapped, back)}
}

// NewFieldName is the field that OBJ-005 creates on write.
func (sc *Scenario) NewFieldName() string { return "zz_conf_" + sc.Keys.Run }

// withoutKeyPlan is what the service never sends, as the text of the check states: the first half
// of the records without the identifier, the rest with null in its place.
func withoutKeyPlan(sc *Scenario, s Set) Plan {
	first, mapped := s.Records[0], mappedFields(s.Records)
	keyless := make([]*Record, len(s.Records))
	for i, r := range s.Records {
		keyless[i] = r.With(r.ID.APIName, json.RawMessage("null"))
		if i < len(keyless)/2 {
			delete(keyless[i].Values, r.ID.APIName)
		}
	}
	return Plan{Params: sc.params(s.Operation, first, mapped, keyless, mapped), Odd: true}
}

// send sends one set.
func (m *Sending) send(sc *Scenario, s Set) ([]*Batch, error) {
	size := sc.LargestBatch()
	switch {
	case m.through != nil:
		return m.through(sc, s)
	case m.single:
		size = 1
	case m.spread:
		if err := sc.NeedsSecondConnection(); err != nil {
			return nil, err
		}
		lanes := 1
		if sc.Catalog.Speed != nil {
			lanes = min(line.ParallelCap(*sc.Catalog.Speed), len(s.Records))
		}
		size = min((len(s.Records)+lanes-1)/lanes, size)
	}
	parts := slices.Chunk(s.Records, size)
	if m.parallel {
		return sc.writeAtOnce(setsOf(s.Operation, slices.Collect(parts)))
	}
	return sc.WriteEach(s.Operation, parts, func(records []*Record) Plan {
		if m.plan == nil {
			return Plan{}
		}
		return m.plan(sc, Set{s.Operation, records})
	})
}

// setsOf are batches of one operation.
func setsOf(operation string, parts [][]*Record) []Set {
	return lists.Of(parts, func(records []*Record) Set { return Set{operation, records} })
}

// writeAtOnce sends batches in parallel; no more are under way than is declared.
func (sc *Scenario) writeAtOnce(parts []Set) ([]*Batch, error) {
	out, errs := make([]*Batch, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, s := range parts {
		wg.Go(func() { out[i], errs[i] = sc.batch(s.Operation, s.Records, Plan{}) })
	}
	wg.Wait()
	sc.KeepBatches(out...)
	return lists.Where(out, func(b *Batch) bool { return b != nil }), cmp.Or(errs...)
}

// sendAndCut closes the connection in the middle of the reply: the fate of the records is unknown.
func (sc *Scenario) sendAndCut(s Set) ([]*Batch, error) {
	for part := range slices.Chunk(s.Records, sc.LargestBatch()) {
		if _, err := sc.batch(s.Operation, part, Plan{CutReply: 1}); err != nil {
			return nil, err
		}
	}
	for _, r := range s.Records {
		sc.Model.Get(r)
	}
	return nil, nil
}

// sendCopies sends the same keys in 8 parallel batches: each with other values or, split, with another field. Every second
// batch names the keys backwards, which shows locks that wait for each other.
func (sc *Scenario) sendCopies(s Set, split bool) ([]*Batch, error) {
	if err := sc.NeedsSecondConnection(); err != nil {
		return nil, err
	}
	names := lists.Where(s.Records[0].optional(), func(name string) bool { // values that show of which record and field they are
		f := sc.Object.FieldOrNew(name)
		return !f.Array && (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger)
	})
	sc.Parallel.Copies = make([][]*Record, 8)
	var parts [][]*Record
	for i := range sc.Parallel.Copies {
		version, of := i+1, names
		if split {
			version, of = len(sc.Parallel.Copies)+1, names[min(i, len(names)):min(i+1, len(names))]
		}
		sc.Parallel.Copies[i] = lists.Of(s.Records, func(r *Record) *Record {
			return sc.Changed(r, version).keep(func(f rpc.Field) bool { return f.Required || slices.Contains(of, f.APIName) })
		})
		records := slices.Clone(sc.Parallel.Copies[i])
		if i%2 == 1 {
			slices.Reverse(records)
		}
		parts = slices.AppendSeq(parts, slices.Chunk(records, sc.LargestBatch()))
	}
	return sc.writeAtOnce(setsOf(s.Operation, parts))
}

// sendRounds sends sets of new records of every operation in parallel, when all are made.
func (sc *Scenario) sendRounds(s Set) ([]*Batch, error) {
	if err := sc.NeedsSecondConnection(); err != nil {
		return nil, err
	}
	for range 4 {
		records, err := sc.Make(len(s.Records), s.Operation, rpc.Field{}, &Sending{})
		if err != nil {
			return nil, err
		}
		sc.Parallel.rounds = append(sc.Parallel.rounds, setsOf(s.Operation, slices.Collect(slices.Chunk(records, sc.LargestBatch())))...)
	}
	if s.Operation != sc.Sets[len(sc.Sets)-1].Operation {
		return nil, nil
	}
	return sc.writeAtOnce(sc.Parallel.rounds)
}

// sendsLarge sends three batches with long strings, as far as these and the declared batch size go.
func (sc *Scenario) sendsLarge(s Set) ([]*Batch, error) {
	sizes := []int{200_000, 1_000_000, 4_000_000} // of bodies; 100 KB is a common default limit
	const longest = 65_000                        // of a string
	texts := sc.Object.Takes(rpc.Field{}, rpc.TypeString, true)
	if len(texts) == 0 {
		return nil, line.NotApplicable("%s has no string field to fill", sc.Object)
	}
	most := min(len(s.Records)/len(sizes), sc.LargestBatch())
	var out []*Batch
	for i, size := range sizes {
		if size/most > longest {
			sc.Note("bodies of %s do not fit into %s", quantity.Count(size, "byte"), quantity.Count(most, "record"))
			break
		}
		filler := values.Quote(strings.Repeat("0123456789", size/most/10))
		part := slices.Clone(s.Records[i*most : (i+1)*most])
		for k := range part {
			part[k] = OnlyRequired(sc, part[k]).With(texts[0].APIName, filler)
		}
		b, err := sc.WriteOne(s.Operation, part, Plan{})
		if err != nil {
			return out, err
		}
		out = append(out, b)
	}
	return out, nil
}

// sendsAtRate sends batches as fast and as many at once as is declared, until the records or the time of the load
// checks are used up (spec 8).
func (sc *Scenario) sendsAtRate(s Set) ([]*Batch, error) {
	speed := sc.Catalog.Speed
	if speed == nil {
		return nil, engine.Inconclusive("", "no speed is declared")
	}
	start := time.Now()
	slots := make(chan struct{}, line.ParallelCap(*speed))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	var late atomic.Bool // one missed deadline is enough
	var out []*Batch
	sent := 0
	for part := range slices.Chunk(s.Records, int(min(50, speed.MaximumBatchSize))) {
		// No free lane for so long: the endpoint has fallen behind for good, and the batches under
		// way will show it.
		stuck := time.NewTimer(sc.Opts.BatchTimeout / 4)
		select {
		case slots <- struct{}{}:
			stuck.Stop()
		case <-stuck.C:
			late.Store(true)
		}
		if time.Since(start) > sc.Opts.LoadDuration || late.Load() {
			break
		}
		sent += len(part)
		wg.Go(func() {
			defer func() { <-slots }()
			b, err := sc.batch(s.Operation, part, Plan{Unrepeated: true})
			if b != nil && b.Reply.Kind == wire.KindTimeout {
				late.Store(true)
			}
			mu.Lock()
			defer mu.Unlock()
			if b != nil {
				out = append(out, b)
			}
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	sc.KeepBatches(out...)
	due := float64(sent) / float64(speed.MaximumRecordsPerSecond)
	sc.Measured.Reached = new(due / max(time.Since(start).Seconds(), 1e-9))
	return out, first
}

// WitnessVersion is the version of the values that witnesses carry.
const WitnessVersion = 100

// lane is one record that is created and witnessed at once.
type lane struct{ Created, Witness *Batch }

// sendsInLanes creates records one by one in parallel lanes; each lane sends its
// witness operation as soon as the creation is acknowledged (spec 4.2.2).
func (sc *Scenario) sendsInLanes(s Set) ([]*Batch, error) {
	witness := sc.Object.FirstOf(rpc.OperationUpdate, rpc.OperationInsert)
	lanes, errs := make([]lane, len(s.Records)), make([]error, len(s.Records))
	var running errgroup.Group
	running.SetLimit(64)
	for i, r := range s.Records {
		running.Go(func() error {
			l := &lanes[i]
			if l.Created, errs[i] = sc.batch(s.Operation, []*Record{r}, Plan{}); errs[i] == nil && l.Created.Succeeded(r) {
				l.Witness, errs[i] = sc.batch(witness, ForOperation(witness, []*Record{sc.Changed(r, WitnessVersion)}), Plan{})
			}
			return nil
		})
	}
	_ = running.Wait() // each lane has its error
	sent := lists.Where(lists.Of(lanes, func(l lane) *Batch { return l.Created }), func(b *Batch) bool { return b != nil })
	sc.KeepBatches(sent...)
	sc.Parallel.Lanes, sc.Parallel.Witness = lanes, witness
	return sent, cmp.Or(errs...)
}
