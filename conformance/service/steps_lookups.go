package service

import (
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// lookupSteps are about references to records of another object (spec 2.7).
func lookupSteps() []conformance.Step {
	return []conformance.Step{
		step(`^the object that is referred to holds$`, func(sc *scenario) any { return sc.referredHolds }),
		step(`^every record refers to the record that its lookup finds$`, func(sc *scenario) any { return sc.refers }),
	}
}

// referred is the object that the reference of the scenario's object leads to,
// with the field that it is looked up by: one that may be written, so that the
// judge can.
func (sc *scenario) referred() (object *wire.Node, by string) {
	name := jsonvalue.Text(reference(sc.nextSync().object).Get("lookup_object"))
	for _, other := range sc.nextSync().others {
		if jsonvalue.Text(other.Get("full_name")) != name {
			continue
		}
		for _, f := range itemsOf(other.Get("fields")) {
			if isTrue(f.Get("can_be_reference_key")) && (by == "" || isTrue(f.Get("createable"))) {
				object, by = other, jsonvalue.Text(f.Get("full_name"))
			}
		}
	}
	return object, by
}

// lookup are the mappings of the scenario's object with one more that finds a
// record of another object by its key (spec 2.5).
func (sc *scenario) lookup() []any {
	field := reference(sc.nextSync().object)
	m := mapping("name", jsonvalue.Text(field.Get("full_name")))
	m["lookup_object"] = jsonvalue.Text(field.Get("lookup_object"))
	if _, by := sc.referred(); by != "" {
		m["lookup_field"] = by
	}
	return append(slices.Clone(sc.nextSync().over["mappings"].([]any)), m)
}

// referredHolds writes records that can be looked up: the column key goes to the
// field that they are looked up by, the column name to those that they require.
func (sc *scenario) referredHolds(rows *wire.DataTable) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	object, by := sc.referred()
	if object == nil || !slices.Contains(keyFields(object), by) {
		return conformance.Outcome(conformance.NotRun, "", "no record that can be looked up can be written here")
	}
	mappings := []any{identifies(mapping("key", by))}
	for _, f := range itemsOf(object.Get("fields")) {
		if name := jsonvalue.Text(f.Get("full_name")); name != by && isTrue(f.Get("required_for_mapping")) {
			mappings = append(mappings, mapping("name", name))
		}
	}
	return sc.writes(t, map[string]any{
		"destination_attributes": map[string]any{"connection_id": sc.dest.id, "object": jsonvalue.Text(object.Get("full_name"))},
		"mappings":               mappings, "advanced_configuration": sc.nextSync().over["advanced_configuration"],
	})
}

// refers compares each reference that arrived with the record that it must lead
// to. By what is open: the number of the record, or any of its reference keys but
// the one that was looked by.
func (sc *scenario) refers() error {
	s, field := sc.latest(), jsonvalue.Text(reference(sc.nextSync().object).Get("full_name"))
	object, by := sc.referred()
	targets, _, err := sc.kept(s.dest, jsonvalue.Text(object.Get("full_name")))
	if err != nil {
		return err
	}
	leads := map[string][]string{} // by the value that was looked up
	for _, k := range targets {
		value := k.text(by)
		leads[value] = append(leads[value], k.number)
		for _, f := range itemsOf(object.Get("fields")) {
			name := jsonvalue.Text(f.Get("full_name"))
			if own := k.text(name); isTrue(f.Get("can_be_reference_key")) && name != by && own != "null" {
				leads[value] = append(leads[value], own)
			}
		}
	}
	records, a, err := sc.kept(s.dest, objectOf(s))
	if err != nil {
		return err
	}
	arrived := map[string]keptRecord{}
	for _, k := range records {
		arrived[k.text(fieldOf(s, "id"))] = k
	}
	for _, r := range s.rows.table.rows {
		id, value := fmt.Sprint(r["id"]), fmt.Sprint(r["name"])
		k, there := arrived[id]
		switch got := k.text(field); {
		case !there:
			sc.broken("the record "+id+" arrives", "it does not", a)
		case !slices.Contains(leads[value], got):
			sc.broken(fmt.Sprintf("%s of %s leads to the record whose %s is %q: one of %q", field, id, by, value, leads[value]), fmt.Sprintf("%q", got), a)
		}
	}
	return sc.heldBy(len(s.rows.table.rows), "reference")
}
