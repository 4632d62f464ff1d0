package configfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestFixturesHavePlaces: what the judge says of an entry points at its line.
func TestFixturesHavePlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("fixtures:\n  contact:\n    nofield: 3\n    bad: {email: x}\n"), 0o600))
	settings, err := Apply(&cobra.Command{}, file)
	require.NoError(t, err)
	require.Equal(t, "3", settings.Fixtures["contact"].Fields["nofield"])
	for told, want := range map[string]string{
		"fixtures.contact: no object":          file + ":2:3: no object\n     2 |   contact:\n       |   ^",
		"fixtures.contact.nofield: no field":   file + ":3:5: no field\n     3 |     nofield: 3\n       |     ^",
		"fixtures.contact.bad.email: no field": file + ":4:11: no field\n     4 |     bad: {email: x}\n       |           ^",
		"something else: is wrong":             "something else: is wrong",
	} {
		require.EqualError(t, settings.Placed(errors.New(told)), want)
	}
	require.NoError(t, settings.Placed(nil))
}
