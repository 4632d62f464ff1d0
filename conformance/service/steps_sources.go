package service

import (
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/wire"
)

// sourcesSteps are for SRC: source types (spec 2.10).
func sourcesSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client lists the source types$`, func(p *play) any { return p.listsSourceTypes }),
		step(`^a client fetches the source of the run$`, func(p *play) any { return p.fetchesSource }),
		step(`^the type of every source shown is one of the source types$`, func(p *play) any { return p.sourceIsListed }),
		step(`^no two ([a-z ]+)s shown have the same "([a-z_]+)"$`, func(p *play) any { return p.noTwoAlike }),
	}
}

func (p *play) listsSourceTypes() error {
	all, err := p.pages("/source_types", func(a *answer, n *wire.Node) { p.shows("source type", "list", a, n) })
	p.vars[latestAnswers] = all
	return err
}

func (p *play) fetchesSource() error {
	a, err := p.api(request{method: "GET", path: "/sources/" + strconv.FormatInt(p.source, 10)})
	if err != nil {
		return err
	}
	p.shows("source", "fetch", a, a.at("data"))
	return nil
}

func (p *play) sourceIsListed() error {
	sources, err := p.looked("source")
	if err != nil {
		return err
	}
	var names []string
	for _, v := range p.shown("source type") {
		names = append(names, stringOf(v.node.Get("service_name")))
	}
	for _, v := range sources {
		if kind := stringOf(v.node.Get("type")); !slices.Contains(names, kind) {
			p.brokenView(v, "type "+strconv.Quote(kind), "is the service_name of a source type", brief(names))
		}
	}
	p.Proof("%d source types", len(names))
	return p.Held()
}

// noTwoAlike compares within one way of looking.
func (p *play) noTwoAlike(kind, member string) error {
	all, err := p.looked(kind)
	if err != nil {
		return err
	}
	seen := map[string]*view{}
	for _, v := range all {
		value := shownAs(v.member(member))
		if seen[value] != nil {
			p.brokenView(v, member, "is its own", value+" stands twice")
		}
		seen[value] = v
	}
	p.Proof("%d looks", len(all))
	return p.Held()
}
