package write

import (
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// CheckFixtures refuses values for objects and fields that the endpoint does not list:
// no record would ever have them. The message begins with the path of the entry. What
// the endpoint could not say is not held against the author.
func (s *Session) CheckFixtures() error {
	if len(s.Catalog.Objects) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Opts.Fixtures)) {
		o, path := s.Catalog.Object(name), "fixtures."+name
		if o == nil {
			return line.Usage("%s: no object %q%s", path, name, knownNames("list_objects", s.Catalog.Names()))
		}
		if len(o.Fields) == 0 {
			continue
		}
		fixture := s.Opts.Fixtures[name]
		for _, field := range fixture.Hidden {
			if err := knownField(path, o, field); err != nil {
				return err
			}
		}
		for _, part := range []struct {
			path   string
			values map[string]string
		}{{path, fixture.Fields}, {path + ".bad", fixture.Bad}} {
			for _, field := range slices.Sorted(maps.Keys(part.values)) {
				if err := knownField(part.path, o, field); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Hides reports whether the fixtures or the hook say that a read-back cannot show a
// field as it was sent.
func (s *Session) Hides(object, field string) bool {
	_, said := s.hookHides.Load([2]string{object, field})
	return said || slices.Contains(s.Opts.Fixtures[object].Hidden, field)
}

// knownField refuses a field that an object does not have.
func knownField(path string, o *Object, field string) error {
	if slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.APIName == field }) {
		return nil
	}
	known := lists.Of(o.Fields, func(f rpc.Field) string { return f.APIName })
	return line.Usage("%s.%s: %s has no field %q%s", path, field, o.APIName, field, knownNames("list_fields", known))
}

// mostListed is how many names a message lists.
const mostListed = 30

// knownNames is the end of a message about an unknown word.
func knownNames(method string, known []string) string {
	if len(known) > mostListed {
		return ""
	}
	return "; " + method + " names " + quantity.List(known)
}
