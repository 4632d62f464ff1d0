package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
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

		step(`^every record in the destination has:$`, func(p *play) any { return p.allStored }),
		step(`^every form wrote its name and no other$`, func(p *play) any { return p.formsWrote }),
	}
}

// rowsOf reads a table of rows: columns by name, cells as JSON.
func (p *play) rowsOf(t *conformance.Table) (table, error) {
	out := table{}
	for _, cell := range t.Rows[0].Cells {
		out.columns = append(out.columns, cell.Value)
	}
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
	stored, err := p.latest().dest.stored(thingObject, "id")
	if err != nil {
		return err
	}
	wanted, err := p.asked(t)
	if err != nil {
		return err
	}
	for _, r := range p.ground().rows.table.rows {
		record, there := stored[fmt.Sprint(r["id"])]
		if !there {
			p.brokenCall(fmt.Sprintf("the record %v is in the destination", r["id"]), "it is not", p.latest().dest.batches()...)
			continue
		}
		for field, value := range wanted {
			if why := misses(value, anyOf(record[field]), field); why != "" {
				p.brokenCall(fmt.Sprintf("the record %v has %s %s", r["id"], field, brief(value)), why, p.latest().dest.batches()...)
			}
		}
	}
	p.Proof("%d records stored", len(stored))
	return p.Held()
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
