package destsim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/suggest"
)

// catalogue holds the answers of the planning calls: an immutable
// snapshot that is replaced as a whole when the schema changes.
type catalogue struct {
	objects []*object
	byName  map[string]*object
}

// object is one destination object.
type object struct {
	rpc.Object
	operations []string
	fields     []*field
	byName     map[string]*field
	required   []*field
	table      *store.Table // its rows; uniques follow the fields
	before     *string      // its label before the alter_schema hook; nil: not altered
}

// field is one field of an object with what the wire does not show.
type field struct {
	rpc.Field
	quoted    []byte // its name as canonical JSON
	unique    bool   // no two rows share a value
	maxLength int    // in code points, 0 is unbounded
	custom    bool   // created on write
}

// onWrite reports whether unknown fields may be created.
func (o *object) onWrite() bool { return o.CanCreateFields == rpc.CanCreateOnWrite }

// accepts reports whether a batch may carry the operation (spec 4.2): a mirror
// sync sends upsert and delete batches, and never "mirror" itself.
func (o *object) accepts(operation string) bool {
	mirror := slices.Contains(o.operations, rpc.OperationMirror)
	switch operation {
	case rpc.OperationMirror:
		return false
	case rpc.OperationDelete:
		return mirror
	case rpc.OperationUpsert:
		return mirror || slices.Contains(o.operations, operation)
	}
	return slices.Contains(o.operations, operation)
}

// newCatalogue builds the catalogue of a configuration that was checked.
func newCatalogue(objects []ObjectConfig) *catalogue {
	var list []*object
	for _, oc := range objects {
		o := &object{
			Object:     rpc.Object{APIName: oc.Name, Label: cmp.Or(oc.Label, oc.Name)},
			operations: slices.Clone(oc.Operations),
		}
		if oc.CanCreateFields {
			o.CanCreateFields = rpc.CanCreateOnWrite
		}
		for _, fc := range oc.Fields {
			o.fields = append(o.fields, newField(fc))
		}
		o.link()
		list = append(list, o)
	}
	return catalogueOf(list)
}

// newField makes a field; an identifier is unique in the destination (spec 4.2, identifier
// rule) even if the configuration does not mark it.
func newField(fc FieldConfig) *field {
	return &field{
		Field: rpc.Field{
			APIName: fc.Name, Label: cmp.Or(fc.Label, fc.Name),
			Identifier: fc.Identifier, Required: fc.Required,
			Createable: fc.Createable == nil || *fc.Createable,
			Updateable: fc.Updateable == nil || *fc.Updateable,
			Type:       fc.Type, Array: fc.Array,
		},
		quoted: store.Quote(fc.Name), unique: fc.Unique || fc.Identifier, maxLength: fc.MaxLength,
	}
}

// link fills what follows from the fields.
func (o *object) link() {
	o.byName = make(map[string]*field, len(o.fields))
	o.table, o.required = &store.Table{Name: o.APIName}, nil
	for _, f := range o.fields {
		o.byName[f.APIName] = f
		if f.Required {
			o.required = append(o.required, f)
		}
		if f.unique {
			o.table.Uniques = append(o.table.Uniques, f.quoted)
		}
	}
}

// edit gives a copy of the catalogue with a copy of one object changed by fn.
func (c *catalogue) edit(name string, fn func(*object) error) (*catalogue, error) {
	at := slices.IndexFunc(c.objects, func(o *object) bool { return o.APIName == name })
	if at < 0 {
		return nil, fmt.Errorf("unknown object %q%s", name, didYouMean(name, c.names()))
	}
	changed := *c.objects[at]
	changed.fields = slices.Clone(changed.fields)
	changed.operations = slices.Clone(changed.operations)
	if err := fn(&changed); err != nil {
		return nil, err
	}
	changed.link()
	objects := slices.Clone(c.objects)
	objects[at] = &changed
	return catalogueOf(objects), nil
}

// catalogueOf indexes a list of objects.
func catalogueOf(objects []*object) *catalogue {
	c := &catalogue{objects: objects, byName: make(map[string]*object, len(objects))}
	for _, o := range objects {
		c.byName[o.APIName] = o
	}
	return c
}

func (c *catalogue) names() []string {
	names := make([]string, len(c.objects))
	for i, o := range c.objects {
		names[i] = o.APIName
	}
	return names
}

// editCatalogue replaces the catalogue under its lock. Readers never wait.
func (s *Sim) editCatalogue(fn func(*catalogue) (*catalogue, error)) error {
	s.catalogueLock.Lock()
	defer s.catalogueLock.Unlock()
	next, err := fn(s.catalogue.Load())
	if err != nil {
		return err
	}
	s.catalogue.Store(next)
	return nil
}

// didYouMean gives ` (did you mean "x"?)` for the nearest of the known words, or
// the whole list when it is short and nothing is near.
func didYouMean(word string, known []string) string {
	if near := suggest.Word(clip(word), known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	} else if len(known) <= 12 {
		return fmt.Sprintf(" (one of %s)", strings.Join(known, ", "))
	}
	return ""
}

// cell is one value of a record on its way into the store.
type cell struct {
	column *column
	// raw is the canonical JSON text of the value. It may be a slice of the
	// request, so it is replaced, never edited.
	raw []byte
}

// encodeCells makes the data of a new row.
func encodeCells(cells []cell) []byte { return appendCells([]byte{'{'}, cells) }

// appendCells adds values to data that is open at its end, and ends it.
func appendCells(data []byte, cells []cell) []byte {
	size := 0
	for i := range cells {
		size += len(cells[i].column.quoted) + len(cells[i].raw) + 2
	}
	data = slices.Grow(data, size+1)
	for i := range cells {
		data = store.AppendMember(data, cells[i].column.quoted, cells[i].raw)
	}
	return append(data, '}')
}

// mergeCells makes the data of a changed row: members without a cell stay.
func mergeCells(old []byte, cells []cell) []byte {
	kept := mapMembers(old, func(name, value []byte) []byte {
		if slices.ContainsFunc(cells, func(c cell) bool { return bytes.Equal(c.column.quoted, name) }) {
			return nil
		}
		return value
	})
	return appendCells(kept[:len(kept)-1], cells)
}

// mapMembers gives a row's data with other values; nil drops a field.
func mapMembers(data []byte, value func(name, have []byte) []byte) []byte {
	changed := append(make([]byte, 0, len(data)+16), '{')
	store.EachMember(data, func(name, have []byte) bool {
		if v := value(name, have); v != nil {
			changed = store.AppendMember(changed, name, v)
		}
		return true
	})
	return append(changed, '}')
}

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

// agrees reports whether the field exists, and the problem if it is another.
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
