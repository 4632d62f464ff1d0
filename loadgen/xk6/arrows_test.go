package xk6

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The extension knows the load generator and nothing else of this repository;
// its tests know the simulator.
func TestImportsFollowTheArrows(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imported := range tree.Imports {
			path, err := strconv.Unquote(imported.Path.Value)
			require.NoError(t, err)
			own, ours := strings.CutPrefix(path, "github.com/destkit/destkit/")
			test := strings.HasSuffix(file, "_test.go")
			require.True(t, !ours || own == "loadgen" || test && own == "destsim", "%s must not import %s", file, path)
		}
	}
}
