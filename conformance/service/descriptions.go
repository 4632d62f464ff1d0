package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/destsim/rpc"
)

// readObjects reads a table of objects: name, label, operations, fields, and whether
// fields are created on write. A field is its name and type and what is true of
// it, as in "id:string:identifier:required"; what is not said is createable and
// updateable. Without any they are those of the ordinary object.
func readObjects(t *engine.Table) (SimulatorConfig, error) {
	c := SimulatorConfig{Fields: map[string][]rpc.Field{}, Operations: map[string][]string{}}
	for _, row := range engine.Rows(t)[1:] {
		o := rpc.Object{APIName: row[0], Label: row[1], CanCreateFields: row[4]}
		c.Objects = append(c.Objects, o)
		c.Operations[o.APIName] = strings.Fields(row[2])
		for word := range strings.FieldsSeq(row[3]) {
			f, err := readField(word)
			if err != nil {
				return c, err
			}
			c.Fields[o.APIName] = append(c.Fields[o.APIName], f)
		}
	}
	return c, nil
}

func readField(word string) (rpc.Field, error) {
	name, rest, _ := strings.Cut(word, ":")
	kind, rest, _ := strings.Cut(rest, ":")
	f := rpc.Field{APIName: name, Label: "The " + name, Type: kind, Createable: true, Updateable: true}
	for flag := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ':' }) {
		switch flag {
		case "identifier":
			f.Identifier = true
		case "required":
			f.Required = true
		case "array":
			f.Array = true
		case "readonly":
			f.Createable, f.Updateable = false, false
		default:
			return f, fmt.Errorf("read field %q: unknown word %q", word, flag)
		}
	}
	if !slices.Contains(rpc.FieldTypes(), kind) {
		return f, fmt.Errorf("read field %q: unknown type %q", word, kind)
	}
	return f, nil
}
