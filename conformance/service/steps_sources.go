package service

import (
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// sourcesSteps are for SRC: source types (spec 2.10).
func sourcesSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client lists the source types$`, func(sc *scenario) any { return sc.listsSourceTypes }),
		step(`^a client fetches the (source of the run|dataset of the model)$`, func(sc *scenario) any { return sc.fetchesBehind }),
		step(`^the type of every source shown is one of the source types$`, func(sc *scenario) any { return sc.sourceIsListed }),
		step(`^no two ([a-z ]+)s shown have the same "([a-z_]+)"$`, func(sc *scenario) any { return sc.noTwoAlike }),
	}
}

// listsSourceTypes goes through all pages (spec 2.10, 8).
func (sc *scenario) listsSourceTypes() error {
	all, err := sc.pages("/source_types", func(a *answer, n *wire.Node) { sc.shows("source type", "list", a, n) })
	sc.answered.latest = all
	return err
}

// fetchesBehind looks at what a scenario reads from.
func (sc *scenario) fetchesBehind(what string) error {
	path, kind := "/sources/"+strconv.FormatInt(sc.source, 10), "source"
	if what == "dataset of the model" {
		models, err := sc.looked("model")
		if err != nil {
			return err
		}
		id, ok := models[0].member("dataset_id").Int()
		if !ok {
			return conformance.Outcome(conformance.Inconclusive, "", "the model names no dataset")
		}
		path, kind = "/datasets/"+strconv.FormatInt(id, 10), "dataset"
	}
	a, err := sc.api(request{method: "GET", path: path})
	if err != nil {
		return err
	}
	sc.shows(kind, "fetch", a, a.at("data"))
	return nil
}

// sourceIsListed: the service_name is what the type of a source is called.
func (sc *scenario) sourceIsListed() error {
	sources, err := sc.looked("source")
	if err != nil {
		return err
	}
	var names []string
	for _, v := range sc.shown("source type") {
		names = append(names, jsonvalue.Text(v.node.Get("service_name")))
	}
	for _, v := range sources {
		if kind := jsonvalue.Text(v.node.Get("type")); !slices.Contains(names, kind) {
			sc.brokenView(v, "type "+strconv.Quote(kind), "is the service_name of a source type", jsonvalue.Brief(names))
		}
	}
	return sc.heldBy(len(names), "source type")
}

// noTwoAlike compares what one answer shows.
func (sc *scenario) noTwoAlike(kind, member string) error {
	all, err := sc.looked(kind)
	if err != nil {
		return err
	}
	type one struct {
		answer *answer
		value  string
	}
	seen := map[one]bool{}
	for _, v := range all {
		this := one{v.answer, jsonvalue.Raw(v.member(member))}
		if seen[this] {
			sc.brokenView(v, member, "is its own", this.value+" stands twice")
		}
		seen[this] = true
	}
	return sc.heldBy(len(all), "look")
}
