package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// mappingsSteps are for MAP: what a source has, and what of it arrives at a
// destination (spec 2.7).
func mappingsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^these rows in the source:$`, func(p *play) any { return p.rowsAre }),
		step(`^the source gets these rows:$`, func(p *play) any { return p.rowsCome }),
		step(`^every row of the source gets a column "([^"]+)" with (.+)$`, func(p *play) any { return p.columnComes }),
		step(`^the source loses the column "([^"]+)"$`, func(p *play) any { return p.columnGoes }),
		step(`^a sync of all properties runs with each of these forms:$`, func(p *play) any { return p.formsRun }),

		step(`^a destination with these fields:$`, func(p *play) any { return p.fieldsAre }),

		step(`^every record in the destination has:$`, func(p *play) any { return p.allStored }),
		step(`^the record "([^"]+)" in the destination has:$`, func(p *play) any { return p.isStored }),
		step(`^every record that was sent has exactly the fields "([^"]+)"$`, func(p *play) any { return p.sentExactly }),
		step(`^every form wrote its name and no other$`, func(p *play) any { return p.formsWrote }),
	}
}

// rowsOf reads a table of rows: columns by name, cells as JSON.
func (p *play) rowsOf(t *conformance.Table) (table, error) {
	out := table{columns: slices.Clone(t.Rows()[0])}
	for _, line := range cells(t) {
		r := row{}
		for column, text := range line {
			v, err := p.value(text)
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

func (p *play) rowsAre(t *conformance.Table) error {
	content, err := p.rowsOf(t)
	if err != nil {
		return err
	}
	p.ground().rows, err = p.newDataset(content)
	return err
}

func (p *play) rowsCome(t *conformance.Table) error {
	more, err := p.rowsOf(t)
	if err != nil {
		return err
	}
	now := p.ground().rows.table
	now.rows = append(slices.Clone(now.rows), more.rows...)
	return p.holds(p.ground().rows, now)
}

func (p *play) columnComes(name, text string) error {
	v, err := p.value(text)
	if err != nil {
		return err
	}
	now := p.ground().rows.table
	next := table{columns: append(slices.Clone(now.columns), name)}
	for _, r := range now.rows {
		r = maps.Clone(r)
		r[name] = v
		next.rows = append(next.rows, r)
	}
	return p.holds(p.ground().rows, next)
}

func (p *play) columnGoes(name string) error {
	now := p.ground().rows.table
	now.columns = slices.DeleteFunc(slices.Clone(now.columns), func(c string) bool { return c == name })
	return p.holds(p.ground().rows, now)
}

// allStored holds every record of the source against what the destination has.
func (p *play) allStored(t *conformance.Table) error {
	var ids []string
	for _, r := range p.ground().rows.table.rows {
		ids = append(ids, fmt.Sprint(r["id"]))
	}
	return p.areStored(ids, t)
}

// isStored holds one record of the destination against a table.
func (p *play) isStored(id string, t *conformance.Table) error { return p.areStored([]string{id}, t) }

func (p *play) areStored(ids []string, t *conformance.Table) error {
	wanted, err := p.asked(t)
	if err != nil {
		return err
	}
	d := p.latest().dest
	stored, err := d.stored(thingObject, "id")
	if err != nil {
		return err
	}
	for _, id := range ids {
		record, there := stored[id]
		if !there {
			p.brokenCall(fmt.Sprintf("the record %s is in the destination", id), "it is not", d.batches()...)
			continue
		}
		for field, value := range wanted {
			if why := misses(value, nested(record, field), field); why != "" {
				p.brokenCall(fmt.Sprintf("the record %s has %s %s", id, field, brief(value)), why, d.batches()...)
			}
		}
	}
	p.Proof("%d records", len(ids))
	return p.Held()
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
func (p *play) sentExactly(list string) error {
	wanted, n := strings.Split(list, ", "), 0
	slices.Sort(wanted)
	for _, c := range p.latest().dest.batches() {
		for _, record := range c.records() {
			var got []string
			for _, m := range record.Members {
				got = append(got, m.Name)
			}
			slices.Sort(got)
			if n++; !slices.Equal(wanted, got) {
				p.brokenCall(fmt.Sprintf("a record with the fields %q", wanted), fmt.Sprintf("%s has %q", record.Raw, got), c)
			}
		}
	}
	if n == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no record was sent")
	}
	p.Proof("%d records", n)
	return p.Held()
}

// fieldsAre connects a destination whose object has the fields of a table: each
// is an identifier, required, or an ordinary one.
func (p *play) fieldsAre(t *conformance.Table) error {
	var fields []rpc.Field
	for _, line := range cells(t) {
		fields = append(fields, rpc.Field{
			APIName: line["name"], Label: line["name"], Type: line["type"], Createable: true, Updateable: true,
			Identifier: line["is"] == "identifier", Required: line["is"] != "ordinary",
		})
	}
	_, err := p.connect(connecting{sim: SimulatorConfig{Fields: map[string][]rpc.Field{thingObject: fields}}})
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
	calls        []*call
}

// formsRun lets a sync with each form write to a destination of its own.
func (p *play) formsRun(t *conformance.Table) error {
	for _, line := range cells(t) {
		if err := p.makesFields(); err != nil {
			return err
		}
		body, err := p.draft()
		if err != nil {
			return err
		}
		body["field_behavior"], body["field_normalization"] = "sync_all_properties", line["form"]
		body["mappings"] = []any{identifies(mapping("id", "id"))}
		s, err := p.newSync(p.dest, p.ground().rows, "upsert", body)
		if err != nil {
			return err
		}
		if _, err := p.runs(s); err != nil {
			return err
		}
		p.forms = append(p.forms, formOf(s.dest, line))
	}
	return nil
}

func formOf(d *destination, line map[string]string) form {
	f := form{name: line["form"], wanted: line["name"], calls: d.batches()}
	for _, c := range f.calls {
		for _, record := range c.records() {
			for _, m := range record.Members {
				if m.Name != "id" && !slices.Contains(f.wrote, m.Name) {
					f.wrote = append(f.wrote, m.Name)
				}
			}
		}
	}
	return f
}

func (p *play) formsWrote() error {
	for _, f := range p.forms {
		if !slices.Equal(f.wrote, []string{f.wanted}) {
			p.brokenCall(fmt.Sprintf("%s writes the field %q", f.name, f.wanted), fmt.Sprintf("it writes %q", f.wrote), f.calls...)
		}
	}
	if len(p.forms) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no sync has run")
	}
	p.Proof("%d forms", len(p.forms))
	return p.Held()
}
