package judge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// These steps make calls that write nothing.

var callSentences = sentences{
	`^the service connects$`:   (*Scenario).connects,
	`^every call is answered$`: (*Scenario).everyCallAnswered,
}

func callSteps() []engine.Step {
	return []engine.Step{
		engine.NewStep(`^the service calls every (reading )?method$`, func(sc *Scenario) any {
			return func(reading string) error { return sc.sendAll(sc.everyCall(reading != "")) }
		}),
		engine.NewStep(`^the service calls (?:a method that does not exist|methods that do not exist(, of several shapes))$`, func(sc *Scenario) any { return sc.callsUnknown }),
		engine.NewStep(`^the service calls "([a-z_]+)"(?: (\d+) times| at (\d+) % of the rate limit)?( in the declared parallelism)?$`,
			func(sc *Scenario) any { return sc.callsMethod }),
		engine.NewStep(`^the service calls "(list_fields|supported_operations)" for (every object|every object under another label|an object that does not exist)(?: (\d+) times in parallel)?$`,
			func(sc *Scenario) any { return sc.asksAboutObjects }),
		engine.NewStep(`^the service calls (every method|"[a-z_]+") in each of these ways:$`, func(sc *Scenario) any { return sc.callsInWays }),
		engine.NewStep(`^the service sends each of the bodies:$`, func(sc *Scenario) any { return sc.sendsBodies }),
	}
}

func (sc *Scenario) connects() error {
	sc.Handshaken = &rules.Handshake{}
	if sc.URL.Scheme == "https" {
		sc.Handshaken = sc.Handshake(sc.Ctx)
	}
	return nil
}

// everyCall is each of the six methods once, for the object under judgement or the first one
// that is listed. sync_batch has no records, so that nothing is written; reading leaves it out.
func (sc *Scenario) everyCall(reading bool) []line.Request {
	calls := []line.Request{{Method: rpc.MethodTestConnection}, {Method: rpc.MethodListObjects}}
	o := sc.Object
	if o == nil && len(sc.Catalog.Objects) > 0 {
		o = sc.Catalog.Objects[0]
	}
	if o != nil {
		calls = append(calls, objectCalls(o)...)
	}
	if o != nil && !reading {
		if params := sc.EmptyBatch(o); params != nil {
			calls = append(calls, line.Request{Method: rpc.MethodSyncBatch, Params: params, Object: o.APIName})
		}
	}
	return append(calls, line.Request{Method: rpc.MethodGetSyncSpeed})
}

func objectCalls(o *write.Object) []line.Request {
	params := line.ObjectParams(o.Object)
	return []line.Request{
		{Method: rpc.MethodListFields, Params: params, Object: o.APIName},
		{Method: rpc.MethodSupportedOperations, Params: params, Object: o.APIName},
	}
}

func (sc *Scenario) sendAll(calls []line.Request) error {
	if err := sc.Reserve(calls); err != nil {
		return err
	}
	for _, c := range calls {
		r, err := sc.Send(c)
		if err != nil {
			return err
		}
		if r.Kind == wire.KindTimeout {
			return nil // one lost deadline is enough to judge; waiting for all would use up the run
		}
	}
	return nil
}

// UnknownMethods are names that no endpoint has, also of other shapes: reserved, near those of
// methods, long, with spaces, and none. Those in another case are RPC-019's.
var UnknownMethods = []string{
	"zz_no_such_method", "rpc.zz_no_such_method", "list_object", "sync_batches", "test connection", "../list_objects", strings.Repeat("zz_no_such_method_", 100), "",
}

func (sc *Scenario) callsUnknown(several string) error {
	names := UnknownMethods
	if several == "" {
		names = names[:1]
	}
	return sc.sendAll(lists.Of(names, func(name string) line.Request { return line.Request{Method: name, Odd: true} }))
}

// methodCalls are the calls of one method: one for every object where it takes an object.
func (sc *Scenario) methodCalls(method string) []line.Request {
	if method != rpc.MethodListFields && method != rpc.MethodSupportedOperations {
		return []line.Request{{Method: method}}
	}
	objects := sc.Catalog.Objects
	if len(objects) > 50 {
		sc.Note("%s are listed: the first 50 were asked about", quantity.Count(len(objects), "object"))
		objects = objects[:50]
	}
	var calls []line.Request
	for _, o := range objects {
		calls = append(calls, lists.Where(objectCalls(o), func(r line.Request) bool { return r.Method == method })...)
	}
	return calls
}

func (sc *Scenario) callsMethod(method, times, percent, declared string) error {
	if percent != "" {
		return sc.callsAtRate(method, percent)
	}
	if declared != "" {
		return sc.callsAsDeclared(method)
	}
	n, _ := strconv.Atoi(times) // absent: once
	var calls []line.Request
	for _, c := range sc.methodCalls(method) { // those for one object in a row: an answer may change with every third call
		calls = append(calls, slices.Repeat([]line.Request{c}, max(1, n))...)
	}
	return sc.sendAll(calls)
}

