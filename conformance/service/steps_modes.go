package service

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// modesSteps are for MOD: run modes and alert settings (spec 2.6, 2.8).
func modesSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client lists the syncs$`, func(sc *scenario) any { return sc.clientLists }),
		step(`^every alert has the keys "([a-z_, ]+)"$`, func(sc *scenario) any { return sc.alertsHave }),
	}
}

func (sc *scenario) clientLists() error {
	_, err := sc.api(request{method: "GET", path: "/syncs?per_page=100"})
	return err
}

// alertsHave looks at the alerts of the latest sync in the latest answer: that
// of the sync alone, or of a list.
func (sc *scenario) alertsHave(list string) error {
	shown := []*wire.Node{sc.data()}
	if sc.data().Is(wire.Array) {
		shown = itemsOf(sc.data())
	}
	seen := 0
	for _, y := range shown {
		if id, _ := y.Get("id").Int(); id != sc.latest().id {
			continue
		}
		for _, alert := range itemsOf(y.Get("alert_attributes")) {
			seen++
			for key := range strings.SplitSeq(list, ", ") {
				if alert.Get(key) == nil {
					sc.broken(fmt.Sprintf("an alert with the key %q", key), jsonvalue.Raw(alert), sc.last)
				}
			}
		}
	}
	if seen == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no alert was shown: %s", sc.secrets.String(sc.last.short()))
	}
	return sc.heldBy(seen, "alert")
}
