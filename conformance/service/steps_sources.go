package service

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// sourcesSteps are for SRC: source types (spec 2.10).
func sourcesSteps() []engine.Step {
	return []engine.Step{
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
			return engine.Outcome(conformance.Inconclusive, "", "the model names no dataset")
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
	type one struct {
		answer *answer
		value  string
	}
	seen := map[one]bool{}
	return sc.eachView(kind, func(v *view) error {
		this := one{v.answer, jsonvalue.Raw(v.member(member))}
		if seen[this] {
			sc.brokenView(v, member, "is its own", this.value+" stands twice")
		}
		seen[this] = true
		return nil
	})
}

// topicsSteps are for MDL and TPC: models and topics (spec 2.11, 2.12).
func topicsSteps() []engine.Step {
	return []engine.Step{
		step(`^a source that streams$`, func(sc *scenario) any { return sc.streams }),
		step(`^a client creates a (model|topic) with (\{.*\})$`, func(sc *scenario) any { return sc.createsBelow }),
		step(`^"([a-z_=]+)" of every ([a-z ]+) shown is its "([a-z_]+)"$`, func(sc *scenario) any { return sc.sameMembers }),
		step(`^a client updates the topic with (\{.*\})(, a moment later)?$`, func(sc *scenario) any { return sc.updatesTopic }),
	}
}

// streams makes a source with topics; {stream} stands for it.
func (sc *scenario) streams() error {
	// Which types of sources stream is published nowhere; where this one is
	// unknown, topics cannot be judged.
	name := sc.called("stream")
	a, err := sc.send(sc.ctx, sc.Check().ID, request{method: "POST", path: "/sources", body: map[string]any{
		"connection": map[string]any{"name": name, "type": "topic_log", "credentials": map[string]any{}},
	}})
	switch {
	case err != nil:
		return err
	case a.id("data", "id") == 0:
		return engine.Outcome(conformance.NotRun, "", "no source with topics could be made: %s", sc.secrets.String(a.short()))
	}
	sc.tidies(a)
	sc.words["stream"] = sc.words["made"]
	return nil
}

// createsBelow makes a model of the run's source, or a topic of the one that
// streams.
func (sc *scenario) createsBelow(kind, body string) error {
	path := "/sources/{source}/models"
	if kind == "topic" {
		path = "/sources/{stream}/topics"
	}
	path, err := sc.spoken(path)
	if err != nil {
		return err
	}
	text, err := sc.spoken(body)
	if err != nil {
		return err
	}
	a, err := sc.api(request{method: "POST", path: path, body: json.RawMessage(text)})
	if err != nil {
		return err
	}
	sc.answered.latest = nil
	sc.tidies(a)
	sc.anew(kind)
	sc.shows(kind, "creation", a, a.at("data"))
	return nil
}

// updatesTopic changes the topic that was made last. There is no other way to
// look at one (spec 4): an empty change shows it as it is.
func (sc *scenario) updatesTopic(change, later string) error {
	if sc.idOf("made") == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "the topic could not be made")
	}
	text, err := sc.spoken(change)
	if err != nil {
		return err
	}
	path := "/sources/" + sc.words["stream"] + "/topics/" + strconv.FormatInt(sc.idOf("made"), 10)
	do := func() error {
		a, err := sc.api(request{method: "PATCH", path: path, body: json.RawMessage(text)})
		if err != nil {
			return err
		}
		sc.answered.latest = nil
		sc.shows("topic", "update", a, a.at("data"))
		return nil
	}
	if later == "" {
		sc.anew("topic")
		return do()
	}
	return sc.later("topic", "updated_at", do)
}

// sameMembers compares two members of one thing.
func (sc *scenario) sameMembers(member, kind, other string) error {
	return sc.eachView(kind, func(v *view) error {
		a, b := v.node.Get(member), v.node.Get(other)
		if a == nil || jsonvalue.Raw(a) != jsonvalue.Raw(b) {
			sc.brokenView(v, strconv.Quote(member), "is "+jsonvalue.Raw(b), jsonvalue.Raw(a))
		}
		return nil
	})
}
