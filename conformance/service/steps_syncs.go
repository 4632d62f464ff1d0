package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/wire"
)

// syncsSteps are about syncs as resources (spec 2.6).
func syncsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^syncs that have:$`, func(p *play) any { return p.syncsHave }),
		step(`^a sync$`, func(p *play) any { return func() error { return p.given(nil) } }),
		step(`^a sync with:$`, func(p *play) any { return p.given }),
		step(`^a client creates a sync with:$`, func(p *play) any { return p.clientCreates }),
		step(`^a client creates a sync with each of these:$`, func(p *play) any { return p.clientCreatesEach }),
		step(`^a client updates the sync with:$`, func(p *play) any { return p.clientUpdates }),
		step(`^a client updates the sync with each of these:$`, func(p *play) any { return p.clientUpdatesEach }),
		step(`^a client updates the sync with nothing but:$`, func(p *play) any { return p.clientSendsOnly }),
		step(`^a client reads the sync$`, func(p *play) any { return p.clientReads }),

		step(`^the answer says:$`, func(p *play) any { return p.answerSays }),
		step(`^the answer has these types:$`, func(p *play) any { return p.answerHasTypes }),
		step(`^the sync shows:$`, func(p *play) any { return p.syncShows }),
		step(`^every request is accepted$`, func(p *play) any { return p.allAccepted }),
		step(`^every request is refused$`, func(p *play) any { return p.allRefused }),
		step(`^every sync shows what it was given$`, func(p *play) any { return p.allShown }),
	}
}

// syncsHave is for all syncs that the scenario makes from here on.
func (p *play) syncsHave(t *conformance.Table) error {
	g := p.ground()
	if _, err := p.draft(); err != nil { // placeholders need what it stands on
		return err
	}
	over, err := p.laid(g.over, t)
	g.over = over
	return err
}

// given makes a sync that the scenario builds on.
func (p *play) given(t *conformance.Table) error {
	body, err := p.draft()
	if err == nil && t != nil {
		body, err = p.laid(body, t)
	}
	if err != nil {
		return err
	}
	_, err = p.newSync(p.dest, p.ground().rows, "upsert", body)
	return err
}

// trial is a request that a scenario is about: the fields that it differs in.
type trial struct {
	fields map[string]any // by path; nil where one was left out
	answer *answer
	shown  *answer // the sync as it then stands; nil where none was made
}

func (t *trial) String() string {
	var parts []string
	for field, value := range t.fields {
		parts = append(parts, field+" "+brief(value))
	}
	return strings.Join(parts, ", ")
}

// tries notes the latest request, made with the rows of a table, and what became
// of the sync.
func (p *play) tries(t *conformance.Table, made bool) error {
	one := &trial{fields: map[string]any{}, answer: p.last}
	if made {
		shown, err := p.must(request{method: "GET", path: p.syncPath()})
		if err != nil {
			return err
		}
		one.shown = shown
	}
	for _, row := range cells(t) {
		if row["value"] == "nothing" {
			one.fields[row["field"]] = nil
			continue
		}
		v, err := p.value(row["value"])
		if err != nil {
			return err
		}
		one.fields[row["field"]] = v
	}
	p.trials = append(p.trials, one)
	return nil
}

func (p *play) clientCreates(t *conformance.Table) error {
	body, err := p.draft()
	if err == nil {
		body, err = p.laid(body, t)
	}
	if err != nil {
		return err
	}
	before := len(p.syncs)
	if _, err := p.creates(body); err != nil {
		return err
	}
	return p.tries(t, len(p.syncs) > before)
}

// single is a table with one row of another.
func single(t *conformance.Table, row int) *conformance.Table {
	return &conformance.Table{Rows: append(slices.Clone(t.Rows[:1]), t.Rows[row])}
}

// each does something with every row of a table by itself.
func each(t *conformance.Table, do func(*conformance.Table) error) error {
	for i := range t.Rows[1:] {
		if err := do(single(t, i+1)); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) clientCreatesEach(t *conformance.Table) error { return each(t, p.clientCreates) }

func (p *play) clientUpdatesEach(t *conformance.Table) error { return each(t, p.clientUpdates) }

// clientUpdates sends the whole sync again, with changes.
func (p *play) clientUpdates(t *conformance.Table) error {
	body, err := p.laid(p.latest().body, t)
	if err != nil {
		return err
	}
	return p.update(body, t)
}

// clientSendsOnly sends no more than the table has.
func (p *play) clientSendsOnly(t *conformance.Table) error {
	body, err := p.laid(map[string]any{}, t)
	if err != nil {
		return err
	}
	return p.update(body, t)
}

func (p *play) update(body map[string]any, t *conformance.Table) error {
	a, err := p.api(request{method: "PATCH", path: p.syncPath(), body: body})
	if err != nil {
		return err
	}
	if accepted(a) {
		kept := maps.Clone(p.latest().body)
		maps.Copy(kept, body)
		p.latest().body = kept
	}
	return p.tries(t, true)
}

func (p *play) clientReads() error {
	_, err := p.api(request{method: "GET", path: p.syncPath()})
	return err
}

// data is the resource of the latest answer; nil of an answer that has none.
func (p *play) data() *wire.Node { return p.last.at("data") }

func (p *play) answerSays(t *conformance.Table) error {
	for _, row := range cells(t) {
		wanted, err := p.value(row["value"])
		if err != nil {
			return err
		}
		n := down(p.last.json, row["field"])
		switch why := misses(wanted, valueOf(n), row["field"]); {
		case n == nil:
			p.broken(row["field"]+" is "+brief(wanted), row["field"]+" is missing: "+p.last.short(), p.last)
		case why != "":
			p.broken(row["field"]+" is "+brief(wanted), why, p.last)
		}
	}
	p.Proof("%d fields", len(t.Rows)-1)
	return p.Held()
}

func (p *play) answerHasTypes(t *conformance.Table) error {
	for _, row := range cells(t) {
		n := down(p.data(), row["field"])
		if !hasType(n, row["type"]) {
			p.broken(fmt.Sprintf("%s: %s", row["field"], row["type"]), fmt.Sprintf("%s is %s", row["field"], rawOf(n)), p.last)
		}
	}
	p.Proof("%d fields", len(t.Rows)-1)
	return p.Held()
}

// syncShows reads the latest sync and compares.
func (p *play) syncShows(t *conformance.Table) error {
	a, err := p.must(request{method: "GET", path: p.syncPath()})
	if err != nil {
		return err
	}
	for _, row := range cells(t) {
		wanted, err := p.value(row["value"])
		if err != nil {
			return err
		}
		p.compare(a, row["field"], wanted)
	}
	p.Proof("%d fields", len(t.Rows)-1)
	return p.Held()
}

// compare holds one field of a sync against what was written.
func (p *play) compare(a *answer, field string, wanted any) {
	n := down(a.at("data"), field)
	if why := misses(wanted, valueOf(n), field); why != "" {
		p.broken(fmt.Sprintf("the sync shows %s %s", field, brief(wanted)), why, a)
	}
}

// tried are the requests of the scenario; none at all decides nothing.
func (p *play) tried() ([]*trial, error) {
	if len(p.trials) == 0 {
		return nil, conformance.Outcome(conformance.Inconclusive, "", "nothing was asked of the service")
	}
	return p.trials, nil
}

func (p *play) allAccepted() error { return p.allAre(accepted, "is accepted") }

func (p *play) allRefused() error {
	return p.allAre(refused, "is refused with a status from 400 to 499")
}

func (p *play) allAre(are func(*answer) bool, what string) error {
	trials, err := p.tried()
	if err != nil {
		return err
	}
	for _, t := range trials {
		if !are(t.answer) {
			p.broken("a sync with "+t.String()+" "+what, t.answer.short(), t.answer)
		}
	}
	p.Proof("%d requests", len(trials))
	return p.Held()
}

// allShown compares every sync with what was written into it.
func (p *play) allShown() error {
	trials, err := p.tried()
	if err != nil {
		return err
	}
	for _, t := range trials {
		if t.shown == nil {
			p.broken("a sync with "+t.String()+" is made", t.answer.short(), t.answer)
			continue
		}
		for field, wanted := range t.fields {
			p.compare(t.shown, field, wanted)
		}
	}
	p.Proof("%d syncs", len(trials))
	return p.Held()
}
