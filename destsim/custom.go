package destsim

import (
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// customTable keeps the fields that were created on write, so that a store
// that survives a restart brings them back. No object can have this name in a
// request that is a C string, and no index is needed.
var customTable = &store.Table{Name: "\x00fields", Wide: true}

type customField struct {
	Object string    `json:"object"`
	Field  rpc.Field `json:"field"`
}

// createField adds a field on write (can_create_fields). Two batches
// may try at once; the first wins and the second must agree with it.
func (s *Sim) createField(u store.Unit, name string, f *field) (problem string, err error) {
	if problem, exists := s.agrees(name, f); exists {
		return problem, nil
	}
	created := false
	err = s.editCatalogue(func(c *catalogue) (*catalogue, error) {
		var exists bool
		if problem, exists = s.agrees(name, f); exists {
			return c, nil
		}
		created = true
		return c.edit(name, func(o *object) error {
			o.fields = append(o.fields, f)
			return nil
		})
	})
	if err != nil || !created {
		return problem, err
	}
	data := encode(customField{name, f.Field})
	return "", u.With(customTable, nil, nil, func(r store.Rows) error { return r.Put(nil, data) })
}

// agrees reports whether the field exists, and what is wrong if it is another.
func (s *Sim) agrees(name string, f *field) (problem string, exists bool) {
	o := s.catalogue.Load().byName[name]
	if o == nil {
		return fmt.Sprintf("object %q does not exist any more", name), true
	}
	have := o.byName[f.APIName]
	if have == nil {
		return "", false
	}
	if have.Type != f.Type || have.Array != f.Array {
		return fmt.Sprintf("field %s exists with the type %s", f.quoted, have.Type), true
	}
	return "", true
}

// restoreFields adds the custom fields of the store to a fresh catalogue, where
// there is room.
func (s *Sim) restoreFields(c *catalogue) (*catalogue, error) {
	kept, _, err := s.store.Scan(customTable.Name, 0, 1<<20)
	if err != nil {
		return nil, fmt.Errorf("restore custom fields: %w", err)
	}
	for _, r := range kept {
		var cf customField
		if err := json.Unmarshal(r.Data, &cf); err != nil {
			return nil, fmt.Errorf("restore custom fields: %w", err)
		}
		o := c.byName[cf.Object]
		if o == nil || o.byName[cf.Field.APIName] != nil {
			continue // the configuration has changed since
		}
		if c, err = c.edit(cf.Object, func(o *object) error {
			o.fields = append(o.fields, &field{Field: cf.Field, quoted: store.Quote(cf.Field.APIName), custom: true})
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return c, nil
}
