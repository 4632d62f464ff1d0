package destination

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// TestFixturesOfNothing: a slip in a fixture is told before anything is written.
func TestFixturesOfNothing(t *testing.T) {
	for want, fixtures := range map[string]map[string]conformance.Fixture{
		`fixtures.contact.nofield: contact has no field "nofield"`:          {"contact": {Fields: map[string]string{"nofield": "3"}}},
		`fixtures.contact.bad.nofield: contact has no field "nofield"`:      {"contact": {Bad: map[string]string{"nofield": "3"}}},
		`fixtures.contcat: no object "contcat"; list_objects names contact`: {"contcat": {Fields: map[string]string{"name": "3"}}},
	} {
		e := newSmall()
		s := prepared(t, e, writeCheck, conformance.Options{Write: true, Objects: []string{"contact"}, SkipConvention: conformance.SkipSuccess, Fixtures: fixtures})
		r, err := s.run(t.Context())
		var usage *conformance.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
		require.Nil(t, r)
		require.Empty(t, e.keys("contact"))
	}
}
