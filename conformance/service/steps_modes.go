package service

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// modesSteps are for MOD: run modes and alert settings (spec 2.6, 2.8).
func modesSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client lists the syncs$`, func(p *play) any { return p.clientLists }),
		step(`^every alert has the keys "([a-z_, ]+)"$`, func(p *play) any { return p.alertsHave }),
	}
}

func (p *play) clientLists() error {
	_, err := p.api(request{method: "GET", path: "/syncs?per_page=100"})
	return err
}

// alertsHave looks at the alerts of the latest sync in the latest answer: that
// of the sync alone, or of a list.
func (p *play) alertsHave(list string) error {
	shown := []*wire.Node{p.data()}
	if p.data().Is(wire.Array) {
		shown = itemsOf(p.data())
	}
	seen := 0
	for _, y := range shown {
		if id, _ := y.Get("id").Int(); id != p.latest().id {
			continue
		}
		for _, alert := range itemsOf(y.Get("alert_attributes")) {
			seen++
			for key := range strings.SplitSeq(list, ", ") {
				if alert.Get(key) == nil {
					p.broken(fmt.Sprintf("an alert with the key %q", key), rawOf(alert), p.last)
				}
			}
		}
	}
	if seen == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no alert was shown: %s", p.secrets.String(p.last.short()))
	}
	p.Proof("%d alerts", seen)
	return p.Held()
}
