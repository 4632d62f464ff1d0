package service

import (
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// plan is what an endpoint answers to planning calls in place of the simulator.
type plan struct {
	objects    []rpc.Object
	fields     map[string][]rpc.Field
	operations map[string][]string
}

func (sc *scenario) plan() (*plan, error) {
	if sc.planned != nil {
		return sc.planned, nil
	}
	return nil, conformance.Outcome(conformance.Inconclusive, "", "the endpoint has no plan of its own")
}

// anEndpoint reads | object_api_name | label | operations | can_create_fields |.
func (sc *scenario) anEndpoint(t *wire.DataTable) error {
	pl := &plan{fields: map[string][]rpc.Field{}, operations: map[string][]string{}}
	for _, row := range t.Rows() {
		o := rpc.Object{APIName: row[0], Label: row[1]}
		if len(row) > 3 {
			o.CanCreateFields = row[3]
		}
		pl.objects = append(pl.objects, o)
		pl.fields[o.APIName] = thingFields()
		pl.operations[o.APIName] = append([]string{}, strings.Fields(row[2])...)
	}
	sc.planned = pl
	return nil
}

// itsFields reads | field_api_name | label | type | what is true of it |.
func (sc *scenario) itsFields(object string, t *wire.DataTable) error {
	pl, err := sc.plan()
	if err != nil {
		return err
	}
	pl.fields[object] = nil
	for _, row := range t.Rows() {
		is := func(word string) bool { return slices.Contains(strings.Fields(row[3]), word) }
		pl.fields[object] = append(pl.fields[object], rpc.Field{
			APIName: row[0], Label: row[1], Type: row[2],
			Identifier: is("identifier"), Required: is("required"), Createable: is("createable"), Updateable: is("updateable"), Array: is("array"),
		})
	}
	return nil
}

// connectsPlan makes a connection to an endpoint that answers with the plan.
func (sc *scenario) connectsPlan() error {
	pl, err := sc.plan()
	if err != nil {
		return err
	}
	d, err := sc.place(connecting{script: pl.answers})
	if err != nil {
		return err
	}
	return sc.connects(d, d.connection(nil))
}

// answers is the script of the endpoint.
func (pl *plan) answers(c *endpoint.Call) *endpoint.Reply {
	object := jsonvalue.Text(c.Param("object", "object_api_name"))
	var result any
	switch c.Method {
	case rpc.MethodListObjects:
		result = map[string]any{"objects": pl.objects}
	case rpc.MethodListFields:
		result = map[string]any{"fields": pl.fields[object]}
	case rpc.MethodSupportedOperations:
		result = map[string]any{"operations": pl.operations[object]}
	default:
		return nil
	}
	return &endpoint.Reply{Edit: withResult(result)}
}

// said is what the endpoint said about what a view shows, as JSON.
func (pl *plan) said(v *view) *wire.Node {
	name := jsonvalue.Text(v.node.Get("full_name"))
	var stated any
	if v.kind == "destination object" {
		if i := slices.IndexFunc(pl.objects, func(o rpc.Object) bool { return o.APIName == name }); i >= 0 {
			stated = pl.objects[i]
		}
	} else {
		fields := pl.fields[jsonvalue.Text(v.of.node.Get("full_name"))]
		if i := slices.IndexFunc(fields, func(f rpc.Field) bool { return f.APIName == name }); i >= 0 {
			stated = fields[i]
		}
	}
	n, _ := wire.Parse(jsonvalue.Encode(stated))
	return n
}

// planObject is what the endpoint has for an object that is shown; false where
// it has none.
func (pl *plan) planObject(v *view) (string, bool) {
	name := jsonvalue.Text(v.node.Get("full_name"))
	_, known := pl.operations[name]
	return name, known
}
