package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
)

// Observed is what a read-back says of one key.
type Observed struct {
	Count  int // 0: absent
	Fields map[string]json.RawMessage
}

// Observe reads records back through the hook, by the text of their keys. A
// hook that fails or contradicts itself is a HARNESS_ERROR, never a finding.
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
			sc.Ledger.Saw(model.Place{Object: g.object, Field: g.field, Key: text}, seen[text].Sight())
		}
	}
	return out, nil
}

func (o Observed) Sight() model.Sight { return model.Sight{Count: o.Count, Fields: o.Fields} }

// LookUp asks the hook for keys of one object and field; what is not there is left out.
func (sc *Scenario) LookUp(object, field string, ids []json.RawMessage) (map[string]Observed, error) {
	sc.HookAsked = sc.HookAsked || sc.Object != nil && object == sc.Object.APIName
	started := time.Now()
	reply, err := hook.Paged(sc.Readback)(sc.Ctx, hook.ReadbackRequest{Object: object, IdentifierField: field, Identifiers: ids})
	if err != nil {
		if sc.Ctx.Err() != nil {
			return nil, line.Overtime(sc.Ctx)
		}
		if away := sc.hookAway(err, started); away != nil {
			return nil, away
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

// neverLate remembers, for a run, by which operations nothing came later: it is waited
// for once for each.
type neverLate struct {
	mu   sync.Mutex
	seen map[string]bool
}

// LateWaitOf is how long to look again for what an operation has written, and what
// to call when nothing came.
func (sc *Scenario) LateWaitOf(operation string) (wait time.Duration, inVain func()) {
	n, key := &sc.NeverLate, sc.Object.APIName+" "+operation
	n.mu.Lock()
	defer n.mu.Unlock()
	wait = sc.Opts.LateWait
	if n.seen[key] {
		wait /= 10
	}
	return wait, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.seen == nil {
			n.seen = map[string]bool{}
		}
		n.seen[key] = true
	}
}

// Poll reads back until what an operation wrote is as wanted, for a bounded time.
func (sc *Scenario) Poll(operation string, records []*Record, good func(map[string]Observed) bool) (map[string]Observed, error) {
	wait, inVain := sc.LateWaitOf(operation)
	deadline := time.Now().Add(wait)
	for {
		seen, err := sc.Observe(records)
		if err != nil || good(seen) {
			return seen, err
		}
		if !time.Now().Before(deadline) {
			inVain()
			return seen, nil
		}
		if err := line.Elapse(sc.Ctx, 50*time.Millisecond); err != nil {
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
	shown, what := "", ""
	switch {
	case p.Field.Array && listAsText(p.Sent, p.Stored):
		shown, what = "the text of a list for the list", "a list"
	case p.Field.Type == rpc.TypeBoolean && !p.Field.Array && boolAsOther(string(p.Sent), string(p.Stored)):
		shown, what = "1 for true and 0 for false", "true and false" // one cause for both values
		if p.Stored[0] == '"' {
			shown = "text for true and false"
		}
	default:
		return "", ""
	}
	return fmt.Sprintf("the read-back hook shows %s, as the database keeps it; or the endpoint stores another type than the declared one.", shown),
		fmt.Sprintf("let the hook give %s (docs/judge.md, the read-back hook); if it does, store the declared type.", what)
}

// boolAsOther reports whether a boolean is shown by a number or a text that means the same.
func boolAsOther(sent, stored string) bool {
	means := map[string][]string{"true": {"1", "t", "true", "y", "yes"}, "false": {"0", "f", "false", "n", "no"}}[sent]
	for _, word := range means {
		if strings.EqualFold(strings.Trim(stored, `"`), word) && stored != sent {
			return true
		}
	}
	return false
}

// listAsText reports whether a list is shown as a text that holds the same items, as JSON
// or as the text of an array in PostgreSQL.
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
