package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
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
		if sc.tidies(a); a.id("data", "id") != 0 {
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
	if fields == nil {
		return credentials
	}
	for _, f := range fields.Items {
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

// keptRecord is a record of an emulated application as the control API shows it.
// Members of fields come in the order in which they were written.
type keptRecord struct {
	number string // by which the application knows the record
	fields *wire.Node
}

// text is a value of the record as it reads.
func (k keptRecord) text(field string) string {
	if k.fields == nil {
		return "null"
	}
	n := k.fields.Get(field)
	if n == nil {
		return "null"
	}
	return textOf(n.Raw)
}

// kept are the records of an object of an application, oldest first. Only a
// stand-in shows them.
func (sc *scenario) kept(d *destination, object string) ([]keptRecord, *answer, error) {
	a, err := sc.control("GET", fmt.Sprintf("/destinations/%d/records?object=%s&limit=%d", d.id, url.QueryEscape(object), pageOfRecords), nil)
	if err != nil {
		return nil, nil, err
	}
	var out []keptRecord
	for _, one := range itemsOf(a.at("records")) {
		out = append(out, keptRecord{number: jsonvalue.Raw(one.Get("id")), fields: one.Get("fields")})
	}
	return out, a, nil
}

// objectOf is the object that a sync writes to.
func objectOf(s *syncing) string {
	at, _ := s.body["destination_attributes"].(map[string]any)
	return fmt.Sprint(at["object"])
}

// fieldOf names the field that a column of a sync goes to, "" where it is not
// mapped.
func fieldOf(s *syncing, column string) string {
	var mappings []struct {
		From struct{ Data any }
		To   string
	}
	if json.Unmarshal(jsonvalue.Encode(s.body["mappings"]), &mappings) != nil {
		return ""
	}
	for _, m := range mappings {
		if m.From.Data == column {
			return m.To
		}
	}
	return ""
}

// twoMappings take the column id to the key of the scenario's object, and the
// column name to its required fields, or to one that may be written.
func (sc *scenario) twoMappings() []any {
	object := sc.nextSync().object
	key := keyFields(object)[0]
	mappings := []any{identifies(mapping("id", key))}
	var free string
	for _, f := range itemsOf(object.Get("fields")) {
		switch name := jsonvalue.Text(f.Get("full_name")); {
		case name == key:
		case isTrue(f.Get("required_for_mapping")):
			mappings = append(mappings, mapping("name", name))
		case free == "" && isTrue(f.Get("createable")) && jsonvalue.Text(f.Get("type")) == "string" && !isTrue(f.Get("array")):
			free = name
		}
	}
	if len(mappings) == 1 && free != "" {
		mappings = append(mappings, mapping("name", free))
	}
	return mappings
}

// writes lets a sync of its own write rows into an object of an application,
// through the API as everything is.
func (sc *scenario) writes(t table, body map[string]any) error {
	rows, err := sc.newDataset(t)
	if err != nil {
		return err
	}
	body["source_attributes"] = map[string]any{"connection_id": sc.source, "object": map[string]any{"type": "dataset", "id": rows.id}}
	s, err := sc.newSync(sc.dest, rows, "upsert", body)
	if err != nil {
		return err
	}
	ended, err := sc.runs(s)
	sc.syncs = slices.DeleteFunc(sc.syncs, func(one *syncing) bool { return one == s })
	if err == nil && (ended.text("data", "status") != "completed" || ended.id("data", "records_updated") != int64(len(t.rows))) {
		err = engine.Outcome(conformance.Inconclusive, "", "what the check builds on could not be written: %s", sc.secrets.String(ended.short()))
	}
	return err
}

// objectHolds compares all records that an application has in the object of the
// latest sync with a table of the source's columns.
func (sc *scenario) objectHolds(rows *engine.Table) error {
	want, err := tableOf(rows)
	if err != nil {
		return err
	}
	s := sc.latest()
	records, a, err := sc.kept(s.dest, objectOf(s))
	if err != nil {
		return err
	}
	var wanted, got []string
	for _, r := range want.rows {
		line := ""
		for _, column := range want.columns {
			line += fmt.Sprintf(" %s=%v", column, r[column])
		}
		wanted = append(wanted, line)
	}
	for _, k := range records {
		line := ""
		for _, column := range want.columns {
			line += fmt.Sprintf(" %s=%s", column, k.text(fieldOf(s, column)))
		}
		got = append(got, line)
	}
	slices.Sort(wanted)
	slices.Sort(got)
	if !slices.Equal(wanted, got) {
		sc.broken(fmt.Sprintf("the object holds exactly%s", wanted), fmt.Sprint(got), a)
	}
	return sc.HeldBy("%s in the application", quantity.Count(len(records), "record"))
}
