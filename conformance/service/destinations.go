package service

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/pause"
)

// destination is a connection of the service to one of the endpoints.
type destination struct {
	*endpoint.Endpoint
	sim    Simulator
	id     int64
	name   string
	url    string // as the service knows it
	origin string // the part of url before its path

	faults *recordFaults // how it answers records; nil: well
	times  sync.Map      // of calls by their numbers, by the service's clock, where they are noted
}

// connecting holds the special settings of a connection; zero is an ordinary one to the ordinary simulator.
type connecting struct {
	sim         SimulatorConfig
	credentials map[string]any // in addition to or in place of api_version and webhook_url
	suffix      string         // of the URL, such as "/deep/path?key=value"
	twist       endpoint.Twist // of what it answers by itself
}

// thingFields are those of the ordinary object: the identifier and one field of every type of the protocol.
func thingFields() []rpc.Field {
	field := func(name, kind string) rpc.Field {
		return rpc.Field{APIName: name, Label: name, Type: kind, Createable: true, Updateable: true}
	}
	id := field("id", "string")
	id.Identifier, id.Required = true, true
	tags := field("tags", "string")
	tags.Array = true
	return []rpc.Field{
		id, field("name", "string"), field("count", "integer"), field("price", "decimal"), field("ratio", "float"),
		field("active", "boolean"), field("day", "date"), field("moment", "date_time"), tags,
	}
}

const thingObject = "thing"

// ordinary fills in what the configuration of a simulator leaves out.
func (c SimulatorConfig) ordinary() SimulatorConfig {
	if c.Objects == nil {
		c.Objects = []rpc.Object{{APIName: thingObject, Label: "Thing"}}
	}
	if c.Fields == nil {
		c.Fields = map[string][]rpc.Field{}
	}
	if c.Operations == nil {
		c.Operations = map[string][]string{}
	}
	for _, o := range c.Objects {
		if c.Fields[o.APIName] == nil {
			c.Fields[o.APIName] = thingFields()
		}
		if c.Operations[o.APIName] == nil {
			c.Operations[o.APIName] = []string{rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationUpsert, rpc.OperationMirror}
		}
	}
	if c.Speed == (rpc.Speed{}) {
		c.Speed = rpc.Speed{MaximumBatchSize: 100, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 100_000}
	}
	return c
}

// originOf is a URL without path and query.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}

// place adds an endpoint for a destination; the service does not know it yet.
func (sc *scenario) place(c connecting) *destination {
	sim, err := sc.opts.NewSimulator(c.sim.ordinary())
	stopAt(err, "make simulator")
	name := sc.called("part")
	d := &destination{
		Endpoint: sc.endpoints.Add(name, sim), sim: sim, name: name, url: sc.address + "/" + name + c.suffix, origin: originOf(sc.address),
	}
	if c.twist != nil {
		d.Behave(c.twist)
	}
	sc.endings = append(sc.endings, func(context.Context) error {
		sc.endpoints.Drop(d.Endpoint)
		return sim.Close()
	})
	return d
}

// stored are the things at a destination, by the text of their identifiers.
func (d *destination) stored(identifier string) map[string]*wire.Node {
	const most = 10_000
	out := map[string]*wire.Node{}
	for after := int64(0); ; {
		page, _, err := d.sim.RecordsJSON(thingObject, after, most)
		stopAt(err, "read records of the simulator")
		for _, text := range page {
			record, err := wire.Parse(text)
			stopAt(err, "read record of the simulator")
			out[jsonvalue.Plain(record.Get("fields", identifier))] = record.Get("fields")
			after, _ = record.Get("id").Int()
		}
		if len(page) < most {
			return out
		}
	}
}

// objectPath is the API's path of an object.
func (d *destination) objectPath(object string) string {
	return below("destinations", d.id, "/objects/"+url.PathEscape(object))
}

// connection is the body that makes or changes a connection to a destination.
func (d *destination) connection(credentials map[string]any) map[string]any {
	c := map[string]any{"api_version": 1, "webhook_url": d.url}
	maps.Copy(c, credentials)
	return map[string]any{"service_connection": map[string]any{"name": d.name, "type": "custom_api", "credentials": c}}
}

// connect makes a destination, its endpoint and a connection to it.
func (sc *scenario) connect(c connecting) *destination {
	d := sc.place(c)
	d.id = sc.must(request{method: "POST", path: "/destinations", body: d.connection(c.credentials)}).id("data", "id")
	sc.made(thing{kind: "destinations", id: d.id})
	sc.dest, sc.words["given"] = d, d.name
	return d
}

