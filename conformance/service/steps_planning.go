package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// planningSteps are for PLAN: planning and caching (spec 4.2).
func planningSteps() []conformance.Step {
	return []conformance.Step{
		step(`^(?:the|every) connection test has (passed|failed)$`, func(p *play) any { return p.testsHave }),
		step(`^the connection test says "([^"]*)"$`, func(p *play) any { return p.testSays }),
		step(`^the service calls "([a-z_]+)" first$`, func(p *play) any { return p.callsFirst }),
		step(`^a client connects a destination$`, func(p *play) any {
			return func() error { return p.triesConnecting(connecting{}) }
		}),
		step(`^a client changes the name of the connection$`, func(p *play) any { return p.renamesConnection }),
		step(`^a destination with these objects:$`, func(p *play) any { return p.withObjects }),
		step(`^the service shows the object "([^"]*)"$`, func(p *play) any { return p.showsObject }),
		step(`^the service shows the (objects|fields|operations) that the destination tells$`, func(p *play) any { return p.showsTold }),
		step(`^a client makes a sync of "([^"]*)" with operation "([a-z]+)" into "([^"]*)"$`, func(p *play) any { return p.makesSync }),
		step(`^the destination tells (of|nothing of) the field "([^"]*)"$`, func(p *play) any { return p.tellsField }),
		step(`^(\d+[a-z]) pass$`, func(p *play) any { return p.advance }),
		step(`^a client refreshes the objects of the destination$`, func(p *play) any { return p.refreshes }),
		step(`^the service shows the field "([^"]*)" of "([^"]*)"$`, func(p *play) any { return p.showsField }),
		step(`^the run has (completed|failed)$`, func(p *play) any { return p.runHas }),
		step(`^the names in the source change$`, func(p *play) any { return p.namesChange }),
		step(`^every run asks for the speed before its first batch$`, func(p *play) any { return p.asksForSpeed }),
		step(`^the second run makes no planning call$`, func(p *play) any { return p.secondRunPlansNothing }),
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
	exchanges := []conformance.Exchange{t.a.Exchange}
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

func (p *play) renamesConnection() error {
	p.listens()
	_, err := p.must(request{method: "PATCH", path: "/destinations/" + strconv.FormatInt(p.dest.id, 10),
		body: map[string]any{"service_connection": map[string]any{"name": p.called("renamed")}}})
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

// objectPath is the API's path of an object.
func (d *destination) objectPath(object string) string {
	return "/destinations/" + strconv.FormatInt(d.id, 10) + "/objects/" + url.PathEscape(object)
}

func (p *play) showsObject(object string) error {
	a, err := p.api(request{method: "GET", path: p.dest.objectPath(object)})
	if err != nil {
		return err
	}
	if fields := a.at("data", "fields"); a.text("data", "full_name") != object || fields == nil || len(fields.Items) == 0 {
		p.broken(fmt.Sprintf("the object %q with fields", object), a.short(), a)
	}
	p.Proof("GET %s", a.request.path)
	return p.Held()
}

// showsTold compares what the API shows with what the planning calls were
// answered (spec 1: objects are tables, fields are columns).
func (p *play) showsTold(what string) error {
	a, err := p.api(request{method: "GET", path: "/destinations/" + strconv.FormatInt(p.dest.id, 10) + "/objects?per_page=100"})
	if err != nil {
		return err
	}
	shown := map[string]*wire.Node{}
	if list := a.at("data"); list.Is(wire.Array) {
		for _, o := range list.Items {
			shown[stringOf(o.Get("full_name"))] = o
		}
	}
	for _, o := range p.told.Objects {
		var want, got string
		switch at := shown[o.APIName]; what {
		case "objects":
			want = fmt.Sprintf("%q, fields created on write: %t", o.Label, o.CanCreateFields != "")
			got = fmt.Sprintf("%q, fields created on write: %s", stringOf(at.Get("label")), rawOf(at.Get("allow_custom_fields")))
		case "operations":
			want, got = operationText(p.told.Operations[o.APIName]), operationText(textsOf(at.Get("supported_operations")))
		case "fields":
			want, got = fieldText(p.told.Fields[o.APIName]), shownText(at.Get("fields"))
		}
		if want != got {
			p.broken(o.APIName+": "+want, got, a)
		}
	}
	if what == "objects" && len(shown) != len(p.told.Objects) {
		p.broken(fmt.Sprintf("%d objects", len(p.told.Objects)), fmt.Sprintf("%d objects", len(shown)), a)
	}
	p.Proof("%d objects", len(shown))
	return p.Held()
}

func operationText(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// textsOf are the strings of a list.
func textsOf(n *wire.Node) []string {
	var out []string
	if n != nil {
		for _, item := range n.Items {
			out = append(out, stringOf(item))
		}
	}
	return out
}

// fieldText and shownText put fields into words: those of the protocol, and
// those of the API.
func fieldText(fields []rpc.Field) string {
	var out []string
	for _, f := range fields {
		out = append(out, fmt.Sprintf("%s %q %s array:%t required:%t createable:%t updateable:%t",
			f.APIName, f.Label, f.Type, f.Array, f.Required, f.Createable, f.Updateable))
	}
	return operationText(out)
}

func shownText(n *wire.Node) string {
	var out []string
	if n != nil {
		for _, f := range n.Items {
			is := func(name string) bool { yes, _ := f.Get(name).Bool(); return yes }
			out = append(out, fmt.Sprintf("%s %q %s array:%t required:%t createable:%t updateable:%t", stringOf(f.Get("full_name")), stringOf(f.Get("label")),
				strings.ToLower(stringOf(f.Get("type"))), is("array"), is("required_for_mapping"), is("createable"), is("updateable")))
		}
	}
	return operationText(out)
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

func (p *play) runHas(status string) error {
	a, err := p.latestRun()
	if err != nil {
		return err
	}
	if a.text("data", "status") != status {
		p.broken("the run has "+status, a.short(), a)
	}
	p.Proof("run %d", a.id("data", "id"))
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

// asksForSpeed wants a get_sync_speed between the last batch of a run and the
// first of the next.
func (p *play) asksForSpeed() error {
	batches, asked := p.dest.batches(), p.dest.seen(rpc.MethodGetSyncSpeed)
	if len(batches) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no run has sent a batch")
	}
	run, before := "", 0
	for _, b := range batches {
		if own := rawOf(b.param("sync_plan", "sync_run_id")); own != run {
			if !slices.ContainsFunc(asked, func(c *call) bool { return c.number > before && c.number < b.number }) {
				p.brokenCall("get_sync_speed before the first batch of the run "+own, "none", b)
			}
			run = own
		}
		before = b.number
	}
	p.Proof("%d calls of get_sync_speed", len(asked))
	return p.Held()
}

// secondRunPlansNothing looks at what comes after the first run.
func (p *play) secondRunPlansNothing() error {
	s := p.latest()
	if len(s.marks) < 2 || s.marks[0] == 0 || s.marks[1] == s.marks[0] {
		return conformance.Outcome(conformance.Inconclusive, "", "there were no two runs with batches")
	}
	last := s.dest.batches()[s.marks[0]-1].number
	for _, c := range s.dest.seen("") {
		if c.number > last && slices.Contains([]string{rpc.MethodListObjects, rpc.MethodListFields, rpc.MethodSupportedOperations}, c.method) {
			p.brokenCall("no planning call right after the first run", c.method, c)
		}
	}
	p.Proof("%d batches of the second run", s.marks[1]-s.marks[0])
	return p.Held()
}
