package destination

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// TestRefuseLeftovers: with the option set, nothing is written that cannot be removed, and the
// refusal reports how much it would have been.
func TestRefuseLeftovers(t *testing.T) {
	upserts := func(e *small) { e.operations = []string{"upsert"} }
	for name, c := range map[string]struct {
		endpoint func(*small)
		options  func(*conformance.Options)
		checks   string
		want     string
	}{
		"no deletes":           {upserts, nil, writeCheck, "nothing was written: up to 43 records will stay in contact, which accepts no deletes"},
		"few records":          {upserts, func(o *conformance.Options) { o.MaxRecords = 7 }, writeCheck, "up to 7 records will stay in contact"},
		"a hook":               {upserts, func(o *conformance.Options) { o.Hooks = cleanupHook() }, writeCheck, ""},
		"allowed":              {upserts, func(o *conformance.Options) { o.RefuseLeftovers = false }, writeCheck, ""},
		"deletes":              {nil, nil, writeCheck, ""},
		"no check that writes": {upserts, nil, healthCheck, ""},
		"no writes":            {upserts, func(o *conformance.Options) { o.Write = false }, writeCheck, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := newSmall()
			if c.endpoint != nil {
				c.endpoint(e)
			}
			opts := conformance.Options{Write: true, Objects: []string{"contact"}, SkipConvention: conformance.SkipSuccess, RefuseLeftovers: true}
			if c.options != nil {
				c.options(&opts)
			}
			s := prepared(t, e, c.checks, opts)
			err := s.OpenJournal()
			require.NoError(t, err)
			s.Catalog, err = s.Discover(context.Background())
			require.NoError(t, err)
			err = s.CheckLasting(s.Cat.Checks)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			var usage *conformance.UsageError
			require.ErrorAs(t, err, &usage)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "--allow-leftovers")
			r, err := s.run(context.Background())
			require.ErrorAs(t, err, &usage)
			require.Nil(t, r)
			require.Empty(t, e.keys("contact"), "nothing is written")
		})
	}
}
