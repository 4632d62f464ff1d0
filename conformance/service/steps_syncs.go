package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// syncsSteps are about syncs as resources (spec 2.6).
func syncsSteps() []engine.Step {
	return []engine.Step{
		step(`^syncs that have:$`, (*scenario).syncsHave),
		step(`^a sync$`, func(sc *scenario) { sc.given(nil) }),
		step(`^a sync with:$`, (*scenario).given),
		step(`^a client creates a sync with:$`, (*scenario).clientCreates),
		step(`^a client creates a sync with each of these:$`, func(sc *scenario, t *engine.Table) { each(t, sc.clientCreates) }),
		step(`^a client updates the sync with:$`, (*scenario).clientUpdates),
		step(`^a client updates the sync with each of these:$`, func(sc *scenario, t *engine.Table) { each(t, sc.clientUpdates) }),
		step(`^a client updates the sync with its required fields alone$`, (*scenario).clientSendsRequired),

		step(`^an object with (field ordering|append|advanced configuration|references|mirror alone)$`, (*scenario).anObject),
		step(`^a destination that makes fields on write$`, (*scenario).makesFields),
		step(`^a table of the source$`, (*scenario).aTable),
		step(`^a client creates a sync with every key of its advanced configuration$`, (*scenario).createsAdvanced),

		step(`^the sync shows:$`, (*scenario).syncShows),
		step(`^every request is accepted$`, func(sc *scenario) error { return sc.allAre(accepted, "is accepted") }),
		step(`^every request is refused$`, func(sc *scenario) error { return sc.allAre(refused, "is refused with a status from 400 to 499") }),
		step(`^every sync shows what it was given$`, (*scenario).allShown),
		step(`^the list "([^"]+)" shows the sync as it is read by its id$`, (*scenario).syncListedAlike),
		step(`^every request is refused, or the sync does not show what was asked for$`, (*scenario).noneShown),
	}
}

// syncsHave is for all syncs that the scenario makes from here on.
func (sc *scenario) syncsHave(t *engine.Table) {
	g := sc.nextSync()
	sc.draft()
	over := sc.laid(g.over, t)
	for _, line := range cells(t) {
		if line["value"] == "nothing" {
			over[line["field"]] = nil
		}
	}
	g.over = over
}

