package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// planningSteps are for PLAN: planning and caching (spec 4.2).
func planningSteps() []engine.Step {
	return []engine.Step{
		step(`^(?:the|every) connection test has (passed|failed)$`, func(sc *scenario) any { return sc.testsHave }),
		step(`^the (connection test|run) says "([^"]*)"$`, func(sc *scenario) any {
			return func(what, text string) error {
				if what == "run" {
					return sc.runSays(text)
				}
				return sc.testSays(text)
			}
		}),
		step(`^the service calls "([a-z_]+)" first$`, func(sc *scenario) any { return sc.callsFirst }),
		step(`^the (name|Auth Token) of the connection becomes "([^"]*)"$`, func(sc *scenario) any { return sc.connectionBecomes }),
		step(`^a destination with these objects:$`, func(sc *scenario) any { return sc.withObjects }),
		step(`^the service shows the object "([^"]*)"$`, func(sc *scenario) any { return sc.showsObject }),
		step(`^the service shows the (objects|fields|operations) that the destination tells$`, func(sc *scenario) any { return sc.showsDescribed }),
		step(`^a client makes a sync of "([^"]*)" with operation "([a-z]+)" into "([^"]*)"$`, func(sc *scenario) any { return sc.makesSync }),
		step(`^the destination tells (of|nothing of) the field "([^"]*)"$`, func(sc *scenario) any { return sc.tellsField }),
		step(`^(\d+[a-z]) pass$`, func(sc *scenario) any { return sc.advance }),
		step(`^a client refreshes the objects of the destination$`, func(sc *scenario) any { return sc.refreshes }),
		step(`^the service shows the field "([^"]*)" of "([^"]*)"$`, func(sc *scenario) any { return sc.showsField }),
		step(`^the names in the source change$`, func(sc *scenario) any { return sc.namesChange }),
		step(`^(every run|no run but the first) calls "([^"]*)" before its first batch$`, func(sc *scenario) any { return sc.runsCall }),
	}
}

// testsHave looks at the tests of all connections that a client has tried. Where
// the destination was not called it did not show anything.
func (sc *scenario) testsHave(what string) error {
	calls := 0
	for _, t := range sc.tests {
		seen := t.d.Seen(rpc.MethodTestConnection)
		if calls += len(seen); len(seen) == 0 {
			return engine.Outcome(conformance.Inconclusive, "", "the service has not called test_connection")
		}
		if t.passed() != (what == "passed") {
			sc.brokenTest("the connection test has "+what, t, seen)
		}
	}
	if calls == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no connection was tested")
	}
	return sc.heldBy(len(sc.tests), "connection test")
}

// brokenTest adds a finding about a connection test: what the API says of it,
// and the calls that it made.
func (sc *scenario) brokenTest(expected string, t *tested, calls []*endpoint.Call) {
	exchanges := []conformance.Exchange{t.a.Exchange()}
	for _, c := range calls {
		exchanges = append(exchanges, sc.exchangeOf(c))
	}
	sc.Broken(expected, t.a.short(), exchanges...)
}

// testSays looks for a text in what the API says of each test.
func (sc *scenario) testSays(text string) error {
	for _, t := range sc.tests {
		seen := t.d.Seen(rpc.MethodTestConnection)
		if len(seen) == 0 {
			return engine.Outcome(conformance.Inconclusive, "", "the service has not called test_connection")
		}
		if !strings.Contains(strings.ToLower(t.message()), strings.ToLower(text)) {
			sc.brokenTest(fmt.Sprintf("a message with %q", text), t, seen)
		}
	}
	return sc.heldBy(len(sc.tests), "connection test")
}

// callsFirst looks at the first call since the scenario listens.
func (sc *scenario) callsFirst(method string) error {
	calls, err := sc.received()
	if err != nil {
		return err
	}
	if calls[0].Method != method {
		sc.brokenCall("the first call is "+method, calls[0].Method, calls[0])
	}
	return sc.heldBy(len(calls), "call")
}

// listens counts only what the destination hears from now on.
func (sc *scenario) listens() { sc.skippedCalls = len(sc.dest.Seen("")) }

// connectionBecomes changes the connection, and listens to what comes of it.
func (sc *scenario) connectionBecomes(what, value string) error {
	sc.listens()
	change := map[string]any{"name": sc.called("renamed")}
	if what == "Auth Token" {
		change = map[string]any{"credentials": map[string]any{"auth_token": value}}
	}
	_, err := sc.must(request{method: "PATCH", path: "/destinations/" + strconv.FormatInt(sc.dest.id, 10),
		body: map[string]any{"service_connection": change}})
	return err
}

func (sc *scenario) withObjects(t *engine.Table) error {
	c, err := readObjects(t)
	if err != nil {
		return err
	}
	sc.described = c
	return sc.triesConnecting(connecting{sim: c})
}

