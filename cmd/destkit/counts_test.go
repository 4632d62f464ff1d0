package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlainCounts: what the judge, the load generator and the program say of a
// number of things reads right with 1. A number that is not constant does not stand
// before a plural: plural.Count and quantity.Counted write both.
func TestPlainCounts(t *testing.T) {
	root := filepath.Join("..", "..")
	out, err := exec.Command("git", "-C", root, "ls-files", "conformance/*.go", "conformance/destination/*.go", "loadgen/*.go", "cmd/destkit/*.go").Output()
	if err != nil {
		t.Skip("which files there are is asked of git")
	}
	folders := map[string][]*ast.File{}
	fset := token.NewFileSet()
	for _, file := range strings.Fields(string(out)) {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") || strings.Contains(file, "/zoo/") || strings.HasPrefix(file, "loadgen/xk6/") {
			continue
		}
		parsed, err := parser.ParseFile(fset, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		folders[filepath.Dir(file)] = append(folders[filepath.Dir(file)], parsed)
	}
	require.Greater(t, len(folders), 8)
	for _, files := range folders {
		for _, bare := range bareCounts(fset, files) {
			t.Errorf("%s: write the number and its noun with plural.Count", bare)
		}
	}
}

// TestPlainCountsFound: what TestPlainCounts finds and what it leaves alone.
func TestPlainCountsFound(t *testing.T) {
	for code, want := range map[string]bool{
		`say("%d answers", n)`:                                true,
		`say("run %d: %d records", run, n)`:                   true,
		`say("%s has %d connection tests", s, n)`:             true,
		`say("%d%% of %d calls", share, n)`:                   true,
		`say("%s rows", quantity.Grouped(n))`:                 true,
		`say(strconv.Itoa(n) + " rows")`:                      true,
		`say("all " + quantity.Grouped(n) + " rows of " + s)`: true,
		`say("%d answers", most)`:                             false, // a constant
		`say("%d answers", 12)`:                               false,
		`say("run %d has no records", run)`:                   false,
		`say("run %d of its records", run)`:                   false,
		`say("%d records/s", n)`:                              false, // a unit
		`say("%s rows", name)`:                                false,
		`say("%s", plural.Count(n, "answer"))`:                false,
		`say("%s", strconv.Itoa(n) + " is too low")`:          false,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "x.go", "package x\nconst most = 3\nfunc f() { "+code+" }\n", parser.SkipObjectResolution)
		require.NoError(t, err, code)
		require.Equal(t, want, len(bareCounts(fset, []*ast.File{file})) > 0, code)
	}
}

var (
	verbs = regexp.MustCompile(`%(?:\[(\d+)\])?[-+# 0]*[\d.]*[a-zA-Z%]`)
	// pluralNoun is what follows a number: a word that ends in s, or one word and such a
	// one; not a unit such as records/s.
	pluralNoun = regexp.MustCompile(`^ ([a-z]+ )?([a-z]+s)\b($|[^/])`)
)

// noNouns are words with an s at the end that are verbs or pronouns, and words
// behind which no noun of the number follows.
var noNouns = strings.Fields("is has was as this its less does of for with in nor and or at from to " +
	"adds appends belongs comes differs fails follows goes keeps lacks needs sends")

// bareCounts are the places of the files of one package where a number that is not
// constant stands before a plural.
func bareCounts(fset *token.FileSet, files []*ast.File) (places []string) {
	constants := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if decl, ok := n.(*ast.GenDecl); ok && decl.Tok == token.CONST {
				for _, spec := range decl.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						constants[name.Name] = true
					}
				}
			}
			return true
		})
	}
	varies := func(x ast.Expr) bool {
		switch x := x.(type) {
		case *ast.BasicLit:
			return false
		case *ast.Ident:
			return !constants[x.Name]
		}
		return true
	}
	add := func(at token.Pos, text string) {
		places = append(places, fset.Position(at).String()+": "+text)
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr: // strconv.Itoa(n) + " rows"
				if text, ok := literal(n.Y); ok && n.Op == token.ADD && writesNumber(n.X) && beforePlural(text) {
					add(n.Pos(), text)
				}
			case *ast.CallExpr:
				for i, argument := range n.Args {
					text, ok := literal(argument)
					if !ok {
						continue
					}
					next := i
					for _, m := range verbs.FindAllStringSubmatchIndex(text, -1) {
						verb := text[m[0]:m[1]]
						if verb == "%%" {
							continue
						}
						next++
						if m[2] >= 0 {
							index, _ := strconv.Atoi(text[m[2]:m[3]])
							next = i + index
						}
						if next >= len(n.Args) || !beforePlural(text[m[1]:]) {
							continue
						}
						if strings.HasSuffix(verb, "d") && varies(n.Args[next]) || writesNumber(n.Args[next]) {
							add(argument.Pos(), text)
						}
					}
				}
			}
			return true
		})
	}
	return places
}

func literal(x ast.Expr) (string, bool) {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// beforePlural reports whether a number stands before text and counts what text begins with.
func beforePlural(text string) bool {
	m := pluralNoun.FindStringSubmatch(text)
	return m != nil && !slices.Contains(noNouns, strings.TrimSpace(m[1])) && !slices.Contains(noNouns, m[2])
}

// writesNumber reports whether x is, or ends with, a call that makes a text of a number.
func writesNumber(x ast.Expr) bool {
	if sum, ok := x.(*ast.BinaryExpr); ok {
		x = sum.Y
	}
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Itoa", "FormatInt", "FormatUint", "Grouped"}, f.Sel.Name)
}
