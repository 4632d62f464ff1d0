package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEverythingIsPrintedByOneWriter: all output of a command goes through package foreign,
// which shows each value from outside on one line and in full sight.
func TestEverythingIsPrintedByOneWriter(t *testing.T) {
	var files []string
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "testdata" {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			files = append(files, filepath.ToSlash(path))
		}
		return err
	}))
	set := token.NewFileSet()
	calls := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			calls++
			what := pkg.Name + "." + s.Sel.Name
			switch {
			case pkg.Name == "fmt" && (strings.HasPrefix(s.Sel.Name, "Fprint") || strings.HasPrefix(s.Sel.Name, "Print")),
				what == "os.Stdout", what == "os.Stderr", what == "io.WriteString":
				// A page of HTML is no screen, and escapes by itself; that of the protocol
				// holds our own text alone.
				if name != "internal/command/profiles.go" && name != "internal/protocol/page.go" {
					t.Errorf("%s: %s prints past the one writer: use foreign.Printf", set.Position(s.Pos()), what)
				}
			case what == "foreign.Raw":
				require.Contains(t, []string{"internal/command/execute.go", "internal/outputs/progress.go", "internal/command/terminal.go", "internal/loads/display.go", "internal/syncs/display.go", "internal/outputs/outputs.go", "internal/loads/files.go", "internal/serve/key.go", "conform_watch_screen.go"},
					name, "who else goes past the net says here why")
			}
			return true
		})
	}
	require.NotZero(t, calls)
}
