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
func planningSteps() []engine.Step {
	return []engine.Step{
		step(`^(?:the|every) connection test has (passed|failed)$`, (*scenario).testsHave),
		step(`^the connection test says "([^"]*)"$`, (*scenario).testSays),
		step(`^the run says "([^"]*)"$`, (*scenario).runSays),
		step(`^the service calls "([a-z_]+)" first$`, (*scenario).callsFirst),
		step(`^the Auth Token of the connection becomes "([^"]*)"$`, (*scenario).tokenBecomes),
		step(`^a destination with these objects:$`, (*scenario).withObjects),
		step(`^a client makes a sync of "([^"]*)" with operation "([a-z]+)" into "([^"]*)"$`, (*scenario).makesSync),
		step(`^the destination tells (of|nothing of) the field "([^"]*)"$`, (*scenario).tellsField),
		step(`^(\d+[a-z]) pass$`, (*scenario).advance),
		step(`^a client refreshes the objects of the destination$`, (*scenario).refreshes),
		step(`^the service shows the field "([^"]*)" of "([^"]*)"$`, (*scenario).showsField),
		step(`^no run but the first calls "([^"]*)" before its first batch$`, (*scenario).runsCall),
	}
}

// testsHave looks at the tests of all connections that a client has tried. Where
// the destination was not called it did not show anything.
func (sc *scenario) testsHave(what string) error {
	return sc.eachTest("the connection test has "+what, func(t *tested) bool { return t.passed() == (what == "passed") })
}

func (sc *scenario) eachTest(expected string, is func(*tested) bool) error {
	for _, t := range sc.tests {
		seen := t.d.Seen(rpc.MethodTestConnection)
		if len(seen) == 0 {
			undecided("the service has not called test_connection")
		}
		if !is(t) {
			sc.brokenTest(expected, t, seen)
		}
	}
	return sc.heldBy(len(sc.tests), "connection test")
}

// brokenTest adds a finding about a connection test: what the API says of it,
// and the calls that it made.
func (sc *scenario) brokenTest(expected string, t *tested, calls []*endpoint.Call) {
	sc.Broken(expected, t.a.short(), append([]conformance.Exchange{t.a.Exchange()}, lists.Of(calls, sc.exchangeOf)...)...)
}

// testSays looks for a text in what the API says of each test.
func (sc *scenario) testSays(text string) error {
	return sc.eachTest(fmt.Sprintf("a message with %q", text), func(t *tested) bool {
		return strings.Contains(strings.ToLower(t.message()), strings.ToLower(text))
	})
}

// callsFirst looks at the first call since the scenario listens.
func (sc *scenario) callsFirst(method string) error {
	calls := sc.received()
	if calls[0].Method != method {
		sc.brokenCall("the first call is "+method, calls[0].Method, calls[0])
	}
	return sc.heldBy(len(calls), "call")
}

// listens counts only what the destination hears from now on.
func (sc *scenario) listens() { sc.skippedCalls = len(sc.dest.Seen("")) }

// tokenBecomes changes the connection, and listens to what comes of it.
func (sc *scenario) tokenBecomes(value string) {
	sc.listens()
	sc.must(request{method: "PATCH", path: below("destinations", sc.dest.id, ""),
		body: map[string]any{"service_connection": map[string]any{"credentials": map[string]any{"auth_token": value}}}})
}

func (sc *scenario) withObjects(t *engine.Table) {
	c, err := readObjects(t)
	stop(err)
	sc.triesConnecting(connecting{sim: c})
}

// makesSync tries to make a sync of columns, the first of which is the primary
// identifier.
func (sc *scenario) makesSync(columns, operation, object string) {
	rows := table{columns: jsonvalue.Words(columns), rows: []row{{}}}
	for _, c := range rows.columns {
		rows.rows[0][c] = "zz-conf"
	}
	body := sc.syncBody(sc.dest, sc.newDataset(rows), operation)
	body["destination_attributes"] = map[string]any{"connection_id": sc.dest.id, "object": object}
	sc.creates(body)
}

