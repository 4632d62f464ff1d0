package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
)

// Place names the record in the ledger of the run.
func (r *Record) Place() model.Place {
	return model.Place{Object: r.Object.APIName, Field: r.ID.APIName, Key: exchange.KeyText(r.Key)}
}

// Expected is what the destination must hold for a record, as the ledger of the run has it.
type Expected struct {
	model.State
	Record *Record // as it was sent last
}

// AsSent is a record that must be there as this batch had it.
func AsSent(r *Record) *Expected {
	return &Expected{State: model.State{Known: true, Exists: true, Written: true, Values: r.Values}, Record: r}
}

// RecordsOf are the records of expectations.
func RecordsOf(es []*Expected) []*Record {
	return lists.Of(es, func(e *Expected) *Record { return e.Record })
}

// view is what the ledger of the run holds about the records of one scenario.
type view struct {
	ledger *model.Ledger
	at     map[model.Place]*Expected
	order  []model.Place
}

// NewView is a view of no record.
func (s *Session) NewView() *view { return &view{ledger: &s.Ledger, at: map[model.Place]*Expected{}} }

// Get returns what must hold for a record now.
func (v *view) Get(r *Record) *Expected {
	p := r.Place()
	e := v.at[p]
	if e == nil {
		e = &Expected{Record: r}
		v.at[p] = e
		v.order = append(v.order, p)
	}
	e.State = v.ledger.State(p)
	return e
}

// Follow makes the records of a batch those of the scenario.
func (v *view) Follow(b *Batch) {
	for _, r := range b.Records {
		v.Get(r).Record = r
	}
}

// All returns the expectations in the order in which their keys were first sent.
func (v *view) All() []*Expected {
	return lists.Of(v.order, func(p model.Place) *Expected { return v.Get(v.at[p].Record) })
}

// mostExhibited bounds replies that are kept for a finding, mostLooked records that are quickly read back, in bytes.
const mostExhibited, mostLooked = 16 << 10, 4 << 10

// entered is a batch as the ledger of the run has it.
func (sc *Scenario) entered(operation string, records []*Record) *model.Batch {
	b := &model.Batch{Check: sc.Check().ID, Operation: operation}
	for _, r := range records {
		size := 0
		for _, raw := range r.Values {
			size += len(raw)
		}
		n := model.Naming{Place: r.Place(), Values: r.Values, Odd: r.Odd.What != "" || len(r.Odd.Fields) > 0, Near: r.Near || !r.ID.Identifier, Bulk: sc.Check().Load || size > mostLooked || r.Odd.Nearly != nil}
		if operation == rpc.OperationDelete {
			n.Values = map[string]json.RawMessage{r.ID.APIName: r.Key}
		}
		for _, f := range r.Object.Identifiers() {
			if raw, sent := n.Values[f.APIName]; sent && f.APIName != r.ID.APIName && string(raw) != "null" {
				n.Others = append(n.Others, model.Place{Object: r.Object.APIName, Field: f.APIName, Key: exchange.KeyText(raw)})
			}
		}
		n.Fixed = func(field string) bool {
			f, declared := r.Object.Field(field)
			return declared && !f.Updateable && field != r.ID.APIName
		}
		b.Records = append(b.Records, n)
	}
	return b
}

// enter records in the ledger how a batch was answered; unsent: no byte of it has left.
func (sc *Scenario) enter(e *model.Batch, b *Batch, unsent bool) {
	if b.Reply != nil && len(b.Reply.Body) <= mostExhibited {
		e.Exhibit = b.Reply
	}
	sc.Ledger.End(e, lists.Of(b.Records, func(r *Record) model.Answer {
		switch {
		case unsent:
			return model.Answer{Outcome: model.Unsent}
		case b.Reply == nil:
			return model.Answer{}
		case sc.Skipped(b, r) && b.Succeeded(r):
			return model.Answer{Outcome: model.Acknowledged, Words: "skipped " + SkipWords(b, r)}
		case b.Succeeded(r):
			return model.Answer{Outcome: model.Acknowledged}
		case b.Failed(r):
			return model.Answer{Outcome: model.Refused, Words: "skipped " + SkipWords(b, r)}
		case b.Refused(r):
			return model.Answer{Outcome: model.Refused, Words: b.RefusalOf(r)}
		}
		return model.Answer{}
	}))
}

// Observed is what a read-back shows for one key.
type Observed = model.Sight

// Observe reads records back by the text of their keys. A hook that fails is a HARNESS_ERROR, never a finding.
func (sc *Scenario) Observe(records []*Record) (map[string]Observed, error) {
	if err := sc.NeedReadback(); err != nil {
		return nil, err
	}
	if err := sc.AwaitWrites(); err != nil {
		return nil, err
	}
	type group struct{ object, field string }
	ids := map[group][]json.RawMessage{}
	var order []group
	for _, r := range records {
		g := group{r.Object.APIName, r.ID.APIName}
		if ids[g] == nil {
			order = append(order, g)
		}
		ids[g] = append(ids[g], r.Key)
	}
	out := map[string]Observed{}
	for _, g := range order {
		seen, err := sc.LookUp(g.object, g.field, ids[g])
		if err != nil {
			return nil, err
		}
		for _, raw := range ids[g] {
			text := exchange.KeyText(raw)
			if got, there := seen[text]; there {
				out[text] = got
			}
			sc.Ledger.Saw(model.Place{Object: g.object, Field: g.field, Key: text}, seen[text])
		}
	}
	return out, nil
}

