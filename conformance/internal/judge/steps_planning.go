package judge

import (
	"net/http"
	"slices"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// planningSteps judge list_objects, list_fields and supported_operations.
func planningSteps() []definition {
	return []definition{
		step(`^the service calls "(list_fields|supported_operations)" for (every object|every object under another label|an object that does not exist)(?: (\d+) times in parallel)?$`,
			func(sc *Scenario) any { return sc.asksAboutObjects }),
	}
}

// unknownObject is a name that no endpoint lists.
var unknownObject = rpc.Object{APIName: "zz_no_such_object", Label: "No such object"}

func (sc *Scenario) asksAboutObjects(method, which, times string) error {
	if times != "" {
		return sc.callsInParallel(method, times)
	}
	switch which {
	case "every object":
		return sc.sendAll(sc.methodCalls(method))
	case "every object under another label":
		return sc.sendAll(sc.relabelled(sc.methodCalls(method)))
	}
	_, err := sc.Send(line.Request{Method: method, Params: line.ObjectParams(unknownObject), Object: unknownObject.APIName})
	return err
}

// relabelled are calls about objects with the label of another object, where one has
// another, else with a label that no object has.
func (sc *Scenario) relabelled(calls []line.Request) []line.Request {
	objects := sc.Catalog.Objects
	for i := range calls {
		o := rpc.Object{APIName: calls[i].Object, Label: unknownObject.Label}
		at := slices.IndexFunc(objects, func(other *write.Object) bool { return other.APIName == o.APIName })
		if next := objects[(at+1)%len(objects)]; next.Label != objects[at].Label {
			o.Label = next.Label
		}
		calls[i].Params = line.ObjectParams(o)
	}
	return calls
}

// of returns the replies of a method.
func (sc *Scenario) of(method string) []*exchange.Reply {
	return lists.Where(sc.Replies, func(r *exchange.Reply) bool { return r.Method == method })
}

// authSteps judge how the endpoint knows its caller (spec 5.2).
func authSteps() []definition {
	return []definition{
		step(`^an auth token is configured$`, func(sc *Scenario) any { return sc.tokenConfigured }),
		step(`^a URL secret is configured$`, func(sc *Scenario) any { return sc.secretConfigured }),
		step(`^no reply refuses the caller$`, func(sc *Scenario) any { return sc.callerAccepted }),
	}
}

func (sc *Scenario) tokenConfigured() error {
	if sc.Target.Token == "" {
		return line.NotApplicable("no Auth Token is configured: name its variable with --token-env")
	}
	return nil
}

func (sc *Scenario) secretConfigured() error {
	if sc.Secret == "" {
		return line.NotApplicable("no URL secret is declared: name it with --url-secret")
	}
	return nil
}

// callerAccepted: no reply is that which a stranger gets.
func (sc *Scenario) callerAccepted() error {
	stranger, err := sc.strangerError()
	if err != nil {
		return err
	}
	look, err := rules.Every(sc.Replies, func(r *exchange.Reply) (string, string) {
		if refusesStranger(r, stranger) {
			return "an answer for the configured credentials, not the one that a stranger gets", r.Short()
		}
		return "", ""
	})
	err = sc.takes(look, err)
	if r := sc.unansweredReply(); err == nil && r != nil {
		return engine.Inconclusive("", "%s has neither a result nor an error: %s", r.What(), r.Short())
	}
	return err
}

// unansweredReply is a reply that says nothing about its caller, nil without one.
func (sc *Scenario) unansweredReply() *exchange.Reply {
	for _, r := range sc.Replies {
		refused := r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden
		if !refused && r.Member("result") == nil && r.Member("error") == nil {
			return r
		}
	}
	return nil
}

// refusesStranger tells a reply that takes the caller for a stranger; an error
// about something else is none.
func refusesStranger(r *exchange.Reply, stranger string) bool {
	return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden ||
		stranger != "" && r.IsError() && string(r.Member("error").Raw) == stranger
}

// strangerError is the error that a caller without credentials gets, "" when
// the endpoint lets strangers in or needs no credentials.
func (sc *Scenario) strangerError() (string, error) {
	if sc.Target.Token == "" && sc.Secret == "" {
		return "", nil
	}
	c := line.Request{Method: rpc.MethodListObjects, Header: http.Header{"Authorization": nil}}
	if sc.Secret != "" {
		changed, err := sc.WithSecret([]string{write.WrongSecret})
		if err != nil {
			return "", err
		}
		c.URL = changed
	}
	r, err := sc.Session.Send(sc.Ctx, sc.Check().ID, c)
	if err != nil {
		return "", err
	}
	if r.IsError() {
		return string(r.Member("error").Raw), nil
	}
	return "", nil
}