// tellsField adds a field to the reply to list_fields, or takes one out.
func (sc *scenario) tellsField(how, name string) {
	sc.dest.SetScript(func(c *endpoint.Call) *endpoint.Reply {
		if c.Method != rpc.MethodListFields {
			return nil
		}
		return &endpoint.Reply{Edit: func(body []byte, _ http.Header) []byte { return withOtherFields(body, how == "of", name) }}
	})
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
	looks     = 100
	readings  = 6
)

func (sc *scenario) refreshes() {
	path := below("destinations", sc.dest.id, "")
	a := sc.must(request{method: "POST", path: path + "/refresh_objects"})
	for range looks {
		status := sc.must(request{method: "GET", path: path + "/refresh_objects_status?refresh_key=" + jsonvalue.Raw(a.at("refresh_key"))})
		if status.text("status") != "processing" {
			return
		}
		sc.sleep(lookAgain)
	}
	undecided("the refresh did not end")
}

func (sc *scenario) showsField(name, object string) error {
	var a *answer
	for range readings {
		a = sc.api(request{method: "GET", path: sc.dest.objectPath(object)})
		if slices.ContainsFunc(jsonvalue.Items(a.at("data", "fields")), func(f *wire.Node) bool { return jsonvalue.Text(f.Get("full_name")) == name }) {
			sc.Proof("GET %s", a.request.path)
			return nil
		}
		// The first reading may be what makes the service ask anew.
		sc.sleep(lookAgain)
	}
	sc.broken(fmt.Sprintf("the field %q", name), a.short(), a)
	return sc.Held()
}

// runsCall looks at the calls between the last batch of a run and the first of
// the next.
func (sc *scenario) runsCall(list string) error {
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
}

// latestRun is the run that ended last.
func (sc *scenario) latestRun() *answer {
	s := sc.latest()
	if len(s.runs) == 0 {
		undecided("no run has ended")
	}
	return s.runs[len(s.runs)-1]
}

// runSays looks for a text in what the API says of a failed run (spec 2.9).
func (sc *scenario) runSays(text string) error {
	a := sc.latestRun()
	said := a.text("data", "error_code") + " " + a.text("data", "error_message") + " " + a.text("data", "error_detail")
	if !strings.Contains(strings.ToLower(said), strings.ToLower(text)) {
		sc.broken(fmt.Sprintf("error_code, error_message or error_detail with %q", text), said, a)
	}
	return sc.HeldBy("run %d", a.id("data", "id"))
}

// readObjects reads a table of objects: name, label, operations, fields, and whether
// fields are created on write. A field is its name and type and what is true of
// it, as in "id:string:identifier:required"; what is not said is createable and
// updateable. Without any they are those of the ordinary object.
func readObjects(t *engine.Table) (SimulatorConfig, error) {
	c := SimulatorConfig{Fields: map[string][]rpc.Field{}, Operations: map[string][]string{}}
	for _, row := range engine.Rows(t)[1:] {
		o := rpc.Object{APIName: row[0], Label: row[1], CanCreateFields: row[4]}
		c.Objects = append(c.Objects, o)
		c.Operations[o.APIName] = strings.Fields(row[2])
		for word := range strings.FieldsSeq(row[3]) {
			f, err := readField(word)
			if err != nil {
				return c, err
			}
			c.Fields[o.APIName] = append(c.Fields[o.APIName], f)
		}
	}
	return c, nil
}

func readField(word string) (rpc.Field, error) {
	name, rest, _ := strings.Cut(word, ":")
	kind, rest, _ := strings.Cut(rest, ":")
	f := rpc.Field{APIName: name, Label: "The " + name, Type: kind, Createable: true, Updateable: true}
	for flag := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ':' }) {
		switch flag {
		case "identifier":
			f.Identifier = true
		case "required":
			f.Required = true
		case "array":
			f.Array = true
		case "readonly":
			f.Createable, f.Updateable = false, false
		default:
			return f, fmt.Errorf("read field %q: unknown word %q", word, flag)
		}
	}
	if !slices.Contains(rpc.FieldTypes(), kind) {
		return f, fmt.Errorf("read field %q: unknown type %q", word, kind)
	}
	return f, nil
}
