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
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// planningSteps are for PLAN: planning and caching (spec 4.2).
func planningSteps() []conformance.Step {
	return []conformance.Step{
		step(`^(?:the|every) connection test has (passed|failed)$`, func(p *play) any { return p.testsHave }),
		step(`^the (connection test|run) says "([^"]*)"$`, func(p *play) any {
			return func(what, text string) error {
				if what == "run" {
					return p.runSays(text)
				}
				return p.testSays(text)
			}
		}),
		step(`^the service calls "([a-z_]+)" first$`, func(p *play) any { return p.callsFirst }),
		step(`^the (name|Auth Token) of the connection becomes "([^"]*)"$`, func(p *play) any { return p.connectionBecomes }),
		step(`^a destination with these objects:$`, func(p *play) any { return p.withObjects }),
		step(`^the service shows the object "([^"]*)"$`, func(p *play) any { return p.showsObject }),
		step(`^the service shows the (objects|fields|operations) that the destination tells$`, func(p *play) any { return p.showsTold }),
		step(`^a client makes a sync of "([^"]*)" with operation "([a-z]+)" into "([^"]*)"$`, func(p *play) any { return p.makesSync }),
		step(`^the destination tells (of|nothing of) the field "([^"]*)"$`, func(p *play) any { return p.tellsField }),
		step(`^(\d+[a-z]) pass$`, func(p *play) any { return p.advance }),
		step(`^a client refreshes the objects of the destination$`, func(p *play) any { return p.refreshes }),
		step(`^the service shows the field "([^"]*)" of "([^"]*)"$`, func(p *play) any { return p.showsField }),
		step(`^the names in the source change$`, func(p *play) any { return p.namesChange }),
		step(`^(every run|no run but the first) calls "([^"]*)" before its first batch$`, func(p *play) any { return p.runsCall }),
	}
}

// testsHave looks at the tests of all connections that a client has tried. Where
// the destination was not called it did not show anything.
func (p *play) testsHave(what string) error {
	calls := 0
	for _, t := range p.tests {
		seen := t.d.seen(rpc.MethodTestConnection)
		if calls += len(seen); len(seen) == 0 {
			return conformance.Outcome(conformance.Inconclusive, "", "the service has not called test_connection")
		}
		if t.passed() != (what == "passed") {
			p.brokenTest("the connection test has "+what, t, seen)
		}
	}
	if calls == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no connection was tested")
	}
	p.Proof("%d connection tests", len(p.tests))
	return p.Held()
}

// brokenTest adds a finding about a connection test: what the API says of it,
// and the calls that it made.
func (p *play) brokenTest(expected string, t *tested, calls []*call) {
	exchanges := []conformance.Exchange{t.a.Exchange()}
	for _, c := range calls {
		exchanges = append(exchanges, p.exchangeOf(c))
	}
	p.Broken(expected, t.a.short(), exchanges...)
}

// testSays looks for a text in what the API says of each test.
func (p *play) testSays(text string) error {
	for _, t := range p.tests {
		seen := t.d.seen(rpc.MethodTestConnection)
		if len(seen) == 0 {
			return conformance.Outcome(conformance.Inconclusive, "", "the service has not called test_connection")
		}
		if !strings.Contains(strings.ToLower(t.message()), strings.ToLower(text)) {
			p.brokenTest(fmt.Sprintf("a message with %q", text), t, seen)
		}
	}
	p.Proof("%d connection tests", len(p.tests))
	return p.Held()
}

