package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
)

// destination is a connection of the service to one of the endpoints.
type destination struct {
	*endpoint.Endpoint
	sim  Simulator
	id   int64
	name string
	url  string // as the service knows it
	// origin is what stands before the path of url.
	origin string

	faults *faults   // how it answers; nil: well
	times  *timeline // when its calls came; nil: they are not noted
}

// connecting says what is special about a connection. The zero value is an
// ordinary one to the ordinary simulator.
type connecting struct {
	sim         SimulatorConfig
	credentials map[string]any // beside or in place of api_version and webhook_url
	suffix      string         // of the URL, such as "/deep/path?key=value"
	script      func(*endpoint.Call) *endpoint.Reply
}

// thingFields are the fields of the ordinary object "thing": the identifier and
// one field of every type that the protocol has.
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
	if c.RateLimit == 0 {
		c.RateLimit = -1
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
func (sc *scenario) place(c connecting) (*destination, error) {
	sim, err := sc.opts.NewSimulator(c.sim.ordinary())
	if err != nil {
		return nil, fmt.Errorf("make simulator: %w", err)
	}
	name := sc.called("part")
	d := &destination{Endpoint: sc.endpoints.Add(name, sim), sim: sim, name: name, url: sc.address + "/" + name + c.suffix, origin: originOf(sc.address)}
	d.SetScript(c.script)
	sc.endings = append(sc.endings, func(context.Context) error {
		sc.endpoints.Drop(d.Endpoint)
		return sim.Close()
	})
	return d, nil
}

// stored are the records of an object at a destination, by the text of their
// identifiers.
func (d *destination) stored(object, identifier string) (map[string]map[string]json.RawMessage, error) {
	out := map[string]map[string]json.RawMessage{}
	for after, more := int64(0), true; more; {
		page, _, err := d.sim.RecordsJSON(object, after, pageOfRecords)
		if err != nil {
			return nil, fmt.Errorf("read records of the simulator: %w", err)
		}
		for _, text := range page {
			var record struct {
				ID     int64
				Fields map[string]json.RawMessage
			}
			if err := json.Unmarshal(text, &record); err != nil {
				return nil, fmt.Errorf("read record of the simulator: %w", err)
			}
			out[textOf(record.Fields[identifier])] = record.Fields
			after = record.ID
		}
		more = len(page) == pageOfRecords
	}
	return out, nil
}

const pageOfRecords = 10_000

// textOf is a string as it reads, and any other value as its JSON.
func textOf(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// connection is the body that makes or changes a connection to a destination.
func (d *destination) connection(credentials map[string]any) map[string]any {
	c := map[string]any{"api_version": 1, "webhook_url": d.url}
	for k, v := range credentials {
		c[k] = v
	}
	return map[string]any{"service_connection": map[string]any{"name": d.name, "type": "custom_api", "credentials": c}}
}

// connect makes a destination, its endpoint and a connection to it.
func (sc *scenario) connect(c connecting) (*destination, error) {
	d, err := sc.place(c)
	if err != nil {
		return nil, err
	}
	a, err := sc.must(request{method: "POST", path: "/destinations", body: d.connection(c.credentials)})
	if err != nil {
		return nil, err
	}
	d.id = a.id("data", "id")
	sc.made(thing{kind: "destinations", id: d.id, name: d.name})
	sc.dest = d
	return d, nil
}

// made notes a thing of the scenario, and deletes it at its end.
func (sc *scenario) made(t thing) {
	t.token = sc.signed(request{as: t.as, token: t.token, control: t.control}).token
	sc.keep(t)
	sc.endings = append(sc.endings, func(ctx context.Context) error {
		sc.remove(ctx, t) // what cannot be deleted now stays in the list of the run
		return nil
	})
}
