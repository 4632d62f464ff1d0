package service

import (
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// syncShows reads the latest sync and compares.
func (sc *scenario) syncShows(t *engine.Table) error {
	a, err := sc.must(request{method: "GET", path: sc.syncPath()})
	if err != nil {
		return err
	}
	return sc.allCompared("the sync", a, t)
}

// allCompared holds what an answer shows against a table.
func (sc *scenario) allCompared(what string, a *answer, t *engine.Table) error {
	wanted, err := sc.asked(t)
	if err != nil {
		return err
	}
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
		return engine.Outcome(conformance.Inconclusive, "", "nothing was asked of the service")
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
	path, err := sc.filled(path)
	if err != nil {
		return err
	}
	list, err := sc.must(request{method: "GET", path: path + "?per_page=100"})
	if err != nil {
		return err
	}
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
	one, err := sc.must(request{method: "GET", path: sc.syncPath()})
	if err != nil {
		return err
	}
	return sc.listedAlike(path, one)
}

// runsListed looks for both runs of the sync.
func (sc *scenario) runsListed(path string) error {
	s := sc.latest()
	if len(s.runs) != 2 {
		return engine.Outcome(conformance.Inconclusive, "", "the sync has not run twice")
	}
	return sc.listedAlike(path, s.runs...)
}
