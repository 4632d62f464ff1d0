package service

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// sourcesSteps are for SRC, MDL and TPC: source types, models and topics (spec 2.10 to
// 2.12).
func sourcesSteps() []engine.Step {
	return []engine.Step{
		step(`^a client lists the source types$`, func(sc *scenario) any { return sc.listsSourceTypes }),
		step(`^a source that streams$`, func(sc *scenario) any { return sc.streams }),
		step(`^a topic of a streaming source$`, func(sc *scenario) any { return sc.aTopic }),
		step(`^a client creates a (model|topic) with (\{.*\})$`, func(sc *scenario) any { return sc.createsBelow }),
		step(`^"([a-z_=]+)" of every ([a-z ]+) shown is its "([a-z_]+)"$`, func(sc *scenario) any { return sc.sameMembers }),
		step(`^a client updates the topic with (\{.*\})(, a moment later)?$`, func(sc *scenario) any { return sc.updatesTopic }),
	}
}

// listsSourceTypes goes through all pages (spec 2.10, 8).
func (sc *scenario) listsSourceTypes() {
	sc.batch = sc.pages("/source_types", func(a *answer, n *wire.Node) { sc.shows("source type", "list", a, n) })
}

// streams makes a source with topics; {stream} stands for it. Which types of sources
// stream is published nowhere; where this one is unknown, topics cannot be judged.
func (sc *scenario) streams() {
	a := sc.call(request{method: "POST", path: "/sources", body: map[string]any{
		"connection": map[string]any{"name": sc.called("stream"), "type": "topic_log", "credentials": map[string]any{}},
	}})
	if !accepted(a) || a.id("data", "id") == 0 {
		stop(engine.Outcome(conformance.NotRun, "", "no source with topics could be made: %s", sc.secrets.String(a.short())))
	}
	sc.madeBy(a)
	sc.says("stream", a.id("data", "id"))
}

// aTopic lets the syncs of the scenario read a topic, all the time. They are
// paused, since nothing is ever sent to it.
func (sc *scenario) aTopic() {
	sc.streams()
	topic := sc.must(request{method: "POST", path: "/sources/" + sc.words["stream"] + "/topics", body: map[string]any{
		"name": sc.called("topic"), "sample_message": map[string]any{"id": "r00001", "name": "name 1"},
	}})
	maps.Copy(sc.nextSync().over, map[string]any{
		"source_attributes": map[string]any{"connection_id": json.RawMessage(sc.words["stream"]), "object": map[string]any{"type": "topic", "id": topic.id("data", "id")}},
		"mode":              map[string]any{"type": "live"}, "paused": true,
	})
}

// createsBelow makes a model of the run's source, or a topic of the one that
// streams.
func (sc *scenario) createsBelow(kind, body string) {
	path := map[string]string{"model": "/sources/{source}/models", "topic": "/sources/{stream}/topics"}[kind]
	a := sc.calling("POST", path, body, request{as: asWorkspace})
	sc.anew(kind)
	sc.shows(kind, "creation", a, a.at("data"))
}

// updatesTopic changes the topic that was made last. There is no other way to
// look at one (spec 4): an empty change shows it as it is.
func (sc *scenario) updatesTopic(change, later string) {
	if sc.words["made"] == "" {
		undecided("the topic could not be made")
	}
	do := func() {
		a := sc.calling("PATCH", "/sources/{stream}/topics/{made}", change, request{as: asWorkspace})
		sc.shows("topic", "update", a, a.at("data"))
	}
	if later == "" {
		sc.anew("topic")
		do()
		return
	}
	sc.later("topic", "updated_at", do)
}

// sameMembers compares two members of one thing.
func (sc *scenario) sameMembers(member, kind, other string) error {
	all := sc.looked(kind)
	for _, v := range all {
		a, b := v.node.Get(member), v.node.Get(other)
		if a == nil || jsonvalue.Raw(a) != jsonvalue.Raw(b) {
			sc.brokenView(v, member, "is "+jsonvalue.Raw(b), jsonvalue.Raw(a))
		}
	}
	return sc.heldBy(len(all), "look")
}

// aMoment bounds how long a time stamp may stand still: those without a
// fraction change every second.
const aMoment = 1300 * time.Millisecond

// later does something until a moment moves on, or for a second.
func (sc *scenario) later(kind, member string, do func()) {
	var first *view
	for deadline := time.Now().Add(aMoment); ; {
		sc.anew(kind)
		if first == nil {
			first = sc.before[kind]
		}
		sc.before[kind] = first
		do()
		all := sc.shown(kind)
		if first == nil || len(all) == 0 || time.Now().After(deadline) || momentOf(all[0].member(member)).After(momentOf(first.member(member))) {
			return
		}
		sc.sleep(pollAtMost)
	}
}
