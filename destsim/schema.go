package destsim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// schemaChange is one change of the answers of planning calls, as a
// user would make it in the destination system.
type schemaChange struct {
	Action     string        `json:"action"`
	Object     string        `json:"object"`
	Field      string        `json:"field"`
	To         string        `json:"to"`         // rename_field
	Definition *FieldConfig  `json:"definition"` // add_field, change_field
	New        *ObjectConfig `json:"new"`        // add_object
	Operations []string      `json:"operations"` // set_operations
	Speed      *rpc.Speed    `json:"speed"`      // set_speed
	RateLimit  *int64        `json:"rate_limit"` // set_rate_limit; 0 leaves the header out
}

// changeSchema answers POST /_control/schema.
func (s *Sim) changeSchema(q schemaChange) (any, error) {
	if !slices.Contains(schemaActions, q.Action) {
		return nil, fmt.Errorf("action: %w", unknownWord("action", q.Action, schemaActions))
	}
	if err := q.apply(s); err != nil {
		return nil, err
	}
	return okReply{OK: true}, nil
}

// apply makes the change.
func (q schemaChange) apply(s *Sim) error {
	switch q.Action {
	case "set_speed":
		if q.Speed == nil || min(q.Speed.MaximumBatchSize, q.Speed.MaximumParallelBatches, q.Speed.MaximumRecordsPerSecond) < 1 {
			return errors.New("speed: three integers of 1 or more are needed")
		}
		s.speed.Store(q.Speed)
	case "set_rate_limit":
		if q.RateLimit == nil || *q.RateLimit < 0 {
			return errors.New("rate_limit: an integer of 0 or more is needed")
		}
		s.rateLimit.Store(*q.RateLimit)
	case "add_object", "remove_object":
		return s.editCatalogue(func(c *catalogue) (*catalogue, error) { return q.editObjects(c) })
	default:
		return s.editCatalogue(func(c *catalogue) (*catalogue, error) { return c.edit(q.Object, q.editObject) })
	}
	s.limits.Store(newLimits(s))
	return nil
}

// editObjects adds or removes an object; its records stay in the store, as the
// table of a system stays when an integration is switched off.
func (q schemaChange) editObjects(c *catalogue) (*catalogue, error) {
	if q.Action == "remove_object" {
		if c.byName[q.Object] == nil {
			return nil, fmt.Errorf("unknown object %q%s", q.Object, didYouMean(q.Object, c.names()))
		}
		return catalogueOf(slices.DeleteFunc(slices.Clone(c.objects), func(o *object) bool { return o.APIName == q.Object })), nil
	}
	if q.New == nil {
		return nil, errors.New("new: the object is missing")
	}
	config := *q.New
	if err := errors.Join(checkObjects([]ObjectConfig{config})...); err != nil {
		return nil, err
	}
	if c.byName[config.Name] != nil {
		return nil, fmt.Errorf("object %q exists", config.Name)
	}
	return catalogueOf(append(slices.Clone(c.objects), newCatalogue([]ObjectConfig{config}).objects...)), nil
}

var schemaActions = []string{
	"add_field", "remove_field", "rename_field", "change_field", "set_operations",
	"add_object", "remove_object", "set_speed", "set_rate_limit",
}

// editObject changes one object of the catalogue.
func (q schemaChange) editObject(o *object) error {
	switch q.Action {
	case "add_field":
		if q.Definition == nil {
			return errors.New("definition: the field is missing")
		}
		return o.addField(*q.Definition)
	case "remove_field":
		return o.removeField(q.Field)
	case "rename_field": // stored values keep the old name and are out of sight
		return o.changeField(q.Field, func(f *field) error {
			if q.To == "" || o.byName[q.To] != nil {
				return fmt.Errorf("to: %q is empty or taken", q.To)
			}
			f.APIName, f.quoted = q.To, store.Quote(q.To)
			return nil
		})
	case "change_field":
		return o.changeField(q.Field, func(f *field) error {
			if q.Definition == nil {
				return errors.New("definition: the field is missing")
			}
			config := *q.Definition
			config.Name = cmp.Or(config.Name, q.Field)
			if key, err := config.check(); err != nil {
				return fmt.Errorf("definition.%s: %w", key, err)
			}
			*f = *newField(config)
			return nil
		})
	case "set_operations":
		for _, op := range q.Operations {
			if err := checkOperation(op); err != nil {
				return fmt.Errorf("operations: %w", err)
			}
		}
		o.operations = slices.Clone(q.Operations)
		return nil
	}
	return fmt.Errorf("unknown action %q%s", q.Action, didYouMean(q.Action, schemaActions))
}

func (o *object) addField(config FieldConfig) error {
	if key, err := config.check(); err != nil {
		return fmt.Errorf("definition.%s: %w", key, err)
	}
	if o.byName[config.Name] != nil {
		return fmt.Errorf("field %q exists", config.Name)
	}
	o.fields = append(o.fields, newField(config))
	return nil
}

func (o *object) removeField(name string) error {
	if o.byName[name] == nil {
		return o.unknownField(name)
	}
	o.fields = slices.DeleteFunc(o.fields, func(f *field) bool { return f.APIName == name })
	return nil
}

// changeField replaces a field by a changed copy: snapshots are immutable.
func (o *object) changeField(name string, fn func(*field) error) error {
	at := slices.IndexFunc(o.fields, func(f *field) bool { return f.APIName == name })
	if at < 0 {
		return o.unknownField(name)
	}
	changed := *o.fields[at]
	if err := fn(&changed); err != nil {
		return err
	}
	o.fields[at] = &changed
	return nil
}

func (o *object) unknownField(name string) error {
	return fmt.Errorf("unknown field %q of object %q%s", name, o.APIName, didYouMean(name, o.fieldNames()))
}

func (o *object) fieldNames() []string {
	names := make([]string, len(o.fields))
	for i, f := range o.fields {
		names[i] = f.APIName
	}
	return names
}
