package configfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("objects:\n  - name: a\n    fields: [{name: id, type: strng}]\nseed: 7\n"), 0o600))
	for text, want := range map[string]string{
		"check configuration: objects[0].fields[0].type: unknown type":     file + ":3:31: objects[0].fields[0].type: unknown type",
		"check configuration: objects[0].operations: must name one":        file + ":2:5: objects[0].operations: must name one",
		"check configuration: seed: one\nobjects[0].name: two\nstore: odd": "check configuration:\n" + file + ":4:7: seed: one\n" + file + ":2:11: objects[0].name: two\nstore: odd",
	} {
		require.EqualError(t, Located(file, errors.New(text)), want)
	}
	for _, text := range []string{"check configuration: store: odd", "open store x: odd"} {
		require.EqualError(t, Located(file, errors.New(text)), text)
	}
}