// given makes a sync that the scenario builds on.
func (sc *scenario) given(t *engine.Table) {
	body := sc.draft()
	if t != nil {
		body = sc.laid(body, t)
	}
	sc.newSync(sc.dest, sc.nextSync().rows, "upsert", body)
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
func (sc *scenario) asks(body, fields map[string]any) {
	before := len(sc.syncs)
	sc.creates(body)
	sc.tries(body, fields, len(sc.syncs) > before)
}

// tries notes the latest request, and what became of the sync.
func (sc *scenario) tries(body, fields map[string]any, made bool) {
	// As JSON has them, to be compared with what is read.
	one := &trial{fields: jsonvalue.Decode(jsonvalue.MustParse(fields)).(map[string]any), answer: sc.last()}
	if made {
		one.shown = sc.must(request{method: "GET", path: sc.syncPath()})
	}
	if sc.judged {
		sc.trials, sc.judged = nil, false
	}
	sc.trials = append(sc.trials, one)
}

// asked are the rows of a table as fields by path; nil for one that is left out.
func (sc *scenario) asked(t *engine.Table) map[string]any {
	fields := map[string]any{}
	for _, row := range cells(t) {
		if row["value"] == "nothing" {
			fields[row["field"]] = nil
			continue
		}
		fields[row["field"]] = sc.value(row["value"])
	}
	return fields
}

func (sc *scenario) clientCreates(t *engine.Table) {
	sc.asks(sc.laid(sc.draft(), t), sc.asked(t))
}

// each does something with every row of a table by itself.
func each(t *engine.Table, do func(*engine.Table)) {
	for _, row := range engine.Rows(t)[1:] {
		do(engine.NewTable(engine.Rows(t)[0], row))
	}
}

// clientUpdates sends the whole sync again, with changes.
func (sc *scenario) clientUpdates(t *engine.Table) {
	sc.update(sc.laid(sc.latest().body, t), sc.asked(t))
}

// clientSendsRequired sends what an update must have (spec 4.1.1).
func (sc *scenario) clientSendsRequired() {
	body, whole := map[string]any{}, sc.latest().body
	for _, field := range []string{"operation", "destination_attributes", "mappings", "source_attributes"} {
		body[field] = whole[field]
	}
	sc.update(body, map[string]any{})
}

func (sc *scenario) update(body, fields map[string]any) {
	a := sc.api(request{method: "PATCH", path: sc.syncPath(), body: body})
	if accepted(a) && body["validate_only"] != true {
		kept := maps.Clone(sc.latest().body)
		maps.Copy(kept, body)
		sc.latest().body = kept
	}
	sc.tries(body, fields, accepted(a))
}

// syncShows reads the latest sync and compares.
func (sc *scenario) syncShows(t *engine.Table) error {
	return sc.allCompared("the sync", sc.must(request{method: "GET", path: sc.syncPath()}), t)
}

// allCompared holds what an answer shows against a table.
func (sc *scenario) allCompared(what string, a *answer, t *engine.Table) error {
	wanted := sc.asked(t)
	for field, value := range wanted {
		sc.compare(what, a, field, value)
	}
	return sc.heldBy(len(wanted), "field")
}

// compare holds one field of what is shown against what was written.
func (sc *scenario) compare(what string, a *answer, field string, wanted any) {
	n := jsonvalue.Down(a.at("data"), field)
	if why := jsonvalue.Missing(wanted, jsonvalue.Decode(n), field); why != "" {
		sc.broken(fmt.Sprintf("%s shows %s %s", what, field, jsonvalue.Brief(wanted)), why, a)
	}
}

// eachTrial looks at every request since the last claim; none at all decides nothing.
func (sc *scenario) eachTrial(look func(*trial)) error {
	sc.judged = true
	if len(sc.trials) == 0 {
		undecided("nothing was asked of the service")
	}
	for _, t := range sc.trials {
		look(t)
	}
	return sc.heldBy(len(sc.trials), "request")
}

func (sc *scenario) allAre(are func(*answer) bool, what string) error {
	return sc.eachTrial(func(t *trial) {
		if !are(t.answer) {
			sc.broken("a sync with "+t.String()+" "+what, t.answer.short(), t.answer)
		}
	})
}

// allShown compares every sync with what was written into it.
func (sc *scenario) allShown() error {
	return sc.eachTrial(func(t *trial) {
		if t.shown == nil {
			sc.broken("a sync with "+t.String()+" is made", t.answer.short(), t.answer)
			return
		}
		for field, wanted := range t.fields {
			sc.compare("the sync", t.shown, field, wanted)
		}
	})
}

// noneShown is for settings that apply elsewhere only: a service may refuse
// them, or pay no heed to them (spec 4.1.3, 4.1.4).
func (sc *scenario) noneShown() error {
	return sc.eachTrial(func(t *trial) {
		if refused(t.answer) {
			return
		}
		if !accepted(t.answer) || t.shown == nil {
			sc.broken("a sync with "+t.String()+" is refused", t.answer.short(), t.answer)
			return
		}
		for field, asked := range t.fields {
			if jsonvalue.Missing(asked, jsonvalue.Decode(jsonvalue.Down(t.shown.at("data"), field)), field) == "" {
				sc.broken("a sync that does not show "+field+" "+jsonvalue.Brief(asked), "it does", t.shown)
			}
		}
	})
}

// listedAlike compares things of a list with what is read by their ids.
func (sc *scenario) listedAlike(path string, read ...*answer) error {
	list := sc.must(request{method: "GET", path: sc.filled(path) + "?per_page=100"})
	for _, one := range read {
		listed := jsonvalue.Items(list.at("data"))
		i := slices.IndexFunc(listed, func(n *wire.Node) bool { return jsonvalue.SameValue(n.Get("id"), one.at("data", "id")) })
		if i < 0 {
			sc.broken("the list shows what has the id "+jsonvalue.Raw(one.at("data", "id")), "it does not", list)
		} else if !jsonvalue.SameValue(listed[i], one.at("data")) {
			sc.broken("the list shows "+jsonvalue.Raw(one.at("data")), jsonvalue.Raw(listed[i]), list, one)
		}
	}
	return sc.heldBy(len(read), "thing")
}

func (sc *scenario) syncListedAlike(path string) error {
	return sc.listedAlike(path, sc.must(request{method: "GET", path: sc.syncPath()}))
}

// runsListed looks for both runs of the sync.
func (sc *scenario) runsListed(path string) error {
	s := sc.latest()
	if len(s.runs) != 2 {
		undecided("the sync has not run twice")
	}
	return sc.listedAlike(path, s.runs...)
}