// makesSync tries to make a sync of columns, the first of which is the primary
// identifier.
func (sc *scenario) makesSync(columns, operation, object string) error {
	rows := table{columns: jsonvalue.Words(columns), rows: []row{{}}}
	for _, c := range rows.columns {
		rows.rows[0][c] = "zz-conf"
	}
	d, err := sc.newDataset(rows)
	if err != nil {
		return err
	}
	body := sc.syncBody(sc.dest, d, operation)
	body["destination_attributes"] = map[string]any{"connection_id": sc.dest.id, "object": object}
	a, err := sc.api(request{method: "POST", path: "/syncs", body: body})
	if err != nil {
		return err
	}
	if id := a.id("data", "sync_id"); a.Status < 300 && id != 0 {
		sc.made(thing{kind: "syncs", id: id, name: fmt.Sprint(body["label"])})
	}
	return nil
}

// tellsField adds a field to the reply to list_fields, or takes one out.
func (sc *scenario) tellsField(how, name string) error {
	sc.dest.SetScript(func(c *endpoint.Call) *endpoint.Reply {
		if c.Method != rpc.MethodListFields {
			return nil
		}
		return &endpoint.Reply{Edit: func(body []byte, _ http.Header) []byte { return withOtherFields(body, how == "of", name) }}
	})
	return nil
}

// withOtherFields is a reply to list_fields with another field, or without one.
func withOtherFields(body []byte, more bool, name string) []byte {
	var m map[string]json.RawMessage
	var result struct {
		Fields []rpc.Field `json:"fields"`
	}
	if json.Unmarshal(body, &m) != nil || json.Unmarshal(m["result"], &result) != nil {
		return body
	}
	result.Fields = slices.DeleteFunc(result.Fields, func(f rpc.Field) bool { return f.APIName == name })
	if more {
		result.Fields = append(result.Fields, rpc.Field{APIName: name, Label: name, Type: rpc.TypeString, Createable: true, Updateable: true})
	}
	m["result"] = jsonvalue.Encode(result)
	return jsonvalue.Encode(m)
}

// A refresh, and a cache that is filled beside a call, have a moment to end.
const (
	lookAgain = 50 * time.Millisecond
	looks     = 40
	readings  = 6
)

func (sc *scenario) refreshes() error {
	path := "/destinations/" + strconv.FormatInt(sc.dest.id, 10)
	a, err := sc.must(request{method: "POST", path: path + "/refresh_objects"})
	if err != nil {
		return err
	}
	for range looks {
		status, err := sc.must(request{method: "GET", path: path + "/refresh_objects_status?refresh_key=" + jsonvalue.Raw(a.at("refresh_key"))})
		if err != nil {
			return err
		}
		if status.text("status") != "processing" {
			return nil
		}
		if err := sc.sleep(lookAgain); err != nil {
			return err
		}
	}
	return engine.Outcome(conformance.Inconclusive, "", "the refresh did not end")
}

func (sc *scenario) showsField(name, object string) error {
	var a *answer
	for range readings {
		var err error
		if a, err = sc.api(request{method: "GET", path: sc.dest.objectPath(object)}); err != nil {
			return err
		}
		if fields := a.at("data", "fields"); fields != nil && slices.ContainsFunc(fields.Items, func(f *wire.Node) bool { return jsonvalue.Text(f.Get("full_name")) == name }) {
			sc.Proof("GET %s", a.request.path)
			return nil
		}
		// The first reading may be what makes the service ask anew.
		if err := sc.sleep(lookAgain); err != nil {
			return err
		}
	}
	sc.broken(fmt.Sprintf("the field %q", name), a.short(), a)
	return sc.Held()
}

// namesChange gives every row of the source another name.
func (sc *scenario) namesChange() error {
	s := sc.latest()
	t := table{columns: s.rows.table.columns}
	for _, r := range s.rows.table.rows {
		t.rows = append(t.rows, row{"id": r["id"], "name": fmt.Sprint(r["name"], " anew")})
	}
	return sc.holds(s.rows, t)
}

// runsCall looks at the calls between the last batch of a run and the first of
// the next.
func (sc *scenario) runsCall(which, list string) error {
	batches := sc.dest.Batches()
	run, before, runs := "", 0, 0
	for _, b := range batches {
		if own := jsonvalue.Raw(b.Param("sync_plan", "sync_run_id")); own != run {
			run = own
			runs++
			for _, method := range jsonvalue.Words(list) {
				sc.judgesCalls(which, method, run, runs, before, b)
			}
		}
		before = b.Number
	}
	if runs < 2 {
		return engine.Outcome(conformance.Inconclusive, "", "there were no two runs with batches")
	}
	return sc.heldBy(runs, "run")
}

// judgesCalls looks for one method before the first batch of a run.
func (sc *scenario) judgesCalls(which, method, run string, number, after int, batch *endpoint.Call) {
	var found []*endpoint.Call
	for _, c := range sc.dest.Seen(method) {
		if c.Number > after && c.Number < batch.Number {
			found = append(found, c)
		}
	}
	switch {
	case which == "every run" && len(found) == 0:
		sc.brokenCall(method+" before the first batch of the run "+run, "no such call", batch)
	case which != "every run" && number > 1 && len(found) > 0:
		sc.brokenCall("no "+method+" right after another run", fmt.Sprintf("%d of them before the run %s", len(found), run), found...)
	}
}
