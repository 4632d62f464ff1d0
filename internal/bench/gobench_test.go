package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchmarksAreThere: what is measured in other packages is found there, so that a
// package that moves does not take its goals out of the page.
func TestBenchmarksAreThere(t *testing.T) {
	asked := 0
	parsed(t, ".", func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fn, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fn.Sel.Name != "benchmarks" {
				return true
			}
			asked++
			dir, pattern := literal(t, call.Args[0]), regexp.MustCompile(literal(t, call.Args[1]))
			found := 0
			parsed(t, filepath.Join("..", "..", dir), func(f *ast.File) {
				for _, d := range f.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Benchmark") && pattern.MatchString(fn.Name.Name) {
						found++
					}
				}
			})
			require.Positive(t, found, "%s has no benchmark %s", dir, pattern)
			return true
		})
	})
	require.Positive(t, asked)
}

// parsed visits the files of a package.
func parsed(t *testing.T, dir string, visit func(*ast.File)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "%s: %v", dir, fs.ErrNotExist)
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		visit(f)
	}
}

func literal(t *testing.T, e ast.Expr) string {
	t.Helper()
	l, ok := e.(*ast.BasicLit)
	require.True(t, ok)
	text, err := strconv.Unquote(l.Value)
	require.NoError(t, err)
	return text
}
