package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/server/api"
)

// The effects that a key of advanced_configuration can have on requests to an
// emulated application. The catalogue names one for each key, so that none is taken
// and does nothing.
const (
	effectBatchSize = "batch_size" // the most records of one batch
	effectStamp     = "stamp"      // kept with every record that is written, in a field that clients do not see
)

// Settings are the options of advanced_configuration (spec 2.6) for sending to an
// object of an emulated application. The zero value changes nothing.
type Settings struct {
	BatchSize int64   // the most records of one batch; 0: as many as the store takes
	Stamps    []Stamp // kept with every record
}

// Stamp is a value that is kept with every record.
type Stamp struct {
	Field string
	Type  string
	Value json.RawMessage
}

// Settings reads the configuration of a sync to the object, with the defaults of the
// keys that it leaves out.
func (o *Object) Settings(given map[string]json.RawMessage) (s Settings) {
	for i := range o.AdvancedParameters {
		a := &o.AdvancedParameters[i]
		value := given[a.Name]
		if !connector.Has(value) && a.Default != nil {
			value = api.Raw(a.Default)
		}
		if connector.Has(value) {
			a.apply(&s, value)
		}
	}
	return s
}

// apply adds one value, whose type was checked with the sync.
func (a *Parameter) apply(s *Settings, value json.RawMessage) {
	switch a.Effect {
	case effectBatchSize:
		s.BatchSize, _ = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
	case effectStamp:
		if a.Type != "string" || connector.Text(value) != "" {
			s.Stamps = append(s.Stamps, Stamp{a.Field, a.Type, bytes.Clone(value)})
		}
	}
}

// CheckSettings finds what the types of the definitions cannot say: numbers out of
// their range, and mappings into the fields that the application keeps for itself.
func (o *Object) CheckSettings(c *api.SyncConfig) (problems []api.Problem) {
	for i := range o.AdvancedParameters {
		a := &o.AdvancedParameters[i]
		n, err := strconv.ParseInt(string(bytes.TrimSpace(c.AdvancedConfiguration[a.Name])), 10, 64)
		if err == nil && a.High > 0 && (n < a.Low || n > a.High) {
			problems = append(problems, api.Problem{
				Field: "advanced_configuration." + a.Name, Message: fmt.Sprintf("must be from %d to %d, not %d", a.Low, a.High, n),
			})
		}
	}
	own := o.OwnFields()
	for i := range c.Mappings {
		if _, kept := own[c.Mappings[i].To]; kept {
			problems = append(problems, api.Problem{
				Field: fmt.Sprintf("mappings[%d].to", i), Message: fmt.Sprintf("the application keeps the field %q for itself: map another one", c.Mappings[i].To),
			})
		}
	}
	return problems
}

// OwnFields are the fields in which the application keeps what settings say, with
// their types. Clients do not see them.
func (o *Object) OwnFields() map[string]string {
	own := map[string]string{}
	for i := range o.AdvancedParameters {
		if a := &o.AdvancedParameters[i]; a.Effect == effectStamp {
			own[a.Field] = a.Type
		}
	}
	return own
}

// ownWireFields are the same for the store.
func (o *Object) ownWireFields() (fields []rpc.Field) {
	own := o.OwnFields()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		fields = append(fields, rpc.Field{APIName: name, Label: name, Createable: true, Updateable: true, Type: own[name]})
	}
	return fields
}
