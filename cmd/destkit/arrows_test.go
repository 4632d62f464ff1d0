package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers defines what of ours a package may import. Patterns are regular expressions
// for the whole path; the first row that matches a package counts. Go refuses cycles,
// and what internal/ folders hide.
var layers = []struct{ who, may string }{
	{`cmd/destkit/internal/(exit|command)`, `cmd/destkit/internal/exit|internal/.*|server|destsim|loadgen|conformance(/destination)?`},
	{`cmd/.*`, `.*`},
	{`features|server/api`, ``},
	{`openapi`, `internal/.*`},
	{`openapi/internal/clients`, `server/api`}, // written by generators
	{`destsim/rpc`, `internal/.*`},
	{`destsim/internal/.*`, `destsim/(rpc|internal/.*)|openapi|internal/.*`},
	{`destsim`, `destsim/.*|internal/.*`},
	{`loadgen/internal/.*`, `loadgen/internal/.*|destsim/rpc|internal/.*`},
	{`loadgen`, `loadgen/.*|destsim/rpc|internal/.*`},
	{`conformance/internal/(journal|wire)`, `conformance/internal/.*|internal/.*`},
	{`conformance/internal/.*`, `conformance(/internal/.*)?|destsim/rpc|openapi|internal/.*`},
	{`conformance`, `conformance/internal/.*|features|internal/.*`},
	{`conformance/report`, `conformance(/internal/.*)?|features|internal/.*`},
	{`conformance/(destination|service)`, `conformance(/internal/.*|/service/internal/.*)?|destsim/rpc|features|openapi|internal/.*`},
	{`conformance/service/internal/.*`, `conformance(/internal/.*|/service/internal/.*)?|destsim/rpc|internal/.*`},
	{`server/internal/store(/.*)?`, `server/(api|internal/store/.*)|internal/.*`},
	{`server/internal/sync/.*`, `server/(api|internal/(sync|store)/.*|internal/descriptors)|destsim/rpc|internal/.*`},
	{`server/internal/controlapi`, `server/api`},
	{`server/internal/console`, `server/(api|internal/controlapi)|openapi|internal/.*`}, // pages from responses: neither store nor engine
	{`server(/internal/.*)?`, `server/.*|destsim/rpc|openapi|internal/.*`},
	{`internal/(dashboard|loadpage)`, `loadgen|internal/.*`},
	{`internal/proxy`, `conformance(/destination|/report)?|internal/.*`},
	{`internal/.*`, `internal/.*|destsim/rpc|server/api`},
}

// users lists the only packages that may import some packages and modules.
var users = []struct{ what, who string }{
	{`cmd/.*`, `cmd/.*`},
	{`internal/(dashboard|loadpage|proxy|skeletons)`, `cmd/.*|internal/dashboard`},
	{`conformance/report`, `cmd/.*|internal/proxy`},
	{`server/internal/(control|console)`, `server`},
	{`conformance/internal/(line|write|discover|cleanup|judge)`, `conformance/(destination|internal/(write|discover|cleanup|judge))`},
	{`conformance/internal/zoo`, ``},
	{`internal/(testkit(/.*)?|matrixtest)`, `internal/testkit(/.*)?`}, // and tests

	{`github.com/chromedp/.*`, `internal/testkit/browser`},
	{`github.com/cucumber/godog`, `conformance/internal/engine`},
	{`github.com/cucumber/(gherkin|messages)/.*`, `conformance(/internal/engine)?`},
	{`github.com/emersion/.*`, `server`},
	{`github.com/fsnotify/.*`, `cmd/destkit`},
	{`github.com/getkin/.*|github.com/santhosh-tekuri/.*`, `openapi`},
	{`github.com/HdrHistogram/.*`, `internal/histogram|loadgen`},
	// The program takes the tree of a file whose keys are flags; templates write YAML of any shape.
	{`github.com/goccy/go-yaml(/.*)?`, `internal/yamldoc|cmd/destkit/internal/configfile|server/internal/sync/mapping`},
	{`github.com/hashicorp/.*`, `server/internal/sync/destination`},
	{`github.com/jackc/pgx/.*`, `internal/source`},
	{`github.com/netresearch/.*`, `server/internal/sync/mapping`},
	{`github.com/osteele/.*`, `internal/liquid`},
	{`github.com/parquet-go/.*`, `internal/source/internal/fileformat`},
	{`github.com/spf13/.*`, `cmd/.*`},
	{`github.com/wneessen/.*`, `server/internal/lifecycle`},
	{`zombiezen.com/go/sqlite(/.*)?`, `internal/handles|internal/source|destsim/internal/store|server/internal/store/sqlite`},
}

