package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTiersLoseNothing: make ci-full runs every test. make matrix runs the sample of those
// with Matrix in their names and of those that begin with matrixtest.Long, which it looks
// for in the text; so a test that has a part for it must be one of these.
func TestTiersLoseNothing(t *testing.T) {
	root := filepath.Join("..", "..")
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go").Output()
	if err != nil {
		t.Skip("which files there are is asked of git")
	}
	folders := map[string][]*ast.File{}
	fset := token.NewFileSet()
	for _, file := range strings.Fields(string(out)) {
		if strings.Contains(file, "/testdata/") {
			continue
		}
		parsed, err := parser.ParseFile(fset, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		folders[filepath.Dir(file)] = append(folders[filepath.Dir(file)], parsed)
	}
	tiered := 0
	for folder, files := range folders {
		lost, n := lostTests(files)
		tiered += n
		for _, name := range lost {
			t.Errorf("%s: no sample of %s runs in make matrix: put Matrix into its name, or matrixtest.Long(t) into its first line", folder, name)
		}
	}
	require.Greater(t, tiered, 40)
}

// lostTests lists the tests of a package that differ from tier to tier and that make matrix
// does not find; n is how many differ.
func lostTests(files []*ast.File) (lost []string, n int) {
	calls, begins := map[string][]string{}, map[string]bool{} // by function
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && f.Recv == nil {
				calls[f.Name.Name] = append(calls[f.Name.Name], called(f.Body)...)
				begins[f.Name.Name] = begins[f.Name.Name] || beginsLong(f.Body)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if !strings.HasPrefix(name, "Test") || name == "TestMain" {
			continue
		}
		if !slices.ContainsFunc(ofTiers, func(f string) bool { return reaches(calls, name, f, nil) }) {
			continue
		}
		n++
		if !strings.Contains(name, "Matrix") && !strings.HasPrefix(name, "TestZoo") && !begins[name] {
			lost = append(lost, name)
		}
	}
	return lost, n
}

// ofTiers are the functions by which a test differs from tier to tier.
var ofTiers = []string{"matrixtest.Long", "matrixtest.NotEveryDay", "matrixtest.Sample", "matrixtest.One", "matrixtest.NotShort", "matrixtest.Whole"}

// beginsLong reports whether matrixtest.Long(t) is a statement of the body itself.
func beginsLong(body *ast.BlockStmt) bool {
	return slices.ContainsFunc(body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		return ok && slices.Equal(called(&ast.BlockStmt{List: []ast.Stmt{e}}), []string{"matrixtest.Long", "matrixtest", "t"})
	})
}

// reaches reports whether a function calls another one, by itself or through functions of
// its package.
func reaches(calls map[string][]string, name, other string, seen map[string]bool) bool {
	if seen == nil {
		seen = map[string]bool{}
	}
	if name == other {
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	return slices.ContainsFunc(calls[name], func(next string) bool { return reaches(calls, next, other, seen) })
}

// called lists the functions that a body names, f and package.f, be they called or handed
// on. Methods are left alone: they belong to what tests share, and many tests share them.
func called(body *ast.BlockStmt) (names []string) {
	own := map[string]bool{} // variables that have a function's name
	var look func(ast.Node) bool
	look = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, name := range n.Names {
				own[name.Name] = true
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if x, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					own[x.Name] = true
				}
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				names = append(names, x.Name+"."+n.Sel.Name)
			}
			ast.Inspect(n.X, look)
			return false
		case *ast.KeyValueExpr:
			ast.Inspect(n.Value, look)
			return false
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	}
	ast.Inspect(body, look)
	return slices.DeleteFunc(names, func(name string) bool { return own[name] })
}

// TestTiersLoseNothingFound: what TestTiersLoseNothing finds and what it leaves alone.
func TestTiersLoseNothingFound(t *testing.T) {
	const text = `package p
func TestLong(t *testing.T) { matrixtest.Long(t); plain(t) }
func TestLongInAHelper(t *testing.T) { begin(t) }
func TestThroughAHelper(t *testing.T) { t.Run("", func(t *testing.T) { helper(t) }) }
func TestHandedOn(t *testing.T) { t.Run("", helper) }
func TestMatrixOfAll(t *testing.T) { matrixtest.NotEveryDay(t); helper(t) }
func TestOfEveryDay(t *testing.T) { if testing.Short() { t.Skip() }; plain(t) }
func begin(t *testing.T) { matrixtest.Long(t) }
func helper(t *testing.T) { matrixtest.Sample(t, nil, nil) }
func plain(t *testing.T) { plain(t) }
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	lost, n := lostTests([]*ast.File{file})
	require.Equal(t, []string{"TestHandedOn", "TestLongInAHelper", "TestThroughAHelper"}, lost)
	require.Equal(t, 5, n)
}
