package service

import (
	"bytes"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// emulatedOnes connects applications that the service emulates itself: they have
// what no custom destination has. Their credentials are made from what the
// service says about them.
func (sc *scenario) emulatedOnes() error {
	var types []*wire.Node
	if _, err := sc.pages("/connectors", func(_ *answer, n *wire.Node) {
		if emulated, _ := n.Get("emulated").Bool(); emulated {
			types = append(types, n)
		}
	}); err != nil {
		return err
	}
	var ids []int64
	for _, n := range types {
		a, err := sc.api(request{method: "POST", path: "/destinations", body: map[string]any{"service_connection": map[string]any{
			"name": sc.called("application"), "type": jsonvalue.Text(n.Get("service_name")), "credentials": invented(n.Get("configuration_fields", "fields")),
		}}})
		if err != nil {
			return err
		}
		if sc.madeBy(a); a.id("data", "id") != 0 {
			sc.shows("destination", "creation", a, a.at("data"))
			ids = append(ids, a.id("data", "id"))
		}
	}
	if len(ids) == 0 {
		return engine.Outcome(conformance.NotRun, "", "the service emulates no application")
	}
	sc.emulated = ids
	return nil
}

// invented are credentials that fit the fields of a connector.
func invented(fields *wire.Node) map[string]any {
	credentials := map[string]any{}
	for _, f := range jsonvalue.Items(fields) {
		if rules := f.Get("rules"); rules == nil || !bytes.Contains(rules.Raw, []byte("required")) {
			continue
		}
		value := jsonvalue.Text(f.Get("placholder"))
		if first := f.Get("possible_values", "0"); first != nil {
			value = jsonvalue.Text(first)
		}
		if value == "" {
			value = "zz-conf"
		}
		credentials[jsonvalue.Text(f.Get("id"))] = value
	}
	return credentials
}

// advancedAgrees looks at what the definitions say about themselves (spec 2.4).
func (sc *scenario) advancedAgrees(what string) error {
	all, err := sc.looked("advanced configuration field")
	if err != nil {
		return err
	}
	seen := 0
	for _, v := range all {
		kind := jsonvalue.Text(v.node.Get("type"))
		switch byDefault := v.node.Get("default"); {
		case what == "default" && byDefault != nil:
			seen++
			if ok, err := jsonvalue.Fits(kind, byDefault); err == nil && !ok {
				sc.brokenView(v, "default", "is "+kind, jsonvalue.Raw(byDefault))
			}
		case what == "dropdown" && jsonvalue.Text(v.node.Get("input_type")) == "dropdown":
			seen++
			values := v.node.Get("supported_values")
			if ok, _ := jsonvalue.Fits("array of string", values); !ok || len(values.Items) == 0 {
				sc.brokenView(v, "supported_values", "lists what can be chosen", jsonvalue.Raw(values))
			}
		case what == "definition":
			seen++
			name := jsonvalue.Text(v.node.Get("name"))
			if stated := v.of.node.Get("configurable_field_definitions", name); jsonvalue.Text(stated) != kind {
				sc.brokenView(v.of, "configurable_field_definitions."+name, "is "+strconv.Quote(kind), jsonvalue.Raw(stated))
			}
		}
	}
	if seen == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no %s was shown", what)
	}
	return sc.heldBy(seen, "look")
}