const module = "github.com/destkit/destkit/"

type goPackage struct {
	ImportPath, Dir                             string
	GoFiles, Imports, TestImports, XTestImports []string
}

// listPackages gets every package of the module from go list.
var listPackages = sync.OnceValues(func() (all []goPackage, err error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	for dec := json.NewDecoder(bytes.NewReader(out)); err == nil && dec.More(); {
		var p goPackage
		err = dec.Decode(&p)
		all = append(all, p)
	}
	return all, err
})

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()
	is := func(path, pattern string) bool { return regexp.MustCompile(`^(` + pattern + `)$`).MatchString(path) }
	packages, err := listPackages()
	require.NoError(t, err)
	require.NotEmpty(t, packages)
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		row := slices.IndexFunc(layers, func(l struct{ who, may string }) bool { return is(name, l.who) })
		require.NotEqual(t, -1, row, "package %s is in no layer", name)
		for _, path := range p.Imports {
			imported, ours := strings.CutPrefix(path, module)
			require.False(t, ours && !is(imported, layers[row].may), "%s must not import %s", name, imported)
			for _, u := range users {
				require.False(t, is(imported, u.what) && !is(name, u.who), "%s must not import %s: only %s may", name, imported, u.who)
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			imported, ours := strings.CutPrefix(path, module)
			require.False(t, ours && is(imported, `cmd/.*`) && !is(name, `cmd/.*`), "tests of %s must not import %s", name, imported)
		}
	}
}

// A library neither listens, prints, reads the environment nor exits: that is for the program.
func TestLibrariesLeaveTheWorldAlone(t *testing.T) {
	t.Parallel()
	outside := regexp.MustCompile(`^(fmt\.Print(f|ln)?|log\.(Print|Fatal)(f|ln)?|os\.(Exit|Getenv|LookupEnv|Environ)|net\.Listen|http\.ListenAndServe(TLS)?|signal\.Notify(Context)?)$`)
	programs := regexp.MustCompile(`/(cmd/.*|internal/testkit.*|internal/matrixtest)$`) // and parts of tests
	packages, err := listPackages()
	require.NoError(t, err)
	for _, p := range packages {
		if programs.MatchString(p.ImportPath) {
			continue
		}
		for _, file := range p.GoFiles {
			fset := token.NewFileSet()
			tree, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, 0)
			require.NoError(t, err)
			ast.Inspect(tree, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := sel.X.(*ast.Ident); ok {
						require.False(t, outside.MatchString(pkg.Name+"."+sel.Sel.Name), "%s calls %s.%s", fset.Position(n.Pos()), pkg.Name, sel.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// TestWaysThroughTheCode: each function that CONTRIBUTING.md leads by is in its file,
// and one record takes at most 18 hops.
func TestWaysThroughTheCode(t *testing.T) {
	root := filepath.Join("..", "..")
	guide, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	hops := regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\| `(\\w+)` \\|").FindAllStringSubmatch(string(guide), -1)
	require.Greater(t, len(hops), 30)
	record := 0
	for _, hop := range hops {
		code, err := os.ReadFile(filepath.Join(root, hop[1]))
		require.NoError(t, err)
		require.Regexp(t, `(?m)^func (\([^)]+\) )?`+hop[2]+`[\[(]`, string(code), "%s is not in %s", hop[2], hop[1])
		if regexp.MustCompile(`^server/(engine|internal/sync/)`).MatchString(hop[1]) {
			record++
		}
	}
	require.LessOrEqual(t, record, 18)
	for _, path := range regexp.MustCompile("`((?:[a-z]+/)+[a-z_]+\\.(?:go|txt|md|yaml|json))`").FindAllStringSubmatch(string(guide), -1) {
		_, err := os.Stat(filepath.Join(root, path[1]))
		require.NoError(t, err)
	}
}
