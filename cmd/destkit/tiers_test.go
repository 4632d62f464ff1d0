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

// TestTiersLoseNothing: what make test leaves out runs in make race or in make matrix.
// make matrix runs the tests with Matrix in their names, and those of the zoo; so that is
// in the name of each test that does more there, or that -short may leave out of make race.
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
			t.Errorf("%s: a part of %s runs nowhere: make test leaves it out, make race may, and make matrix does not run a test of this name. Put Matrix into it", folder, name)
		}
	}
	require.Greater(t, tiered, 40)
}

// lostTests lists the tests of a package that make test leaves out in part and that no
// tier runs as a whole; n is how many differ from tier to tier.
func lostTests(files []*ast.File) (lost []string, n int) {
	calls := map[string][]string{} // by function
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && f.Recv == nil {
				calls[f.Name.Name] = append(calls[f.Name.Name], called(f.Body)...)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if !strings.HasPrefix(name, "Test") || name == "TestMain" {
			continue
		}
		long := reaches(calls, name, "matrixtest.Long", nil)
		more := slices.ContainsFunc(ofMatrix, func(f string) bool { return reaches(calls, name, f, nil) })
		if !long && !more {
			continue
		}
		n++
		matrix := strings.Contains(name, "Matrix") || strings.HasPrefix(name, "TestZoo")
		if !matrix && (more || reaches(calls, name, "testing.Short", nil)) {
			lost = append(lost, name)
		}
	}
	return lost, n
}

// ofMatrix is what tells the tier of the matrices from the others.
var ofMatrix = []string{"matrixtest.Sampled", "matrixtest.NotShort", "matrixtest.Whole"}

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
func TestOfTheRace(t *testing.T) { matrixtest.Long(t); plain(t) }
func TestOfNone(t *testing.T) { matrixtest.Long(t); if testing.Short() { t.Skip() } }
func TestThroughAHelper(t *testing.T) { matrixtest.Long(t); t.Run("", func(t *testing.T) { helper(t) }) }
func TestHandedOn(t *testing.T) { matrixtest.Long(t); t.Run("", helper) }
func TestMatrixOfAll(t *testing.T) { matrixtest.Long(t); helper(t) }
func TestOfASample(t *testing.T) { helper(t) }
func TestOfEveryDay(t *testing.T) { if testing.Short() { t.Skip() }; plain(t) }
func helper(t *testing.T) { matrixtest.Sampled(t, 1) }
func plain(t *testing.T) { plain(t) }
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	lost, n := lostTests([]*ast.File{file})
	require.Equal(t, []string{"TestHandedOn", "TestOfASample", "TestOfNone", "TestThroughAHelper"}, lost)
	require.Equal(t, 6, n)
}