// LookUp queries the hook for keys of one object and field; the result omits absent ones.
func (sc *Scenario) LookUp(object, field string, ids []json.RawMessage) (map[string]Observed, error) {
	sc.HookAsked = sc.HookAsked || sc.Object != nil && object == sc.Object.APIName
	started := time.Now()
	request := hook.ReadbackRequest{Object: object, IdentifierField: field, Identifiers: ids}
	reply, err := hook.Paged(sc.Readback)(sc.Ctx, request)
	if err != nil && line.BrokenOff(err) && sc.JudgesAlone.Load() { // by a restart, as the first time
		reply, err = hook.Paged(sc.Readback)(sc.Ctx, request)
	}
	if err != nil {
		if sc.Ctx.Err() != nil {
			return nil, line.Overtime(sc.Ctx)
		}
		// Authors serve read-back from the process that is judged.
		if k := hook.KindOf(err); (k == hook.KindUnreachable || k == hook.KindTimeout) && !sc.Watch.Expected() {
			if away := sc.OutageAt(sc.Ctx, sc.Client, started, &line.Outage{Call: "the read-back of " + sc.Check().ID}); away != nil {
				return nil, away
			}
			if line.BrokenOff(err) && !sc.JudgesAlone.Load() {
				return nil, wire.ErrAway // a restart may be over already: judged once more, alone
			}
		}
		return nil, line.Harness("%w", errors.New(sc.Redactor.String(err.Error())))
	}
	for _, field := range reply.Hidden {
		sc.hookHides.Store([2]string{object, field}, true)
	}
	out := map[string]Observed{}
	for _, rec := range reply.Records {
		out[exchange.KeyText(rec.Identifier)] = Observed{Count: rec.Count, Fields: rec.Fields}
	}
	if len(out) > 0 {
		sc.HookShown.Store(object, true)
	}
	return out, nil
}

// LateWaitOf is how long to look again, and what to call in vain: the whole time is waited once for each operation.
func (sc *Scenario) LateWaitOf(operation string) (wait time.Duration, inVain func()) {
	key := sc.Object.APIName + " " + operation
	wait = sc.Opts.LateWait
	if _, known := sc.neverLate.Load(key); known {
		wait /= 10
	}
	return wait, func() { sc.neverLate.Store(key, true) }
}

// Poll reads back until the records of an operation are as wanted, for a bounded time.
func (sc *Scenario) Poll(operation string, records []*Record, good func(map[string]Observed) bool) (map[string]Observed, error) {
	wait, inVain := sc.LateWaitOf(operation)
	seen, err := sc.observeFor(wait, 50*time.Millisecond, records, good)
	if err == nil && !good(seen) {
		inVain()
	}
	return seen, err
}

// ObserveUntil reads back until good holds or the read-back window is over.
func (sc *Scenario) ObserveUntil(records []*Record, good func(map[string]Observed) bool) (map[string]Observed, error) {
	if err := sc.AwaitWrites(); err != nil {
		return nil, err
	}
	return sc.observeFor(sc.Opts.ReadbackWindow, min(100*time.Millisecond, sc.Opts.ReadbackWindow), records, good)
}

// observeFor reads back after each pause until good holds or the time is over.
func (sc *Scenario) observeFor(limit, pause time.Duration, records []*Record, good func(map[string]Observed) bool) (map[string]Observed, error) {
	deadline := time.Now().Add(limit)
	for {
		seen, err := sc.Observe(records)
		if err != nil || good(seen) || !time.Now().Before(deadline) {
			return seen, err
		}
		if err := line.Elapse(sc.Ctx, pause); err != nil {
			return nil, err
		}
	}
}

// Appears waits for records that were not there.
func (sc *Scenario) Appears(operation string, records []*Record) (after time.Duration, all bool) {
	from := time.Now()
	complete := func(s map[string]Observed) bool { return len(s) == len(records) }
	seen, err := sc.Poll(operation, records, complete)
	return time.Since(from), err == nil && complete(seen)
}

// HookShows explains a difference that a read-back hook makes when it gives what the
// database keeps instead of the declared type: many have no booleans and no lists. The
// endpoint is right then, so the hook is named first. It is "" for other differences.
func HookShows(p values.Pair) (cause, fix string) {
	var shown, what string
	switch {
	case p.Field.Array && listAsText(p.Sent, p.Stored):
		shown, what = "the text of a list for the list", "a list"
	case p.Field.Type != rpc.TypeBoolean || p.Field.Array || !boolAsOther(string(p.Sent), string(p.Stored)):
		return "", ""
	case p.Stored[0] == '"': // one cause for both values
		shown, what = "text for true and false", "true and false"
	default:
		shown, what = "1 for true and 0 for false", "true and false"
	}
	return fmt.Sprintf("the read-back hook shows %s, as the database keeps it; or the endpoint stores another type than the declared one.", shown),
		fmt.Sprintf("let the hook give %s (docs/judge.md, the read-back hook); if it does, store the declared type.", what)
}

// boolAsOther reports whether a boolean is shown by a number or a text that means the same.
func boolAsOther(sent, stored string) bool {
	means := map[string][]string{"true": {"1", "t", "true", "y", "yes"}, "false": {"0", "f", "false", "n", "no"}}[sent]
	return stored != sent && slices.ContainsFunc(means, func(word string) bool { return strings.EqualFold(strings.Trim(stored, `"`), word) })
}

// listAsText reports whether a text has the items of a list, as JSON or as an array of PostgreSQL.
func listAsText(sent, stored json.RawMessage) bool {
	var text string
	var items, held []any
	if json.Unmarshal(stored, &text) != nil || json.Unmarshal(sent, &items) != nil {
		return false
	}
	if inner, ok := strings.CutPrefix(text, "{"); ok && strings.HasSuffix(inner, "}") {
		return inner == "}" || strings.Count(inner, ",") >= len(items)-1
	}
	return json.Unmarshal([]byte(text), &held) == nil && len(held) == len(items)
}
