package destination

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// Each entry of the catalogue is one that a simulator accepts, and an unknown
// file is noticed here.
func TestCatalogue(t *testing.T) {
	var names []string
	for _, e := range catalogue.BuiltIn() {
		names = append(names, e.ServiceName)
		_, err := (&simulators{}).emulate("x", e.EmulatedObjects())
		require.NoError(t, err, e.ServiceName)
		for _, o := range e.Objects {
			for _, f := range o.Fields {
				require.NotContains(t, f.FullName, ".", "nested names are the business of mappings")
			}
		}
	}
	require.Equal(t, emulatedNames, names)
}

// emulatedNames are the types of the catalogue.
var emulatedNames = []string{
	"braze", "facebook", "google_ads", "google_sheets", "hubspot", "intercom", "iterable", "klaviyo", "mailchimp", "marketo",
	"s3", "salesforce", "sftp", "slack", "zendesk",
}

func TestTypes(t *testing.T) {
	names := func(g *Gate) (all, creatable []string) {
		for _, c := range g.Types() {
			all = append(all, c.ServiceName)
			if c.CreatableViaAPI {
				creatable = append(creatable, c.ServiceName)
			}
		}
		return all, creatable
	}
	want := append([]string{"custom_api", "local_files"}, emulatedNames...)
	all, creatable := names(newGate(t, Options{}))
	require.Equal(t, want, all)
	require.Equal(t, want[:2], creatable)
	g := newGate(t, Options{Emulate: (&simulators{}).emulate})
	all, creatable = names(g)
	require.Equal(t, want, all)
	require.Equal(t, want, creatable)
	for _, c := range g.Types() {
		require.Equal(t, c.ServiceName == api.TypeLocalFiles, g.FileSystem(c.ServiceName))
		require.Equal(t, c.ServiceName != "custom_api" && c.ServiceName != "local_files", c.Emulated)
	}
}
