package service

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// mappingsSteps are for MAP: what a source has, and what of it arrives at a
// destination (spec 2.7).
func mappingsSteps() []engine.Step {
	return []engine.Step{
		step(`^these rows in the source:$`, func(sc *scenario) any { return sc.rowsAre }),

		step(`^a destination with these fields:$`, func(sc *scenario) any { return sc.fieldsAre }),

		step(`^every record in the destination has:$`, func(sc *scenario) any { return sc.allStored }),
		step(`^the record "([^"]+)" in the destination has:$`, func(sc *scenario) any { return sc.isStored }),
	}
}

func (sc *scenario) rowsAre(t *engine.Table) error {
	content, err := sc.tableOf(t)
	if err != nil {
		return err
	}
	sc.nextSync().rows, err = sc.newDataset(content)
	return err
}

// allStored holds every record of the source against what the destination has.
func (sc *scenario) allStored(t *engine.Table) error {
	return sc.areStored(lists.Of(sc.nextSync().rows.table.rows, func(r row) string { return fmt.Sprint(r["id"]) }), t)
}

// isStored holds one record of the destination against a table.
func (sc *scenario) isStored(id string, t *engine.Table) error {
	return sc.areStored([]string{id}, t)
}

func (sc *scenario) areStored(ids []string, t *engine.Table) error {
	wanted, err := sc.asked(t)
	if err != nil {
		return err
	}
	d := sc.latest().dest
	stored, err := d.stored(thingObject, "id")
	if err != nil {
		return err
	}
	for _, id := range ids {
		record, there := stored[id]
		if !there {
			sc.brokenCall(fmt.Sprintf("the record %s is in the destination", id), "it is not", d.Batches()...)
			continue
		}
		for field, value := range wanted {
			if why := jsonvalue.Missing(value, nested(record, field), field); why != "" {
				sc.brokenCall(fmt.Sprintf("the record %s has %s %s", id, field, jsonvalue.Brief(value)), why, d.Batches()...)
			}
		}
	}
	return sc.heldBy(len(ids), "record")
}

// nested is a value of a record: under its whole name, or down the dots of it.
func nested(record map[string]json.RawMessage, field string) any {
	if v, there := record[field]; there {
		return anyOf(v)
	}
	first, rest, deeper := strings.Cut(field, ".")
	var inner map[string]json.RawMessage
	if !deeper || json.Unmarshal(record[first], &inner) != nil {
		return nil
	}
	return nested(inner, rest)
}

// fieldsAre connects a destination whose object has the fields of a table: each
// is an identifier, required, or an ordinary one.
func (sc *scenario) fieldsAre(t *engine.Table) error {
	var fields []rpc.Field
	for _, line := range cells(t) {
		fields = append(fields, rpc.Field{
			APIName: line["name"], Label: line["name"], Type: line["type"], Createable: true, Updateable: true,
			Identifier: line["is"] == "identifier", Required: line["is"] != "ordinary",
		})
	}
	_, err := sc.connect(connecting{sim: SimulatorConfig{Fields: map[string][]rpc.Field{thingObject: fields}}})
	return err
}

func anyOf(text json.RawMessage) any {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return v
}
