package configfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/internal/yamldoc"
)

// TestFixturesHavePlaces: the judge's messages about an entry point at its line.
func TestFixturesHavePlaces(t *testing.T) {
	file := testkit.WriteFile(t, "c.yaml", "fixtures:\n  contact:\n    nofield: 3\n    bad: {email: x}\n")
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

// TestFilesBesideTheConfiguration: a file that a configuration names is looked for beside it.
func TestFilesBesideTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("hooks: h.yaml\nwaivers: /w.yaml\njournal: j\n"), 0o600))
	got, cmd := map[string]*string{}, &cobra.Command{}
	for _, name := range []string{"hooks", "waivers", "journal"} {
		got[name] = cmd.Flags().String(name, "", "")
	}
	_, err := Apply(cmd, file)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "h.yaml"), "/w.yaml", "j"}, []string{*got["hooks"], *got["waivers"], *got["journal"]})
}

func TestLocated(t *testing.T) {
	file := testkit.WriteFile(t, "c.yaml", "objects:\n  - name: a\n    fields: [{name: id, type: strng}]\nseed: 7\n")
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

// TestYAMLMistakesAreUsageErrors: yamldoc owns their texts.
func TestYAMLMistakesAreUsageErrors(t *testing.T) {
	var dst struct {
		Count int `yaml:"count"`
	}
	file := testkit.WriteFile(t, "f.yaml", "cuont: 3\n")
	_, parsing := parseYAML("f.yaml", []byte("a: ["))
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a mistake in bytes":      {Decode("f.yaml", []byte("count: many\n"), &dst), "f.yaml:1:8: expected a whole number, found a string\n     1 | count: many\n       |        ^"},
		"a mistake in a file":     {Read(file, &dst), file + ":1:1: unknown key \"cuont\", did you mean \"count\"?\n     1 | cuont: 3\n       | ^"},
		"a file that is not here": {Read(file+"x", &dst), "read file: open " + file + "x: no such file or directory"},
		"not yaml":                {parsing, "f.yaml:1:4: the list has no ] at its end, or a comma is missing\n     1 | a: [\n       |    ^"},
	} {
		t.Run(name, func(t *testing.T) {
			require.EqualError(t, tc.err, tc.want)
			var ended *exit.Error
			require.ErrorAs(t, tc.err, &ended)
			require.Equal(t, exit.BadUsage, ended.Status)
		})
	}
	require.NoError(t, Decode("f.yaml", []byte("count: 3\n"), &dst))
	require.Equal(t, 3, dst.Count)
}

// TestHooksPointAtTheMistake: also what the shape of the file cannot say.
func TestHooksPointAtTheMistake(t *testing.T) {
	for src, want := range map[string]string{
		"timeout: -5s\n": "f.yaml:1:10: timeout must be 0 or more",
		"cleanup:\n  url: http://a/\nrestart:\n  command: [x]\n  url: http://a/\n": "f.yaml:3:1: the hook restart has both a url and a command; give one",
		"cleanup:\n  url: http://a/\nrestart:\n  url: \"ftp://x\"\n":               "f.yaml:4:8: hook restart: the URL must begin with http:// or https://",
	} {
		_, err := DecodeHooks("f.yaml", []byte(src))
		var placed *yamldoc.Error
		require.ErrorAs(t, err, &placed, src)
		require.Equal(t, want, placed.Brief())
	}
}
