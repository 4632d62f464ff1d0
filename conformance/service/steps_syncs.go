package service

import (
	"maps"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// syncsSteps are about syncs as resources (spec 2.6).
func syncsSteps() []engine.Step {
	return []engine.Step{
		step(`^syncs that have:$`, func(sc *scenario) any { return sc.syncsHave }),
		step(`^a sync$`, func(sc *scenario) any { return func() error { return sc.given(nil) } }),
		step(`^a sync with:$`, func(sc *scenario) any { return sc.given }),
		step(`^a client creates a sync with:$`, func(sc *scenario) any { return sc.clientCreates }),
		step(`^a client creates a sync with each of these:$`, func(sc *scenario) any { return each(sc.clientCreates) }),
		step(`^a client updates the sync with:$`, func(sc *scenario) any { return sc.clientUpdates }),
		step(`^a client updates the sync with each of these:$`, func(sc *scenario) any { return each(sc.clientUpdates) }),
		step(`^a client updates the sync with its required fields alone$`, func(sc *scenario) any { return sc.clientSendsRequired }),

		step(`^an object with (field ordering|append|advanced configuration|references|mirror alone)$`, func(sc *scenario) any { return sc.anObject }),
		step(`^a destination that makes fields on write$`, func(sc *scenario) any { return sc.makesFields }),
		step(`^a table of the source$`, func(sc *scenario) any { return sc.aTable }),
		step(`^a client creates a sync with every key of its advanced configuration$`, func(sc *scenario) any { return sc.createsAdvanced }),

		step(`^the sync shows:$`, func(sc *scenario) any { return sc.syncShows }),
		step(`^every request is accepted$`, func(sc *scenario) any {
			return func() error { return sc.allAre(accepted, "is accepted") }
		}),
		step(`^every request is refused$`, func(sc *scenario) any {
			return func() error { return sc.allAre(refused, "is refused with a status from 400 to 499") }
		}),
		step(`^every sync shows what it was given$`, func(sc *scenario) any { return sc.allShown }),
		step(`^the list "([^"]+)" shows the sync as it is read by its id$`, func(sc *scenario) any { return sc.syncListedAlike }),
		step(`^every request is refused, or the sync does not show what was asked for$`, func(sc *scenario) any { return sc.noneShown }),
	}
}

// syncsHave is for all syncs that the scenario makes from here on.
func (sc *scenario) syncsHave(t *engine.Table) error {
	g := sc.nextSync()
	if _, err := sc.draft(); err != nil { // placeholders need what it stands on
		return err
	}
	over, err := sc.laid(g.over, t)
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
func (sc *scenario) given(t *engine.Table) error {
	body, err := sc.draft()
	if err == nil && t != nil {
		body, err = sc.laid(body, t)
	}
	if err != nil {
		return err
	}
	_, err = sc.newSync(sc.dest, sc.nextSync().rows, "upsert", body)
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
		parts = append(parts, field+" "+jsonvalue.Brief(value))
	}
	return strings.Join(parts, ", ")
}

// asks creates a sync and notes the fields that it is about.
func (sc *scenario) asks(body, fields map[string]any) error {
	before := len(sc.syncs)
	if _, err := sc.creates(body); err != nil {
		return err
	}
	return sc.tries(body, fields, len(sc.syncs) > before)
}

// tries notes the latest request, and what became of the sync.
func (sc *scenario) tries(body, fields map[string]any, made bool) error {
	// As JSON has them, to be compared with what is read.
	one := &trial{fields: jsonvalue.Decode(jsonvalue.MustParse(fields)).(map[string]any), answer: sc.last()}
	if made {
		shown, err := sc.must(request{method: "GET", path: sc.syncPath()})
		if err != nil {
			return err
		}
		one.shown = shown
	}
	if sc.judged {
		sc.trials, sc.judged = nil, false
	}
	sc.trials = append(sc.trials, one)
	return nil
}

// asked are the rows of a table as fields by path; nil for one that is left out.
func (sc *scenario) asked(t *engine.Table) (map[string]any, error) {
	fields := map[string]any{}
	for _, row := range cells(t) {
		if row["value"] == "nothing" {
			fields[row["field"]] = nil
			continue
		}
		v, err := sc.value(row["value"])
		if err != nil {
			return nil, err
		}
		fields[row["field"]] = v
	}
	return fields, nil
}

// laidOver sends a body with the rows of a table laid over it.
func (sc *scenario) laidOver(body map[string]any, t *engine.Table, send func(body, fields map[string]any) error) error {
	body, err := sc.laid(body, t)
	if err != nil {
		return err
	}
	fields, err := sc.asked(t)
	if err != nil {
		return err
	}
	return send(body, fields)
}

func (sc *scenario) clientCreates(t *engine.Table) error {
	body, err := sc.draft()
	if err != nil {
		return err
	}
	return sc.laidOver(body, t, sc.asks)
}

// each does something with every row of a table by itself.
func each(do func(*engine.Table) error) func(*engine.Table) error {
	return func(t *engine.Table) error {
		for _, row := range engine.Rows(t)[1:] {
			if err := do(engine.NewTable(engine.Rows(t)[0], row)); err != nil {
				return err
			}
		}
		return nil
	}
}

// clientUpdates sends the whole sync again, with changes.
func (sc *scenario) clientUpdates(t *engine.Table) error {
	return sc.laidOver(sc.latest().body, t, sc.update)
}

// clientSendsRequired sends what an update must have (spec 4.1.1).
func (sc *scenario) clientSendsRequired() error {
	body, whole := map[string]any{}, sc.latest().body
	for _, field := range []string{"operation", "destination_attributes", "mappings", "source_attributes"} {
		body[field] = whole[field]
	}
	return sc.update(body, map[string]any{})
}

func (sc *scenario) update(body, fields map[string]any) error {
	a, err := sc.api(request{method: "PATCH", path: sc.syncPath(), body: body})
	if err != nil {
		return err
	}
	if accepted(a) && body["validate_only"] != true {
		kept := maps.Clone(sc.latest().body)
		maps.Copy(kept, body)
		sc.latest().body = kept
	}
	return sc.tries(body, fields, accepted(a))
}
