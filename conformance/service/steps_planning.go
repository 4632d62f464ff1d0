package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// planningSteps are for PLAN: planning and caching (spec 4.2).
var planningSteps = []step{
	{`^(?:the|every) connection test has (passed|failed)$`, func(sc *scenario, what string) error {
		return sc.eachTest("the connection test has "+what, func(t *tested) bool { return t.passed() == (what == "passed") })
	}},
	{`^the connection test says "([^"]*)"$`, func(sc *scenario, text string) error {
		return sc.eachTest(fmt.Sprintf("a message with %q", text), func(t *tested) bool { return containsFold(t.message(), text) })
	}},
	// spec 2.9: what the API reports about a failed run.
	{`^the run says "([^"]*)"$`, func(sc *scenario, text string) error {
		a := sc.latestRun()
		said := a.text("data", "error_code") + " " + a.text("data", "error_message") + " " + a.text("data", "error_detail")
		sc.expect(containsFold(said, text), fmt.Sprintf("error_code, error_message or error_detail with %q", text), said, a)
		return sc.HeldBy("run %d", a.id("data", "id"))
	}},
	{`^the service calls "([a-z_]+)" first$`, func(sc *scenario, method string) error {
		calls := sc.received()
		sc.expectCall(calls[0].Method == method, "the first call is "+method, calls[0].Method, calls[0])
		return sc.heldBy(len(calls), "call")
	}},
	{`^the Auth Token of the connection becomes "([^"]*)"$`, func(sc *scenario, value string) {
		sc.listens()
		sc.must(request{method: "PATCH", path: below("destinations", sc.dest.id, ""),
			body: map[string]any{"service_connection": map[string]any{"credentials": map[string]any{"auth_token": value}}}})
	}},
	{`^a destination with these objects:$`, func(sc *scenario, t *engine.Table) { sc.triesConnecting(connecting{sim: readObjects(t)}) }},
	{`^a client makes a sync of "([^"]*)" with operation "([a-z]+)" into "([^"]*)"$`, (*scenario).makesSync},
	{`^the destination tells (of|nothing of) the field "([^"]*)"$`, func(sc *scenario, how, name string) {
		sc.dest.Behave(methodIs(rpc.MethodListFields, func(_ *endpoint.Call, r *endpoint.Reply) {
			r.Edit = func(body []byte, _ http.Header) []byte { return withOtherFields(body, how == "of", name) }
		}))
	}},
	{`^(\d+[a-z]) pass$`, (*scenario).advance},
	{`^a client refreshes the objects of the destination$`, func(sc *scenario) {
		path := below("destinations", sc.dest.id, "")
		key := jsonvalue.Raw(sc.must(request{method: "POST", path: path + "/refresh_objects"}).at("refresh_key"))
		for range looks {
			if sc.get(path+"/refresh_objects_status?refresh_key="+key).text("status") != "processing" {
				return
			}
			sc.sleep(lookAgain)
		}
		undecided("the refresh did not end")
	}},
	{`^the service shows the field "([^"]*)" of "([^"]*)"$`, func(sc *scenario, name, object string) error {
		var a *answer
		for range readings {
			a = sc.api(request{method: "GET", path: sc.dest.objectPath(object)})
			fields := jsonvalue.Items(a.at("data", "fields"))
			if slices.ContainsFunc(fields, func(f *wire.Node) bool { return jsonvalue.Text(f.Get("full_name")) == name }) {
				sc.Proof("GET %s", a.request.path)
				return nil
			}
			// The first reading may be what makes the service query again.
			sc.sleep(lookAgain)
		}
		sc.broken(fmt.Sprintf("the field %q", name), a.short(), a)
		return sc.Held()
	}},
	// Only the calls between the last batch of a run and the first of the next count.
	{`^no run but the first calls "([^"]*)" before its first batch$`, func(sc *scenario, list string) error {
		run, before, runs := "", 0, 0
		for _, b := range sc.dest.Batches() {
			if own := jsonvalue.Raw(b.Param("sync_plan", "sync_run_id")); own != run {
				run = own
				runs++
				for _, c := range sc.dest.Seen("") {
					if runs > 1 && c.Number > before && c.Number < b.Number && slices.Contains(jsonvalue.Words(list), c.Method) {
						sc.brokenCall("no "+c.Method+" right after another run", "one before the run "+run, c)
					}
				}
			}
			before = b.Number
		}
		if runs < 2 {
			undecided("there were no two runs with batches")
		}
		return sc.heldBy(runs, "run")
	}},
}

func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// eachTest looks at the tests of all tried connections. A destination that was not called shows nothing.
func (sc *scenario) eachTest(expected string, is func(*tested) bool) error {
	return each(sc, "connection test", sc.tests, func(t *tested) {
		seen := t.d.Seen(rpc.MethodTestConnection)
		mustSee(len(seen), "the service has not called test_connection")
		if !is(t) {
			where := append([]conformance.Exchange{t.a.Exchange()}, lists.Of(seen, sc.exchangeOf)...)
			sc.Broken(expected, t.a.short(), where...)
		}
	})
}

// listens counts only what the destination hears from now on.
func (sc *scenario) listens() { sc.skippedCalls = len(sc.dest.Seen("")) }

// makesSync tries to make a sync of columns, the first of which is the primary identifier.
func (sc *scenario) makesSync(columns, operation, object string) {
	t := table{columns: jsonvalue.Words(columns), rows: []row{{}}}
	for _, c := range t.columns {
		t.rows[0][c] = "zz-conf"
	}
	rows := sc.newDataset(t)
	body := sc.syncBody(rows, operation)
	body["destination_attributes"] = map[string]any{"connection_id": sc.dest.id, "object": object}
	sc.creates(rows, body)
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

// A refresh, and a cache that is filled during a call, have a moment to end.
const lookAgain, looks, readings = 50 * time.Millisecond, 100, 6

// readObjects reads a table of objects: name, label, operations, fields (none: the ordinary ones), and whether fields are
// created on write. A field is its name, its type and its properties, as in "id:string:identifier:required".
func readObjects(t *engine.Table) SimulatorConfig {
	c := SimulatorConfig{Fields: map[string][]rpc.Field{}, Operations: map[string][]string{}}
	for _, row := range engine.Rows(t)[1:] {
		o := rpc.Object{APIName: row[0], Label: row[1], CanCreateFields: row[4]}
		c.Objects = append(c.Objects, o)
		c.Operations[o.APIName] = strings.Fields(row[2])
		for word := range strings.FieldsSeq(row[3]) {
			c.Fields[o.APIName] = append(c.Fields[o.APIName], readField(word))
		}
	}
	return c
}

func readField(word string) rpc.Field {
	parts := append(strings.Split(word, ":"), "")
	f := rpc.Field{APIName: parts[0], Label: "The " + parts[0], Type: parts[1]}
	flags := parts[2:]
	has := func(flag string) bool { return slices.Contains(flags, flag) }
	f.Identifier, f.Required, f.Array = has("identifier"), has("required"), has("array")
	f.Createable, f.Updateable = !has("readonly"), !has("readonly")
	for _, flag := range flags {
		if !slices.Contains([]string{"", "identifier", "required", "array", "readonly"}, flag) {
			stop(fmt.Errorf("read field %q: unknown word %q", word, flag))
		}
	}
	if !slices.Contains(rpc.FieldTypes(), f.Type) {
		stop(fmt.Errorf("read field %q: unknown type %q", word, f.Type))
	}
	return f
}
