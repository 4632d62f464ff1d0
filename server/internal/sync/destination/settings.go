package destination

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// Settings reads the configuration of a sync to an object, with the defaults of the
// keys that it leaves out.
func (g *Gate) Settings(typ, object string, given map[string]json.RawMessage) catalogue.Settings {
	o := g.emulatedObject(typ, object)
	if o == nil {
		return catalogue.Settings{}
	}
	return o.Settings(given)
}

// emulatedObject finds an object of the catalogue; nil for those of other types.
func (g *Gate) emulatedObject(typ, object string) *catalogue.Object {
	if k := g.kind(typ); k != nil && k.emulated != nil {
		return k.emulated.Object(object)
	}
	return nil
}

// CheckSettings finds what the types of the definitions cannot say: numbers out of
// their range, and mappings into the fields that the application keeps for itself.
func (g *Gate) CheckSettings(typ string, c *api.SyncConfig) []api.Problem {
	o := g.emulatedObject(typ, c.DestinationAttributes.Object)
	if o == nil {
		return nil
	}
	return o.CheckSettings(c)
}

// Under is the plan of batches that obey the settings.
func (p *Plan) Under(s catalogue.Settings) *Plan {
	if len(s.Stamps) == 0 {
		return p
	}
	plan := p.SyncPlan
	plan.Schema = maps.Clone(plan.Schema)
	for _, one := range s.Stamps {
		plan.Schema[one.Field] = rpc.SchemaField{Field: rpc.Field{APIName: one.Field, Label: one.Field, Createable: true, Updateable: true, Type: one.Type}}
	}
	under := NewPlan(plan, p.order)
	under.handling, under.settings = p.handling, s
	return under
}

// stamped are the records with what the settings keep with each of them.
func (p *Plan) stamped(records [][]byte) [][]byte {
	var more []byte
	for _, one := range p.settings.Stamps {
		more = append(append(rawjson.AppendString(append(more, ','), one.Field), ':'), one.Value...)
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