// made notes a thing of the scenario, and deletes it at its end.
func (sc *scenario) made(t thing) {
	t.token = sc.signed(request{as: t.as, control: t.control}).token
	sc.keep(t)
	sc.endings = append(sc.endings, func(ctx context.Context) error {
		sc.remove(ctx, t) // what cannot be deleted now stays in the list of the run
		return nil
	})
}

// tested is a connection that a client has made, with the answer, which has the test result (spec 2.2) or a refusal.
type tested struct {
	d *destination
	a *answer
}

// passed reports whether the destination was found well.
func (t *tested) passed() bool {
	well, _ := t.a.at("data", "last_test_succeeded").Bool()
	return t.a.Status < 300 && well
}

// message is all text of the service about the test.
func (t *tested) message() string {
	if t.a.Status >= 300 {
		return string(t.a.Body)
	}
	steps := jsonvalue.Items(t.a.at("data", "last_test_results", "steps"))
	return strings.Join(lists.Of(steps, func(s *wire.Node) string { return jsonvalue.Text(s.Get("error", "message")) }), "; ")
}

// triesConnecting creates a destination and a connection, whatever the service reports about it.
func (sc *scenario) triesConnecting(c connecting) { sc.triesConnectionTo(sc.place(c), c.credentials) }

// triesConnectionTo creates a connection to an existing destination.
func (sc *scenario) triesConnectionTo(d *destination, credentials map[string]any) {
	sc.dest, sc.skippedCalls = d, 0
	// The answer may wait for that of the destination.
	a := sc.api(request{method: "POST", path: "/destinations", body: d.connection(credentials), within: callTimeout + sc.hold()})
	if !a.OK() || a.Status >= 500 || a.json == nil {
		undecided("the connection could not be made: %s", sc.secrets.String(a.short()))
	}
	if a.Status < 300 {
		d.id = a.id("data", "id")
		sc.made(thing{kind: "destinations", id: d.id})
	}
	sc.words["url"], sc.words["given"] = d.url, d.name
	sc.anew("destination")
	sc.shows("destination", "creation", a, a.at("data"))
	sc.tests = append(sc.tests, &tested{d, a})
}

// reach looks whether the service gets to the endpoints at all: without that every check would fail alike.
func (r *run) reach(ctx context.Context) (problem, fix string) {
	sim, err := r.opts.NewSimulator(SimulatorConfig{}.ordinary())
	if err != nil {
		return "no simulator could be made: " + err.Error(), ""
	}
	defer sim.Close()
	name := r.called("reach")
	d := &destination{Endpoint: r.endpoints.Add(name, sim), name: name, url: r.address + "/" + name}
	defer r.endpoints.Drop(d.Endpoint)
	a, err := r.send(ctx, "", request{method: "POST", path: "/destinations", body: d.connection(nil)})
	switch {
	case err != nil:
		return err.Error(), ""
	case a.id("data", "id") == 0:
		return "no destination could be made: " + a.short(), "see what the service says about the body; it needs connections of type custom_api"
	}
	made := thing{kind: "destinations", id: a.id("data", "id")}
	r.keep(made)
	// A service that has not tested the connection by now calls it for its objects.
	const tries, between = 40, 250 * time.Millisecond
	for try := 0; try < tries && len(d.Seen("")) == 0; try++ {
		if _, err = r.send(ctx, "", request{method: "GET", path: made.at() + "/objects"}); err != nil {
			return err.Error(), ""
		}
		_ = pause.For(ctx, between) // the next call reports that the run has ended
	}
	if len(d.Seen("")) == 0 {
		stated := ""
		if a, err := r.send(ctx, "", request{method: "GET", path: made.at()}); err == nil {
			stated = fmt.Sprintf("; the service says: %s", jsonvalue.Raw(a.at("data", "last_test_results")))
		}
		r.remove(ctx, made)
		return "the service cannot reach the simulator at " + r.address + stated,
			"give an address that it reaches with --simulator-url, or run the judge where the service runs"
	}
	if why := r.remove(ctx, made); why != "" {
		return "a destination could not be deleted again: " + why, ""
	}
	return "", ""
}

// lost reports whether the service no longer answers.
func (r *run) lost(ctx context.Context) bool {
	a, err := r.send(ctx, "", request{method: "GET", path: "/syncs?per_page=1"})
	return err != nil || a.Status == 0
}