func (sc *Scenario) asksAboutObjects(method, which, times string) error {
	if times != "" {
		return sc.callsInParallel(method, times)
	}
	unknown := rpc.Object{APIName: "zz_no_such_object", Label: "No such object"} // which no endpoint lists
	if which == "an object that does not exist" {
		_, err := sc.Send(line.Request{Method: method, Params: line.ObjectParams(unknown), Object: unknown.APIName})
		return err
	}
	calls, objects := sc.methodCalls(method), sc.Catalog.Objects
	for i := 0; i < len(calls) && which == "every object under another label"; i++ {
		o := rpc.Object{APIName: calls[i].Object, Label: unknown.Label}
		at := slices.IndexFunc(objects, func(other *write.Object) bool { return other.APIName == o.APIName })
		if next := objects[(at+1)%len(objects)]; next.Label != objects[at].Label {
			o.Label = next.Label // that of another object, where it is another
		}
		calls[i].Params = line.ObjectParams(o)
	}
	return sc.sendAll(calls)
}

// noObjectListed: the list of objects was lost, or is empty, which other checks judge.
var noObjectListed = engine.Inconclusive("", "no object is listed that could be asked about")

// callsInWays sends the named call, or all six, in each way of the table.
func (sc *Scenario) callsInWays(what string, table *engine.Table) error {
	calls := sc.everyCall(false)
	if what != "every method" {
		calls = sc.methodCalls(strings.Trim(what, `"`))
		if len(calls) == 0 {
			return noObjectListed
		}
		calls = calls[:1]
	}
	for _, row := range engine.Rows(table) {
		way, ok := write.Ways[row[0]]
		if !ok {
			return line.Harness("no way is called %q", row[0])
		}
		for _, c := range calls {
			if err := way(sc.Scenario.Scenario, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendsBodies sends each row of a table as a whole request body. {id} is replaced by a fresh id,
// {uuid} by one in UUID form, {300} by one of 300 characters.
func (sc *Scenario) sendsBodies(table *engine.Table) error {
	for _, row := range engine.Rows(table) {
		fresh := sc.NewID()
		uuid := fmt.Sprintf("%s-%s-4%s-a%s-%s", fresh[:8], fresh[8:12], fresh[13:16], fresh[17:20], fresh[20:])
		body := strings.NewReplacer("{id}", fresh, "{uuid}", uuid, "{300}", strings.Repeat(fresh, 10)[:300]).Replace(row[0])
		var envelope struct {
			ID     string `json:"id"`
			Method string `json:"method"`
		}
		_ = json.Unmarshal([]byte(body), &envelope) // odd bodies have neither
		if _, err := sc.Send(line.Request{Method: envelope.Method, ID: envelope.ID, Body: []byte(body), Odd: true}); err != nil {
			return err
		}
	}
	return nil
}

// of returns the replies of a method.
func (sc *Scenario) of(method string) []*exchange.Reply {
	return lists.Where(sc.Replies, func(r *exchange.Reply) bool { return r.Method == method })
}

// everyCallAnswered judges the good calls that follow disturbed ones.
func (sc *Scenario) everyCallAnswered() error {
	for _, r := range sc.of(rpc.MethodListObjects) {
		if r.Status >= 300 && r.Status <= 399 {
			continue // HTTP-004 judges redirects
		}
		if r.Passing() && !sc.Confirming() {
			return wire.ErrAway // which may pass: judged once more, alone
		}
		if expected, actual := rules.SameID(r); actual != "" {
			sc.BrokenFor("", expected+": the answer to this call", actual, r)
		} else if r.Member("result") == nil && r.Member("error") == nil {
			sc.BrokenFor("", "an answer to a good call", r.Short(), r)
		}
	}
	return sc.Held()
}

// These steps judge how the endpoint knows its caller (spec 5.2).
var authSentences = sentences{
	`^an auth token is configured$`: func(sc *Scenario) error {
		if sc.Target.Token == "" {
			return line.NotApplicable("no Auth Token is configured: name its variable with --token-env")
		}
		return nil
	},
	`^a URL secret is configured$`: func(sc *Scenario) error {
		if sc.Secret == "" {
			return line.NotApplicable("no URL secret is declared: name it with --url-secret")
		}
		return nil
	},
	`^no reply refuses the caller$`: (*Scenario).callerAccepted,
}

// callerAccepted: no reply is that which a stranger gets.
func (sc *Scenario) callerAccepted() error {
	stranger, err := sc.strangerError()
	if err != nil {
		return err
	}
	err = sc.takes(rules.Every(sc.Replies, func(r *exchange.Reply) (string, string) {
		if refusesStranger(r, stranger) {
			return "an answer for the configured credentials, not the one that a stranger gets", r.Short()
		}
		return "", ""
	}))
	silent := func(r *exchange.Reply) bool {
		return !outOfBounds(r) && r.Member("result") == nil && r.Member("error") == nil
	}
	if i := slices.IndexFunc(sc.Replies, silent); err == nil && i >= 0 {
		return engine.Inconclusive("", "%s has neither a result nor an error: %s", sc.Replies[i].What(), sc.Replies[i].Short())
	}
	return err
}

func outOfBounds(r *exchange.Reply) bool {
	return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden
}

// refusesStranger distinguishes a refusal of an unknown caller from an error about something else.
func refusesStranger(r *exchange.Reply, stranger string) bool {
	return outOfBounds(r) || stranger != "" && r.IsError() && string(r.Member("error").Raw) == stranger
}

// strangerError is the error that a caller without credentials gets; "" where there is none.
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
	if err != nil || !r.IsError() {
		return "", err
	}
	return string(r.Member("error").Raw), nil
}
