package service

import (
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// tested is a connection that a client has made or changed, with the answer: it
// carries the result of the connection test (spec 2.2), unless the service
// refused the connection as a whole.
type tested struct {
	d *destination
	a *answer
}

// passed reports whether the destination was found well.
func (t *tested) passed() bool {
	well, _ := t.a.at("data", "last_test_succeeded").Bool()
	return t.a.Status < 300 && well
}

// message is everything that the service says about the test.
func (t *tested) message() string {
	if t.a.Status >= 300 {
		return string(t.a.Body)
	}
	var said []string
	if steps := t.a.at("data", "last_test_results", "steps"); steps != nil {
		for _, s := range steps.Items {
			if text := jsonvalue.Text(s.Get("error", "message")); text != "" {
				said = append(said, text)
			}
		}
	}
	return strings.Join(said, "; ")
}

// triesConnecting makes a destination and a connection to it, whatever the service says of
// it.
func (sc *scenario) triesConnecting(c connecting) error {
	d, err := sc.place(c)
	if err != nil {
		return err
	}
	return sc.triesConnectionTo(d, c.credentials)
}

// triesConnectionTo makes a connection to a destination that stands.
func (sc *scenario) triesConnectionTo(d *destination, credentials map[string]any) error {
	// The answer may wait for that of the destination.
	a, err := sc.api(request{method: "POST", path: "/destinations", body: d.connection(credentials), within: callTimeout + sc.hold()})
	switch {
	case err != nil:
		return err
	case !a.OK() || a.Status >= 500 || a.json == nil:
		return conformance.Outcome(conformance.Inconclusive, "", "the connection could not be made: %s", sc.secrets.String(a.short()))
	}
	if a.Status < 300 {
		d.id = a.id("data", "id")
		sc.made(thing{kind: "destinations", id: d.id, name: d.name})
	}
	sc.dest, sc.tests = d, append(sc.tests, &tested{d, a})
	return nil
}
