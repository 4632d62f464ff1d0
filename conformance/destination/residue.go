package destination

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// An acknowledged delete is a claim. "0 records left behind" is said only where
// something else shows that they are gone: the read-back, or an update that is
// skipped for each of them (a witness).

// The ways to see what is there.
const (
	byReadback = "readback"
	byWitness  = "witness"
)

// sight is the way in which the records of one object can be seen.
type sight struct {
	by      string // "" when nothing shows them
	why     string // then
	skipped string // by a witness: what it says of a key that is not there
}

// lateDelete is how long an acknowledged delete may take to show. That it is late
// is for the checks to judge; here it would only name records that are gone.
const lateDelete = 500 * time.Millisecond

// seen is what the look after the deletion shows of one key; absent from the
// map: nothing.
type seen struct {
	there  bool
	copies int
}

// needsReadback is what would show whether records are gone.
const needsReadback = "give a read-back hook (--readback-url or --readback-command), and clean up again with the journal"

// findSight finds before the deletion how its effect can be seen: a way that
// shows nothing of records that are there shows nothing of their end.
func (sc *scenario) findSight(g *cleaning, witnesses bool) sight {
	why := "nothing shows whether they are gone: " + needsReadback
	switch {
	case sc.readback == nil:
	case sc.hookFault != nil:
		why = "the read-back hook failed its own test, so that it shows nothing"
	default:
		if _, shown := sc.hookShown.Load(g.name); shown {
			return sight{by: byReadback}
		}
		found, err := sc.lookThroughHook(g)
		if err != nil {
			why = "the read-back hook failed: " + sc.redactor.String(err.Error())
			break
		}
		if slices.ContainsFunc(g.keys, func(k journal.Key) bool { return found[exchange.KeyText(k.Identifier)].there }) {
			return sight{by: byReadback}
		}
		why = fmt.Sprintf("the read-back hook has shown no record of %q, so that it does not show their end", g.name)
	}
	if witnesses && sc.ledger.Contradicted(g.name) {
		return sight{why: "an update of a record that is there got the same answer in this run as one of an absent record, so that updates show nothing: " + needsReadback}
	}
	if witnesses {
		if said, ok := sc.calibrateWitness(g); ok {
			return sight{by: byWitness, skipped: said}
		}
	}
	return sight{why: why}
}

// look says of each key what shows after the deletion.
func (sc *scenario) look(g *cleaning) map[string]seen {
	switch g.sight.by {
	case byReadback:
		deadline := time.Now().Add(max(sc.opts.ReadbackWindow, lateDelete))
		for {
			found, err := sc.lookThroughHook(g)
			if err != nil {
				g.sight.why = "the read-back hook failed: " + sc.redactor.String(err.Error())
				return nil
			}
			late := slices.ContainsFunc(g.keys, func(k journal.Key) bool {
				text := exchange.KeyText(k.Identifier)
				return found[text].there && g.answers[text].acknowledged
			})
			if !late || !time.Now().Before(deadline) || elapse(sc.ctx, 100*time.Millisecond) != nil {
				return found
			}
		}
	case byWitness:
		return sc.lookByWitness(g)
	}
	return nil
}

// lookThroughHook asks the read-back for every key.
func (sc *scenario) lookThroughHook(g *cleaning) (map[string]seen, error) {
	ids := make([]json.RawMessage, len(g.keys))
	out := make(map[string]seen, len(g.keys))
	for i, k := range g.keys {
		ids[i] = k.Identifier
		out[exchange.KeyText(k.Identifier)] = seen{}
	}
	reply, err := hook.Paged(sc.readback)(sc.ctx, hook.ReadbackRequest{Object: g.name, IdentifierField: g.field, Identifiers: ids})
	if err != nil {
		return nil, err
	}
	for _, r := range reply.Records {
		out[exchange.KeyText(r.Identifier)] = seen{there: true, copies: r.Count}
	}
	return out, nil
}

// settle counts what became of the keys of one object, and notes in the journal
// those that are gone. What is only said to be gone stays in the journal.
func settle(res *conformance.Residue, sc *scenario, g *cleaning, found map[string]seen) {
	var gone []journal.Key
	cleaned := 0
	for _, k := range g.keys {
		text := exchange.KeyText(k.Identifier)
		answer, refused := g.answers[text], k.State == journal.Refused
		look, known := found[text]
		switch {
		case known && look.there:
			keep(res, sc, k, stillThere(k, answer, g.sight.by, look.copies), true)
			if g.sight.by == byReadback {
				g.stillThere = append(g.stillThere, k)
			}
		case known, refused && answer.acknowledged:
			gone = append(gone, k)
			if !refused {
				cleaned++
			}
		case refused: // every write of it was refused: nothing is there
		case answer.acknowledged:
			res.Unverified++
			res.UnverifiedReason = g.sight.why
		case answer.absent && k.State == journal.Unknown: // it never had an answer, and is not there
			gone = append(gone, k)
		default:
			keep(res, sc, k, answer.why, k.State != journal.Unknown && !answer.unanswered)
		}
	}
	res.Cleaned += cleaned
	if cleaned > 0 && !slices.Contains(res.VerifiedBy, g.sight.by) {
		res.VerifiedBy = append(res.VerifiedBy, g.sight.by)
	}
	if len(gone) == 0 {
		return
	}
	if err := sc.journal.Cleaned(gone); err != nil && res.UnverifiedReason == "" {
		res.UnverifiedReason = sc.redactor.String(err.Error())
	}
}

// keep files a key that may still be there; known: it is.
func keep(res *conformance.Residue, sc *scenario, k journal.Key, why string, known bool) {
	l := conformance.Leftover{Object: k.Object, Field: k.Field, Identifier: string(k.Identifier), Reason: sc.redactor.String(why)}
	if !known {
		res.Unknown = append(res.Unknown, l)
	} else {
		res.Refused = append(res.Refused, l)
	}
}

// stillThere says what was claimed of a record that is there.
func stillThere(k journal.Key, answer deletion, by string, copies int) string {
	shows := "the read-back still shows it"
	if by == byWitness {
		shows = "an update still finds it"
	}
	if copies > 1 {
		shows += fmt.Sprintf(" (%s)", quantity.Count(copies, "copy"))
	}
	switch {
	case answer.acknowledged && answer.hook:
		return "the cleanup hook said that it is gone, and " + shows
	case answer.acknowledged:
		return "acknowledged the delete, and " + shows
	case k.State == journal.Refused:
		return "refused to write it, and " + shows + "; " + answer.why
	}
	return answer.why + "; " + shows
}
