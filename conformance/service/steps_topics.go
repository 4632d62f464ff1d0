package service

import (
	"encoding/json"
	"strconv"

	"github.com/destkit/destkit/conformance"
)

// topicsSteps are for MDL and TPC: models and topics (spec 2.11, 2.12).
func topicsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a source that streams$`, func(p *play) any { return p.streams }),
		step(`^a client creates a (model|topic) with (\{.*\})$`, func(p *play) any { return p.createsBelow }),
		step(`^"([a-z_=]+)" of every ([a-z ]+) shown is its "([a-z_]+)"$`, func(p *play) any { return p.sameMembers }),
		step(`^a client updates the topic with (\{.*\})(, a moment later)?$`, func(p *play) any { return p.updatesTopic }),
	}
}

// streams makes a source with topics; {stream} stands for it.
func (p *play) streams() error {
	// Which types of sources stream is published nowhere; where this one is
	// unknown, topics cannot be judged.
	name := p.called("stream")
	a, err := p.send(p.ctx, p.Check().ID, request{method: "POST", path: "/sources", body: map[string]any{
		"connection": map[string]any{"name": name, "type": "topic_log", "credentials": map[string]any{}},
	}})
	switch {
	case err != nil:
		return err
	case a.id("data", "id") == 0:
		return conformance.Outcome(conformance.NotRun, "", "no source with topics could be made: %s", p.secrets.String(a.short()))
	}
	p.tidies(a)
	p.words["stream"] = p.words["made"]
	return nil
}

// createsBelow makes a model of the run's source, or a topic of the one that
// streams.
func (p *play) createsBelow(kind, body string) error {
	path := "/sources/{source}/models"
	if kind == "topic" {
		path = "/sources/{stream}/topics"
	}
	path, err := p.spoken(path)
	if err != nil {
		return err
	}
	text, err := p.spoken(body)
	if err != nil {
		return err
	}
	a, err := p.api(request{method: "POST", path: path, body: json.RawMessage(text)})
	if err != nil {
		return err
	}
	p.answered.latest = nil
	p.tidies(a)
	p.anew(kind)
	p.shows(kind, "creation", a, a.at("data"))
	return nil
}

// updatesTopic changes the topic that was made last. There is no other way to
// look at one (spec 4): an empty change shows it as it is.
func (p *play) updatesTopic(change, later string) error {
	if p.idOf("made") == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "the topic could not be made")
	}
	text, err := p.spoken(change)
	if err != nil {
		return err
	}
	path := "/sources/" + p.words["stream"] + "/topics/" + strconv.FormatInt(p.idOf("made"), 10)
	do := func() error {
		a, err := p.api(request{method: "PATCH", path: path, body: json.RawMessage(text)})
		if err != nil {
			return err
		}
		p.answered.latest = nil
		p.shows("topic", "update", a, a.at("data"))
		return nil
	}
	if later == "" {
		p.anew("topic")
		return do()
	}
	return p.later("topic", "updated_at", do)
}

// sameMembers compares two members of one thing.
func (p *play) sameMembers(member, kind, other string) error {
	all, err := p.looked(kind)
	if err != nil {
		return err
	}
	for _, v := range all {
		a, b := v.node.Get(member), v.node.Get(other)
		if a == nil || rawOf(a) != rawOf(b) {
			p.brokenView(v, strconv.Quote(member), "is "+rawOf(b), rawOf(a))
		}
	}
	p.Proof("%d looks", len(all))
	return p.Held()
}
