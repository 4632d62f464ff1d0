package service

import (
	"maps"
	"strings"

	"github.com/destkit/destkit/conformance"
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
		step(`^a client updates the sync with its required fields alone$`, func(p *play) any { return p.clientSendsRequired }),
		step(`^a client reads the sync$`, func(p *play) any { return p.clientReads }),

		step(`^a client deletes the sync$`, func(p *play) any { return p.clientDeletes }),
		step(`^an object with (field ordering|append|advanced configuration|references)$`, func(p *play) any { return p.anObject }),
		step(`^(an audience)$`, func(p *play) any { return p.anObject }),
		step(`^a destination that makes fields on write$`, func(p *play) any { return p.makesFields }),
		step(`^a topic of a streaming source$`, func(p *play) any { return p.aTopic }),
		step(`^a table of the source$`, func(p *play) any { return p.aTable }),
		step(`^a client creates a sync with every key of its advanced configuration$`, func(p *play) any { return p.createsAdvanced }),

		step(`^the answer says:$`, func(p *play) any { return p.answerSays }),
		step(`^the answer has these types:$`, func(p *play) any { return p.answerHasTypes }),
		step(`^the sync shows:$`, func(p *play) any { return p.syncShows }),
		step(`^every request is accepted$`, func(p *play) any { return p.allAccepted }),
		step(`^every request is refused$`, func(p *play) any { return p.allRefused }),
		step(`^every sync shows what it was given$`, func(p *play) any { return p.allShown }),
		step(`^every request is refused, or the sync does not show what was asked for$`, func(p *play) any { return p.noneShown }),
		step(`^(a|no) sync was made$`, func(p *play) any { return p.wasMade }),
		step(`^the list of syncs shows the sync as it is read by its id$`, func(p *play) any { return p.listedAlike }),
	}
}

// syncsHave is for all syncs that the scenario makes from here on.
func (p *play) syncsHave(t *conformance.Table) error {
	g := p.ground()
	if _, err := p.draft(); err != nil { // placeholders need what it stands on
		return err
	}
	over, err := p.laid(g.over, t)
	if err != nil {
		return err
	}
	for _, line := range cells(t) {
		if line["value"] == "nothing" {
			over[line["field"]] = nil
		}
	}
	g.over = over
	return nil
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
	label  any            // of the sync that was asked for
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

// asks creates a sync and notes the fields that it is about.
func (p *play) asks(body, fields map[string]any) error {
	before := len(p.syncs)
	if _, err := p.creates(body); err != nil {
		return err
	}
	return p.tries(body, fields, len(p.syncs) > before)
}

// tries notes the latest request, and what became of the sync.
func (p *play) tries(body, fields map[string]any, made bool) error {
	// As JSON has them, to be compared with what is read.
	one := &trial{fields: valueOf(mustParse(fields)).(map[string]any), label: body["label"], answer: p.last}
	if made {
		shown, err := p.must(request{method: "GET", path: p.syncPath()})
		if err != nil {
			return err
		}
		one.shown = shown
	}
	if p.judged {
		p.trials, p.judged = nil, false
	}
	p.trials = append(p.trials, one)
	return nil
}

// asked are the rows of a table as fields by path; nil for one that is left out.
func (p *play) asked(t *conformance.Table) (map[string]any, error) {
	fields := map[string]any{}
	for _, row := range cells(t) {
		if row["value"] == "nothing" {
			fields[row["field"]] = nil
			continue
		}
		v, err := p.value(row["value"])
		if err != nil {
			return nil, err
		}
		fields[row["field"]] = v
	}
	return fields, nil
}

func (p *play) clientCreates(t *conformance.Table) error {
	body, err := p.draft()
	if err == nil {
		body, err = p.laid(body, t)
	}
	if err != nil {
		return err
	}
	fields, err := p.asked(t)
	if err != nil {
		return err
	}
	return p.asks(body, fields)
}

// single is a table with one row of another.
func single(t *conformance.Table, row int) *conformance.Table {
	return conformance.NewTable(t.Rows()[0], t.Rows()[row])
}

// each does something with every row of a table by itself.
func each(t *conformance.Table, do func(*conformance.Table) error) error {
	for i := range t.Rows()[1:] {
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
	fields, err := p.asked(t)
	if err != nil {
		return err
	}
	return p.update(body, fields)
}

// clientSendsOnly sends no more than the table has.
func (p *play) clientSendsOnly(t *conformance.Table) error {
	body, err := p.laid(map[string]any{}, t)
	if err != nil {
		return err
	}
	fields, err := p.asked(t)
	if err != nil {
		return err
	}
	return p.update(body, fields)
}

// clientSendsRequired sends what an update must have (spec 4.1.1).
func (p *play) clientSendsRequired() error {
	body, whole := map[string]any{}, p.latest().body
	for _, field := range []string{"operation", "destination_attributes", "mappings", "source_attributes"} {
		body[field] = whole[field]
	}
	return p.update(body, map[string]any{})
}

func (p *play) update(body, fields map[string]any) error {
	a, err := p.api(request{method: "PATCH", path: p.syncPath(), body: body})
	if err != nil {
		return err
	}
	if accepted(a) && body["validate_only"] != true {
		kept := maps.Clone(p.latest().body)
		maps.Copy(kept, body)
		p.latest().body = kept
	}
	return p.tries(body, fields, accepted(a))
}

func (p *play) clientDeletes() error {
	_, err := p.api(request{method: "DELETE", path: p.syncPath()})
	return err
}

func (p *play) clientReads() error {
	_, err := p.api(request{method: "GET", path: p.syncPath()})
	return err
}
