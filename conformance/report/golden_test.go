package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file of testdata, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the tests with -update once")
	if string(want) == string(got) {
		return
	}
	// The first line that differs says more than two whole pages.
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(a), len(b)) {
		require.Equal(t, a[i], b[i], "%s, line %d", path, i+1)
	}
	require.Len(t, b, len(a), path)
}

func TestGolden(t *testing.T) {
	extension := map[string]string{Text: "txt", JSON: "json", JUnit: "xml", HTML: "html", Markdown: "md",
		GitHub: "github.txt", SARIF: "sarif", HAR: "har", Badge: "badge.json"}
	for _, format := range Formats() {
		t.Run(format, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, Write(format, &b, sample()))
			require.Contains(t, extension, format)
			// The files of the catalogue are no subject of this package.
			got := regexp.MustCompile(`"features/[^"]*"`).ReplaceAll(b.Bytes(), []byte(`"features/destination/AREA.feature"`))
			golden(t, "sample."+extension[format], got)
		})
	}
	t.Run("verbose and coloured", func(t *testing.T) {
		var b bytes.Buffer
		require.NoError(t, WriteText(&b, sample(), Options{Color: true, Width: 100, Verbose: true, ReportFile: "my report.json"}))
		golden(t, "sample.verbose.txt", b.Bytes())
	})
	t.Run("conformant", func(t *testing.T) {
		var b bytes.Buffer
		require.NoError(t, Write(Text, &b, conformant()))
		golden(t, "conformant.txt", b.Bytes())
	})
}
