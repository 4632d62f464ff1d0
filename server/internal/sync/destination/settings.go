package destination

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// The effects that a key of advanced_configuration can have on what is sent to an
// emulated application. The catalogue names one for each key, so that none is taken
// and does nothing.
const (
	effectBatchSize = "batch_size" // the most records of one batch
	effectBulk      = "bulk"       // false: batches of singleBatch records at most
	effectNullText  = "null_text"  // stands for null in fields of text
	effectRows      = "rows"       // top: new rows come before the others, by their position
	effectStamp     = "stamp"      // kept with every record that is written, in a field that clients do not see
)

// effectTypes is the type that a key of each effect has.
var effectTypes = map[string]string{
	effectBatchSize: "integer", effectBulk: "boolean", effectNullText: "string", effectRows: "string", effectStamp: "",
}

// singleBatch is how many records an application takes at once outside of its bulk
// interface.
const singleBatch = 200

// positionField keeps the order of the rows of an object that has one: rows without a
// position come in the order of their creation, those with a lower one before them.
const positionField = "row_position"

// rowsTop is the value of effectRows that puts new rows before the others.
const rowsTop = "top"

// Settings are what advanced_configuration (spec 2.6) says about sending to an object
// of an emulated application. The zero value changes nothing.
type Settings struct {
	BatchSize int64   // the most records of one batch; 0: as many as the store takes
	NullText  *string // stands for null in fields of text
	top       bool
	stamps    []stamp
}

// stamp is a value that is kept with every record.
type stamp struct {
	field string
	typ   string
	value json.RawMessage
}

// Settings reads the configuration of a sync to an object, with the defaults of the
// keys that it leaves out.
func (g *Gate) Settings(typ, object string, given map[string]json.RawMessage) (s Settings) {
	o := g.emulatedObject(typ, object)
	if o == nil {
		return s
	}
	for i := range o.AdvancedParameters {
		a := &o.AdvancedParameters[i]
		value := given[a.Name]
		if isNull(value) && a.Default != nil {
			value = api.Raw(a.Default)
		}
		if !isNull(value) {
			a.apply(&s, value)
		}
	}
	return s
}

// emulatedObject finds an object of the catalogue; nil for those of other types.
func (g *Gate) emulatedObject(typ, object string) *objectEntry {
	if k := g.kind(typ); k != nil && k.emulated != nil {
		return k.emulated.object(object)
	}
	return nil
}

// apply adds one value, whose type was checked with the sync.
func (a *advancedEntry) apply(s *Settings, value json.RawMessage) {
	text, _ := text(value)
	switch a.Effect {
	case effectBatchSize:
		n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
		if err == nil && n > 0 && (s.BatchSize == 0 || n < s.BatchSize) {
			s.BatchSize = n
		}
	case effectBulk:
		if string(bytes.TrimSpace(value)) == "false" && (s.BatchSize == 0 || s.BatchSize > singleBatch) {
			s.BatchSize = singleBatch
		}
	case effectNullText:
		if text != "" {
			s.NullText = &text
		}
	case effectRows:
		s.top = text == rowsTop
	case effectStamp:
		if a.Type != "string" || text != "" {
			s.stamps = append(s.stamps, stamp{a.Field, a.Type, bytes.Clone(value)})
		}
	}
}

// CheckSettings finds what the types of the definitions cannot say: numbers out of
// their range, and mappings into the fields that the application keeps for itself.
func (g *Gate) CheckSettings(typ string, c *api.SyncConfig) (problems []api.Problem) {
	o := g.emulatedObject(typ, c.DestinationAttributes.Object)
	if o == nil {
		return nil
	}
	for i := range o.AdvancedParameters {
		a := &o.AdvancedParameters[i]
		n, err := strconv.ParseInt(string(bytes.TrimSpace(c.AdvancedConfiguration[a.Name])), 10, 64)
		if err == nil && a.High > 0 && (n < a.Low || n > a.High) {
			problems = append(problems, api.Problem{
				Field: "advanced_configuration." + a.Name, Message: fmt.Sprintf("must be from %d to %d, not %d", a.Low, a.High, n),
			})
		}
	}
	own := o.ownFields()
	for i := range c.Mappings {
		if _, kept := own[c.Mappings[i].To]; kept {
			problems = append(problems, api.Problem{
				Field: fmt.Sprintf("mappings[%d].to", i), Message: fmt.Sprintf("the application keeps the field %q for itself: map another one", c.Mappings[i].To),
			})
		}
	}
	return problems
}

// ownFields are the fields in which the application keeps what settings say, with
// their types. Clients do not see them.
func (o *objectEntry) ownFields() map[string]string {
	own := map[string]string{}
	for i := range o.AdvancedParameters {
		switch a := &o.AdvancedParameters[i]; a.Effect {
		case effectStamp:
			own[a.Field] = a.Type
		case effectRows:
			own[positionField] = rpc.TypeInteger
		}
	}
	return own
}

// ownWireFields are the same for the store.
func (o *objectEntry) ownWireFields() (fields []rpc.Field) {
	own := o.ownFields()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		fields = append(fields, rpc.Field{APIName: name, Label: name, Createable: true, Updateable: true, Type: own[name]})
	}
	return fields
}

// Under is the plan of batches that obey the settings.
func (p *Plan) Under(s Settings) *Plan {
	if len(s.stamps) == 0 && !s.top {
		return p
	}
	plan := p.SyncPlan
	plan.Schema = maps.Clone(plan.Schema)
	add := func(name, typ string) {
		plan.Schema[name] = rpc.SchemaField{Field: rpc.Field{APIName: name, Label: name, Createable: true, Updateable: true, Type: typ}}
	}
	for _, one := range s.stamps {
		add(one.field, one.typ)
	}
	if s.top {
		add(positionField, rpc.TypeInteger)
	}
	under := NewPlan(plan, p.order)
	under.handling, under.settings = p.handling, s
	return under
}

// stamped are the records with what the settings keep with each of them.
func (p *Plan) stamped(records [][]byte) [][]byte {
	var more []byte
	for _, one := range p.settings.stamps {
		more = append(append(rpc.AppendString(append(more, ','), one.field), ':'), one.value...)
	}
	if more == nil {
		return records
	}
	more = append(more, '}')
	out := make([][]byte, len(records))
	for i, record := range records {
		// Every record has its identifier, so that a comma may follow.
		out[i] = append(bytes.Clone(bytes.TrimSuffix(record, []byte("}"))), more...)
	}
	return out
}
