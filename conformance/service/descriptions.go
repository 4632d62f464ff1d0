package service

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// readObjects reads a table of objects: name, label, operations, fields, and whether
// fields are created on write. A field is its name and type and what is true of
// it, as in "id:string:identifier:required"; what is not said is createable and
// updateable.
func readObjects(t *engine.Table) (SimulatorConfig, error) {
	c := SimulatorConfig{Fields: map[string][]rpc.Field{}, Operations: map[string][]string{}}
	for _, row := range engine.Rows(t)[1:] {
		cell := func(i int) string { return row[i] }
		o := rpc.Object{APIName: cell(0), Label: cell(1), CanCreateFields: cell(4)}
		c.Objects = append(c.Objects, o)
		c.Operations[o.APIName] = strings.Fields(cell(2))
		for word := range strings.FieldsSeq(cell(3)) {
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

// objectPath is the API's path of an object.
func (d *destination) objectPath(object string) string {
	return "/destinations/" + strconv.FormatInt(d.id, 10) + "/objects/" + url.PathEscape(object)
}

func (sc *scenario) showsObject(object string) error {
	a, err := sc.api(request{method: "GET", path: sc.dest.objectPath(object)})
	if err != nil {
		return err
	}
	if fields := a.at("data", "fields"); a.text("data", "full_name") != object || fields == nil || len(fields.Items) == 0 {
		sc.broken(fmt.Sprintf("the object %q with fields", object), a.short(), a)
	}
	return sc.HeldBy("GET %s", a.request.path)
}

// showsDescribed compares what the API shows with what the planning calls were
// answered (spec 1: objects are tables, fields are columns).
func (sc *scenario) showsDescribed(what string) error {
	a, err := sc.api(request{method: "GET", path: "/destinations/" + strconv.FormatInt(sc.dest.id, 10) + "/objects?per_page=100"})
	if err != nil {
		return err
	}
	shown := map[string]*wire.Node{}
	if list := a.at("data"); list.Is(wire.Array) {
		for _, o := range list.Items {
			shown[jsonvalue.Text(o.Get("full_name"))] = o
		}
	}
	for _, o := range sc.described.Objects {
		var want, got string
		switch at := shown[o.APIName]; what {
		case "objects":
			want = fmt.Sprintf("%q, fields created on write: %t", o.Label, o.CanCreateFields != "")
			got = fmt.Sprintf("%q, fields created on write: %s", jsonvalue.Text(at.Get("label")), jsonvalue.Raw(at.Get("allow_custom_fields")))
		case "operations":
			want, got = operationText(sc.described.Operations[o.APIName]), operationText(textsOf(at.Get("supported_operations")))
		case "fields":
			want, got = fieldText(sc.described.Fields[o.APIName]), shownText(at.Get("fields"))
		}
		if want != got {
			sc.broken(o.APIName+": "+want, got, a)
		}
	}
	if what == "objects" && len(shown) != len(sc.described.Objects) {
		sc.broken(quantity.Count(len(sc.described.Objects), "object"), quantity.Count(len(shown), "object"), a)
	}
	return sc.heldBy(len(shown), "object")
}

func operationText(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// textsOf are the strings of a list.
func textsOf(n *wire.Node) []string {
	var out []string
	if n != nil {
		for _, item := range n.Items {
			out = append(out, jsonvalue.Text(item))
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
			out = append(out, fmt.Sprintf("%s %q %s array:%t required:%t createable:%t updateable:%t", jsonvalue.Text(f.Get("full_name")), jsonvalue.Text(f.Get("label")),
				strings.ToLower(jsonvalue.Text(f.Get("type"))), is("array"), is("required_for_mapping"), is("createable"), is("updateable")))
		}
	}
	return operationText(out)
}

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
	return nil, engine.Outcome(conformance.Inconclusive, "", "the endpoint has no plan of its own")
}

// anEndpoint reads | object_api_name | label | operations | can_create_fields |.
func (sc *scenario) anEndpoint(t *engine.Table) error {
	pl := &plan{fields: map[string][]rpc.Field{}, operations: map[string][]string{}}
	for _, row := range engine.Rows(t) {
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
func (sc *scenario) itsFields(object string, t *engine.Table) error {
	pl, err := sc.plan()
	if err != nil {
		return err
	}
	pl.fields[object] = nil
	for _, row := range engine.Rows(t) {
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
