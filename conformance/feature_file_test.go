package conformance

import (
	"bytes"
	"io/fs"
	"path"
	"testing"

	gherkin "github.com/cucumber/gherkin/go/v26"
	messages "github.com/cucumber/messages/go/v21"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/features"
)

// TestParseFeature: the result is that of the library.
func TestParseFeature(t *testing.T) {
	same := func(name, text string) {
		want, wantErr := gherkin.ParseGherkinDocument(bytes.NewReader([]byte(text)), (&messages.Incrementing{}).NewId)
		got, err := parseFeature([]byte(text))
		require.Equal(t, wantErr, err, name)
		require.Equal(t, want, got, name)
	}
	require.NoError(t, fs.WalkDir(features.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".feature" {
			return err
		}
		text, err := fs.ReadFile(features.FS, name)
		same(name, string(text))
		return err
	}))
	for _, tags := range []string{
		"@a", "\t@a @b", "@a  @b", "@a\t@b", "@a@b", "@a@", "@a @", "@", "@ a", "@a b", "@a b @c", "@a @b # @c", "@a#b @c", "@a #", "#@a", "a @b",
		"@a ", "@ä @日本 @c", "@a\u00a0@b", "@a\u00a0b @c", "@\xff\xfe @b", "@a\n@b\n\n# why\n  @c", "@a @b c\n@d e",
	} {
		same(tags, tags+"\nFeature: f\n"+tags+"\nScenario Outline: s\nGiven <x>\n"+tags+"\nExamples:\n|x|\n|1|\n")
		same(tags, "# language: de\n"+tags+"\nFunktionalität: f\n"+tags+"\nSzenario: s\nAngenommen x\n")
	}
}
