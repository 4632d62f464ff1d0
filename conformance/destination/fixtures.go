package destination

import (
	"maps"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// checkFixtures refuses values for objects and fields that the endpoint does not list:
// no record would ever have them. The message begins with the path of the entry. What
// the endpoint could not say is not held against the author.
func (s *session) checkFixtures() error {
	if len(s.catalog.objects) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.opts.Fixtures)) {
		o, path := s.catalog.object(name), "fixtures."+name
		if o == nil {
			return usage("%s: no object %q%s", path, name, knownNames("list_objects", s.catalog.names()))
		}
		if len(o.Fields) == 0 {
			continue
		}
		fixture := s.opts.Fixtures[name]
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

// hides reports whether the fixtures or the hook say that a read-back cannot show a
// field as it was sent.
func (s *session) hides(object, field string) bool {
	_, said := s.hookHides.Load([2]string{object, field})
	return said || slices.Contains(s.opts.Fixtures[object].Hidden, field)
}

// knownField refuses a field that an object does not have.
func knownField(path string, o *object, field string) error {
	if slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.APIName == field }) {
		return nil
	}
	known := lists.Of(o.Fields, func(f rpc.Field) string { return f.APIName })
	return usage("%s.%s: %s has no field %q%s", path, field, o.APIName, field, knownNames("list_fields", known))
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
