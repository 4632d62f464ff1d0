package service

import (
	"fmt"
	"reflect"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

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
	p.Proof("%d fields", len(t.Rows())-1)
	return p.Held()
}

func (p *play) answerHasTypes(t *conformance.Table) error {
	for _, row := range cells(t) {
		n := down(p.data(), row["field"])
		if !hasType(n, row["type"]) {
			p.broken(fmt.Sprintf("%s: %s", row["field"], row["type"]), fmt.Sprintf("%s is %s", row["field"], rawOf(n)), p.last)
		}
	}
	p.Proof("%d fields", len(t.Rows())-1)
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
	p.Proof("%d fields", len(t.Rows())-1)
	return p.Held()
}

// compare holds one field of a sync against what was written.
func (p *play) compare(a *answer, field string, wanted any) {
	n := down(a.at("data"), field)
	if why := misses(wanted, valueOf(n), field); why != "" {
		p.broken(fmt.Sprintf("the sync shows %s %s", field, brief(wanted)), why, a)
	}
}

// tried are the requests since the last claim; none at all decides nothing.
func (p *play) tried() ([]*trial, error) {
	p.judged = true
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

// noneShown is for settings that apply elsewhere only: a service may refuse
// them, or pay no heed to them (spec 4.1.3, 4.1.4).
func (p *play) noneShown() error {
	trials, err := p.tried()
	if err != nil {
		return err
	}
	for _, t := range trials {
		if refused(t.answer) {
			continue
		}
		if !accepted(t.answer) || t.shown == nil {
			p.broken("a sync with "+t.String()+" is refused", t.answer.short(), t.answer)
			continue
		}
		for field, asked := range t.fields {
			if misses(asked, valueOf(down(t.shown.at("data"), field)), field) == "" {
				p.broken("a sync that does not show "+field+" "+brief(asked), "it does", t.shown)
			}
		}
	}
	p.Proof("%d requests", len(trials))
	return p.Held()
}

// listed finds a sync in the list by a field that only it has. New syncs are
// first in the default order (spec 8); others may be made at the same time.
func (p *play) listed(field string, value any) (*answer, *wire.Node, error) {
	a, err := p.must(request{method: "GET", path: "/syncs?per_page=100"})
	if err != nil {
		return nil, nil, err
	}
	for _, one := range itemsOf(a.at("data")) {
		if misses(value, valueOf(one.Get(field)), field) == "" {
			return a, one, nil
		}
	}
	return a, nil, nil
}

// wasMade looks for the sync of the latest request by its label.
func (p *play) wasMade(which string) error {
	trials, err := p.tried()
	if err != nil {
		return err
	}
	label := trials[len(trials)-1].label
	a, found, err := p.listed("label", label)
	switch {
	case err != nil:
		return err
	case which == "no" && found != nil:
		p.broken("no sync is made", fmt.Sprintf("the list has one with the label %q", label), a)
	case which == "a" && found == nil:
		p.broken("a sync is made", fmt.Sprintf("the list has none with the label %q", label), a)
	}
	p.Proof("label %s", label)
	return p.Held()
}

// listedAlike compares a sync in the list with the same sync by its id.
func (p *play) listedAlike() error {
	one, err := p.must(request{method: "GET", path: p.syncPath()})
	if err != nil {
		return err
	}
	list, found, err := p.listed("label", p.latest().body["label"])
	switch {
	case err != nil:
		return err
	case found == nil:
		p.broken("the list of syncs has the sync", "it does not", list)
		return p.Held()
	}
	for _, m := range one.at("data").Members {
		if got := valueOf(found.Get(m.Name)); !reflect.DeepEqual(got, valueOf(m.Value)) {
			p.broken(fmt.Sprintf("%s is %s in the list too", m.Name, brief(valueOf(m.Value))), brief(got), list, one)
		}
	}
	p.Proof("%d fields", len(one.at("data").Members))
	return p.Held()
}