// callsFirst looks at the first call since the scenario listens.
func (p *play) callsFirst(method string) error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	if calls[0].method != method {
		p.brokenCall("the first call is "+method, calls[0].method, calls[0])
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

// listens counts only what the destination hears from now on.
func (p *play) listens() { p.deaf = len(p.dest.seen("")) }

// connectionBecomes changes the connection, and listens to what comes of it.
func (p *play) connectionBecomes(what, value string) error {
	p.listens()
	change := map[string]any{"name": p.called("renamed")}
	if what == "Auth Token" {
		change = map[string]any{"credentials": map[string]any{"auth_token": value}}
	}
	_, err := p.must(request{method: "PATCH", path: "/destinations/" + strconv.FormatInt(p.dest.id, 10),
		body: map[string]any{"service_connection": change}})
	return err
}

func (p *play) withObjects(t *conformance.Table) error {
	c, err := toldBy(t)
	if err != nil {
		return err
	}
	p.told = c
	return p.triesConnecting(connecting{sim: c})
}

// makesSync tries to make a sync of columns, the first of which is the primary
// identifier.
func (p *play) makesSync(columns, operation, object string) error {
	rows := table{columns: words(columns), rows: []row{{}}}
	for _, c := range rows.columns {
		rows.rows[0][c] = "zz-conf"
	}
	d, err := p.newDataset(rows)
	if err != nil {
		return err
	}
	body := p.syncBody(p.dest, d, operation)
	body["destination_attributes"] = map[string]any{"connection_id": p.dest.id, "object": object}
	a, err := p.api(request{method: "POST", path: "/syncs", body: body})
	if err != nil {
		return err
	}
	if id := a.id("data", "sync_id"); a.Status < 300 && id != 0 {
		p.made(thing{kind: "syncs", id: id, name: fmt.Sprint(body["label"])})
	}
	return nil
}

// tellsField adds a field to the reply to list_fields, or takes one out.
func (p *play) tellsField(how, name string) error {
	p.dest.plays(func(c *call) *reply {
		if c.method != rpc.MethodListFields {
			return nil
		}
		return &reply{edit: func(body []byte, _ http.Header) []byte { return retold(body, how == "of", name) }}
	})
	return nil
}

// retold is a reply to list_fields with another field, or without one.
func retold(body []byte, more bool, name string) []byte {
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
	m["result"] = raw(result)
	return raw(m)
}

// A refresh, and a cache that is filled beside a call, have a moment to end.
const (
	lookAgain = 50 * time.Millisecond
	looks     = 40
	readings  = 6
)

func (p *play) refreshes() error {
	path := "/destinations/" + strconv.FormatInt(p.dest.id, 10)
	a, err := p.must(request{method: "POST", path: path + "/refresh_objects"})
	if err != nil {
		return err
	}
	for range looks {
		status, err := p.must(request{method: "GET", path: path + "/refresh_objects_status?refresh_key=" + rawOf(a.at("refresh_key"))})
		if err != nil {
			return err
		}
		if status.text("status") != "processing" {
			return nil
		}
		if err := p.sleep(lookAgain); err != nil {
			return err
		}
	}
	return conformance.Outcome(conformance.Inconclusive, "", "the refresh did not end")
}

func (p *play) showsField(name, object string) error {
	var a *answer
	for range readings {
		var err error
		if a, err = p.api(request{method: "GET", path: p.dest.objectPath(object)}); err != nil {
			return err
		}
		if fields := a.at("data", "fields"); fields != nil && slices.ContainsFunc(fields.Items, func(f *wire.Node) bool { return stringOf(f.Get("full_name")) == name }) {
			p.Proof("GET %s", a.request.path)
			return nil
		}
		// The first reading may be what makes the service ask anew.
		if err := p.sleep(lookAgain); err != nil {
			return err
		}
	}
	p.broken(fmt.Sprintf("the field %q", name), a.short(), a)
	return p.Held()
}

// namesChange gives every row of the source another name.
func (p *play) namesChange() error {
	s := p.latest()
	t := table{columns: s.rows.table.columns}
	for _, r := range s.rows.table.rows {
		t.rows = append(t.rows, row{"id": r["id"], "name": fmt.Sprint(r["name"], " anew")})
	}
	return p.holds(s.rows, t)
}

// runsCall looks at the calls between the last batch of a run and the first of
// the next.
func (p *play) runsCall(which, list string) error {
	batches := p.dest.batches()
	run, before, runs := "", 0, 0
	for _, b := range batches {
		if own := rawOf(b.param("sync_plan", "sync_run_id")); own != run {
			run = own
			runs++
			for _, method := range words(list) {
				p.judgesCalls(which, method, run, runs, before, b)
			}
		}
		before = b.number
	}
	if runs < 2 {
		return conformance.Outcome(conformance.Inconclusive, "", "there were no two runs with batches")
	}
	p.Proof("%d runs", runs)
	return p.Held()
}

// judgesCalls looks for one method before the first batch of a run.
func (p *play) judgesCalls(which, method, run string, number, after int, batch *call) {
	var found []*call
	for _, c := range p.dest.seen(method) {
		if c.number > after && c.number < batch.number {
			found = append(found, c)
		}
	}
	switch {
	case which == "every run" && len(found) == 0:
		p.brokenCall(method+" before the first batch of the run "+run, "no such call", batch)
	case which != "every run" && number > 1 && len(found) > 0:
		p.brokenCall("no "+method+" right after another run", fmt.Sprintf("%d of them before the run %s", len(found), run), found...)
	}
}
