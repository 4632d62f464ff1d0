package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// mappingsSteps are for MAP: what a source has, and what of it arrives at a
// destination (spec 2.7).
func mappingsSteps() []engine.Step {
	return []engine.Step{
		step(`^these rows in the source:$`, func(sc *scenario) any { return sc.rowsAre }),
		step(`^the source gets these rows:$`, func(sc *scenario) any { return sc.rowsCome }),
		step(`^every row of the source gets a column "([^"]+)" with (.+)$`, func(sc *scenario) any { return sc.columnComes }),
		step(`^the source loses the column "([^"]+)"$`, func(sc *scenario) any { return sc.columnGoes }),
		step(`^a sync of all properties runs with each of these forms:$`, func(sc *scenario) any { return sc.formsRun }),

		step(`^a destination with these fields:$`, func(sc *scenario) any { return sc.fieldsAre }),

		step(`^every record in the destination has:$`, func(sc *scenario) any { return sc.allStored }),
		step(`^the record "([^"]+)" in the destination has:$`, func(sc *scenario) any { return sc.isStored }),
		step(`^every record that was sent has exactly the fields "([^"]+)"$`, func(sc *scenario) any { return sc.sentExactly }),
		step(`^every form wrote its name and no other$`, func(sc *scenario) any { return sc.formsWrote }),
	}
}

// rowsOf reads a table of rows: columns by name, cells as JSON.
func (sc *scenario) rowsOf(t *engine.Table) (table, error) {
	out := table{columns: slices.Clone(engine.Rows(t)[0])}
	for _, line := range cells(t) {
		r := row{}
		for column, text := range line {
			v, err := sc.value(text)
			if err != nil {
				return out, err
			}
			if n, ok := v.(float64); ok { // as it stands in the table, 7 and not 7.0
				_, v = n, sqlText(text)
			}
			r[column] = v
		}
		out.rows = append(out.rows, r)
	}
	return out, nil
}

func (sc *scenario) rowsAre(t *engine.Table) error {
	content, err := sc.rowsOf(t)
	if err != nil {
		return err
	}
	sc.nextSync().rows, err = sc.newDataset(content)
	return err
}

func (sc *scenario) rowsCome(t *engine.Table) error {
	more, err := sc.rowsOf(t)
	if err != nil {
		return err
	}
	now := sc.nextSync().rows.table
	now.rows = append(slices.Clone(now.rows), more.rows...)
	return sc.holds(sc.nextSync().rows, now)
}

func (sc *scenario) columnComes(name, text string) error {
	v, err := sc.value(text)
	if err != nil {
		return err
	}
	now := sc.nextSync().rows.table
	next := table{columns: append(slices.Clone(now.columns), name)}
	for _, r := range now.rows {
		r = maps.Clone(r)
		r[name] = v
		next.rows = append(next.rows, r)
	}
	return sc.holds(sc.nextSync().rows, next)
}

func (sc *scenario) columnGoes(name string) error {
	now := sc.nextSync().rows.table
	now.columns = slices.DeleteFunc(slices.Clone(now.columns), func(c string) bool { return c == name })
	return sc.holds(sc.nextSync().rows, now)
}

// allStored holds every record of the source against what the destination has.
func (sc *scenario) allStored(t *engine.Table) error {
	var ids []string
	for _, r := range sc.nextSync().rows.table.rows {
		ids = append(ids, fmt.Sprint(r["id"]))
	}
	return sc.areStored(ids, t)
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

// sentExactly compares the members of all records of the latest sync.
func (sc *scenario) sentExactly(list string) error {
	wanted, n := strings.Split(list, ", "), 0
	slices.Sort(wanted)
	for _, c := range sc.latest().dest.Batches() {
		for _, record := range c.Records() {
			var got []string
			for _, m := range record.Members {
				got = append(got, m.Name)
			}
			slices.Sort(got)
			if n++; !slices.Equal(wanted, got) {
				sc.brokenCall(fmt.Sprintf("a record with the fields %q", wanted), fmt.Sprintf("%s has %q", record.Raw, got), c)
			}
		}
	}
	if n == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no record was sent")
	}
	return sc.heldBy(n, "record")
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

// form is a normalization of names, and what a run with it has written.
type form struct {
	name, wanted string
	wrote        []string
	calls        []*endpoint.Call
}

// formsRun lets a sync with each form write to a destination of its own.
func (sc *scenario) formsRun(t *engine.Table) error {
	for _, line := range cells(t) {
		if err := sc.makesFields(); err != nil {
			return err
		}
		body, err := sc.draft()
		if err != nil {
			return err
		}
		body["field_behavior"], body["field_normalization"] = "sync_all_properties", line["form"]
		body["mappings"] = []any{identifies(mapping("id", "id"))}
		s, err := sc.newSync(sc.dest, sc.nextSync().rows, "upsert", body)
		if err != nil {
			return err
		}
		if _, err := sc.runs(s); err != nil {
			return err
		}
		sc.forms = append(sc.forms, formOf(s.dest, line))
	}
	return nil
}

func formOf(d *destination, line map[string]string) form {
	f := form{name: line["form"], wanted: line["name"], calls: d.Batches()}
	for _, c := range f.calls {
		for _, record := range c.Records() {
			for _, m := range record.Members {
				if m.Name != "id" && !slices.Contains(f.wrote, m.Name) {
					f.wrote = append(f.wrote, m.Name)
				}
			}
		}
	}
	return f
}

func (sc *scenario) formsWrote() error {
	for _, f := range sc.forms {
		if !slices.Equal(f.wrote, []string{f.wanted}) {
			sc.brokenCall(fmt.Sprintf("%s writes the field %q", f.name, f.wanted), fmt.Sprintf("it writes %q", f.wrote), f.calls...)
		}
	}
	if len(sc.forms) == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no sync has run")
	}
	return sc.heldBy(len(sc.forms), "form")
}
