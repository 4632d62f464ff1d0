package service

import (
	"fmt"
	"reflect"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// data is the resource of the latest answer; nil of an answer that has none.
func (sc *scenario) data() *wire.Node { return sc.last.at("data") }

func (sc *scenario) answerSays(t *engine.Table) error {
	for _, row := range cells(t) {
		wanted, err := sc.value(row["value"])
		if err != nil {
			return err
		}
		n := jsonvalue.Down(sc.last.json, row["field"])
		switch why := jsonvalue.Missing(wanted, jsonvalue.Decode(n), row["field"]); {
		case n == nil:
			sc.broken(row["field"]+" is "+jsonvalue.Brief(wanted), row["field"]+" is missing: "+sc.last.short(), sc.last)
		case why != "":
			sc.broken(row["field"]+" is "+jsonvalue.Brief(wanted), why, sc.last)
		}
	}
	return sc.heldBy(len(engine.Rows(t))-1, "field")
}

func (sc *scenario) answerHasTypes(t *engine.Table) error {
	for _, row := range cells(t) {
		n := jsonvalue.Down(sc.data(), row["field"])
		if !jsonvalue.HasType(n, row["type"]) {
			sc.broken(fmt.Sprintf("%s: %s", row["field"], row["type"]), fmt.Sprintf("%s is %s", row["field"], jsonvalue.Raw(n)), sc.last)
		}
	}
	return sc.heldBy(len(engine.Rows(t))-1, "field")
}

// syncShows reads the latest sync and compares.
func (sc *scenario) syncShows(t *engine.Table) error {
	a, err := sc.must(request{method: "GET", path: sc.syncPath()})
	if err != nil {
		return err
	}
	for _, row := range cells(t) {
		wanted, err := sc.value(row["value"])
		if err != nil {
			return err
		}
		sc.compare(a, row["field"], wanted)
	}
	return sc.heldBy(len(engine.Rows(t))-1, "field")
}

// compare holds one field of a sync against what was written.
func (sc *scenario) compare(a *answer, field string, wanted any) {
	n := jsonvalue.Down(a.at("data"), field)
	if why := jsonvalue.Missing(wanted, jsonvalue.Decode(n), field); why != "" {
		sc.broken(fmt.Sprintf("the sync shows %s %s", field, jsonvalue.Brief(wanted)), why, a)
	}
}

// tried are the requests since the last claim; none at all decides nothing.
func (sc *scenario) tried() ([]*trial, error) {
	sc.judged = true
	if len(sc.trials) == 0 {
		return nil, engine.Outcome(conformance.Inconclusive, "", "nothing was asked of the service")
	}
	return sc.trials, nil
}

func (sc *scenario) allAre(are func(*answer) bool, what string) error {
	trials, err := sc.tried()
	if err != nil {
		return err
	}
	for _, t := range trials {
		if !are(t.answer) {
			sc.broken("a sync with "+t.String()+" "+what, t.answer.short(), t.answer)
		}
	}
	return sc.heldBy(len(trials), "request")
}

// allShown compares every sync with what was written into it.
func (sc *scenario) allShown() error {
	trials, err := sc.tried()
	if err != nil {
		return err
	}
	for _, t := range trials {
		if t.shown == nil {
			sc.broken("a sync with "+t.String()+" is made", t.answer.short(), t.answer)
			continue
		}
		for field, wanted := range t.fields {
			sc.compare(t.shown, field, wanted)
		}
	}
	return sc.heldBy(len(trials), "sync")
}

// noneShown is for settings that apply elsewhere only: a service may refuse
// them, or pay no heed to them (spec 4.1.3, 4.1.4).
func (sc *scenario) noneShown() error {
	trials, err := sc.tried()
	if err != nil {
		return err
	}
	for _, t := range trials {
		if refused(t.answer) {
			continue
		}
		if !accepted(t.answer) || t.shown == nil {
			sc.broken("a sync with "+t.String()+" is refused", t.answer.short(), t.answer)
			continue
		}
		for field, asked := range t.fields {
			if jsonvalue.Missing(asked, jsonvalue.Decode(jsonvalue.Down(t.shown.at("data"), field)), field) == "" {
				sc.broken("a sync that does not show "+field+" "+jsonvalue.Brief(asked), "it does", t.shown)
			}
		}
	}
	return sc.heldBy(len(trials), "request")
}

// listed finds a sync in the list by a field that only it has. New syncs are
// first in the default order (spec 8); others may be made at the same time.
func (sc *scenario) listed(field string, value any) (*answer, *wire.Node, error) {
	a, err := sc.must(request{method: "GET", path: "/syncs?per_page=100"})
	if err != nil {
		return nil, nil, err
	}
	for _, one := range itemsOf(a.at("data")) {
		if jsonvalue.Missing(value, jsonvalue.Decode(one.Get(field)), field) == "" {
			return a, one, nil
		}
	}
	return a, nil, nil
}

// wasMade looks for the sync of the latest request by its label.
func (sc *scenario) wasMade(which string) error {
	trials, err := sc.tried()
	if err != nil {
		return err
	}
	label := trials[len(trials)-1].label
	a, found, err := sc.listed("label", label)
	switch {
	case err != nil:
		return err
	case which == "no" && found != nil:
		sc.broken("no sync is made", fmt.Sprintf("the list has one with the label %q", label), a)
	case which == "a" && found == nil:
		sc.broken("a sync is made", fmt.Sprintf("the list has none with the label %q", label), a)
	}
	return sc.HeldBy("label %s", label)
}

// listedAlike compares a sync in the list with the same sync by its id.
func (sc *scenario) listedAlike() error {
	one, err := sc.must(request{method: "GET", path: sc.syncPath()})
	if err != nil {
		return err
	}
	list, found, err := sc.listed("label", sc.latest().body["label"])
	switch {
	case err != nil:
		return err
	case found == nil:
		sc.broken("the list of syncs has the sync", "it does not", list)
		return sc.Held()
	}
	for _, m := range one.at("data").Members {
		if got := jsonvalue.Decode(found.Get(m.Name)); !reflect.DeepEqual(got, jsonvalue.Decode(m.Value)) {
			sc.broken(fmt.Sprintf("%s is %s in the list too", m.Name, jsonvalue.Brief(jsonvalue.Decode(m.Value))), jsonvalue.Brief(got), list, one)
		}
	}
	return sc.heldBy(len(one.at("data").Members), "field")
}
