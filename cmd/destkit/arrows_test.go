package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/destkit/destkit/"

// arrows says which packages of ours each package may import; "..." at the end
// means everything below. What is not listed may import nothing of ours.
var arrows = map[string][]string{
	"bench":               {}, // it measures the program from outside
	"cmd/destkit":         {"..."},
	"conformance":         {"features", "destsim/rpc", "openapi", "conformance/wire", "conformance/hook", "conformance/journal", "internal/foreign"},
	"conformance/wire":    {"destsim/rpc", "internal/redact"},
	"conformance/hook":    {},
	"conformance/journal": {},
	"conformance/report":  {"conformance", "conformance/wire", "internal/foreign"},
	"conformance/service": {"conformance", "conformance/wire", "conformance/journal", "destsim/rpc", "openapi", "features"},
	"destsim":             {"destsim/rpc", "handles", "keepalive", "loopback", "rawconn"},
	"destsim/rpc":         {},
	"features":            {},
	"handles":             {}, // connections to SQLite share a table in the driver
	"internal/liquid":     {},
	"internal/foreign":    {}, // text from outside on a screen
	"internal/redact":     {}, // secrets in text from outside
	"keepalive":           {}, // connections to databases that may vanish
	"loadgen":             {"destsim/rpc", "internal/foreign", "internal/redact", "rawconn", "server/source"},
	"openapi":             {},
	"openapi/clients":     {}, // tests only: generated clients
	"loopback":            {}, // who may use a control endpoint
	"rawconn":             {}, // sockets without futile reads
	"server":              {"server/...", "destsim/rpc", "openapi", "loopback", "internal/liquid"},
	"server/api":          {},
	"server/audit": {
		"server/api", "server/executor", "server/ledger", "server/mapping", "server/source", "destsim/rpc",
	},
	"server/chronicle":   {"server/lease"},
	"server/clock":       {},
	"server/connector":   {"server/api"},
	"server/destination": {"loopback", "server/internal/reach", "server/api", "server/clock", "server/connector", "server/descriptors", "server/pace", "server/yamldoc", "destsim/rpc"},
	"server/descriptors": {},
	"server/executor": {
		"server/api", "server/clock", "server/destination", "server/ledger", "server/mapping", "server/pace", "server/source", "destsim/rpc",
	},
	"server/jobs":           {"server/lease"},
	"server/lease":          {},
	"server/ledger":         {},
	"server/mapping":        {"server/api", "server/nearest", "internal/liquid"},
	"server/nearest":        {},
	"server/pace":           {},
	"server/parts":          {"server/lease"},
	"server/quota":          {"server/pace"},
	"server/shelf":          {"server/lease", "server/ledger"},
	"server/internal/reach": {},
	"server/source":         {"server/internal/reach", "server/api", "server/connector", "server/yamldoc", "handles", "keepalive"},
	"server/store":          {"server/api", "handles", "keepalive"},
	// Only tests import these.
	"internal/crowd":                  {"openapi"},
	"matrixtest":                      {},
	"internal/redact/redacttest":      {},
	"conformance/internal/zoo":        {}, // wrong apart from everything of ours
	"conformance/internal/zoo/golang": {},
	"server/source/postgrestest":      {},
	"server/shelf/shelftest":          {"server/lease", "server/ledger", "server/shelf", "server/source/postgrestest", "server/store"},
	"server/yamldoc":                  {"server/nearest"},
}

// testArrows are what tests may import beyond that.
var testArrows = map[string][]string{
	"conformance":              {"destsim", "conformance/report", "matrixtest", "server/source/postgrestest"},
	"conformance/internal/zoo": {"conformance", "conformance/internal/zoo/golang", "matrixtest"},
	"conformance/report":       {"destsim"},
	"conformance/service":      {"destsim", "matrixtest", "openapi", "server", "server/destination", "server/yamldoc"},
	"conformance/wire":         {"destsim", "internal/redact/redacttest"},
	"internal/redact":          {"internal/redact/redacttest"},
	"destsim":                  {"openapi", "server/source/postgrestest"},
	"destsim/rpc":              {"openapi"},
	"loadgen":                  {"destsim"},
	"openapi":                  {"destsim/rpc", "server/api"},
	"openapi/clients":          {"destsim", "matrixtest", "openapi", "server"},
	"server":                   {"destsim", "conformance/wire", "server/source/postgrestest"},
	"server/destination":       {"destsim"},
	"server/chronicle":         {"server/source/postgrestest", "server/store"},
	"server/executor":          {"destsim", "matrixtest", "server/shelf", "server/shelf/shelftest", "server/source/postgrestest"},
	"server/jobs":              {"server/source/postgrestest"},
	"server/lease":             {"server/source/postgrestest"},
	"server/ledger":            {"matrixtest", "server/shelf", "server/shelf/shelftest", "server/source/postgrestest"},
	"server/quota":             {"server/source/postgrestest", "server/store"},
	"server/shelf":             {"server/lease", "server/shelf/shelftest", "server/source/postgrestest", "server/store"},
	"server/source":            {"server/source/postgrestest"},
	"server/store":             {"server/source/postgrestest"},
}

// doors are the packages by which a module enters, mostly one alone. What
// people write in YAML is decoded by server/yamldoc; the program takes the tree
// of a file whose keys are flags, and templates in JSON mode put out YAML of
// any shape (facts C).
var doors = map[string][]string{
	"github.com/cucumber/":        {"conformance"},
	"github.com/getkin/":          {"openapi"},
	"github.com/goccy/go-yaml":    {"server/yamldoc", "cmd/destkit", "server/mapping"},
	"github.com/HdrHistogram/":    {"internal/crowd", "loadgen"},
	"github.com/hashicorp/":       {"server/destination"},
	"github.com/jackc/pgx/":       {"destsim", "server/chronicle", "server/jobs", "server/lease", "server/parts", "server/quota", "server/shelf", "server/shelf/shelftest", "server/source", "server/store"},
	"github.com/emersion/":        {"server"},
	"github.com/osteele/":         {"internal/liquid"},
	"github.com/netresearch/":     {"server/mapping"},
	"github.com/parquet-go/":      {"server/source"},
	"github.com/riverqueue/":      {"server/jobs"},
	"github.com/santhosh-tekuri/": {"openapi"},
	"github.com/spf13/":           {"cmd/destkit"},
	"github.com/wneessen/":        {"server"},
	"zombiezen.com/go/sqlite":     {"destsim", "handles", "server/store", "server/source"},
}

type goPackage struct {
	ImportPath, Dir                             string
	GoFiles, Imports, TestImports, XTestImports []string
}

// listPackages asks go list for every package of the module.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}

func allowed(pkg string, imported string, rules []string) bool {
	return pkg == imported || slices.ContainsFunc(rules, func(rule string) bool {
		prefix, below := strings.CutSuffix(rule, "...")
		return rule == imported || (below && strings.HasPrefix(imported, prefix))
	})
}

func TestImportsFollowTheArrows(t *testing.T) {
	packages := listPackages(t)
	require.NotEmpty(t, packages)
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		rules, known := arrows[name]
		require.True(t, known, "package %s has no arrows here: say what it may import", name)
		for _, imported := range p.Imports {
			if own, ours := strings.CutPrefix(imported, module); ours {
				require.True(t, allowed(name, own, rules), "%s must not import %s", name, own)
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if own, ours := strings.CutPrefix(imported, module); ours {
				require.True(t, allowed(name, own, slices.Concat(rules, testArrows[name])), "the tests of %s must not import %s", name, own)
			}
		}
	}
}

func TestModulesEnterByOneDoor(t *testing.T) {
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range p.Imports {
			for prefix, open := range doors {
				if strings.HasPrefix(imported, prefix) {
					require.Contains(t, open, name, "%s imports %s, which only %s may", name, imported, strings.Join(open, " and "))
				}
			}
		}
	}
}

// outside are the calls that belong to the program: a library neither
// listens, prints, reads the environment nor exits.
var outside = []string{
	"fmt.Print", "fmt.Printf", "fmt.Println", "log.Print", "log.Printf", "log.Println",
	"log.Fatal", "log.Fatalf", "log.Fatalln", "os.Exit", "os.Getenv", "os.LookupEnv", "os.Environ",
	"net.Listen", "http.ListenAndServe", "http.ListenAndServeTLS", "signal.Notify", "signal.NotifyContext",
}

func TestLibrariesLeaveTheWorldAlone(t *testing.T) {
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "cmd/") || name == "bench" || name == "matrixtest" || name == "server/source/postgrestest" || name == "server/shelf/shelftest" {
			continue // programs, and parts of tests
		}
		for _, file := range p.GoFiles {
			fset := token.NewFileSet()
			tree, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, 0)
			require.NoError(t, err)
			ast.Inspect(tree, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if pkg, ok := sel.X.(*ast.Ident); ok {
					call := pkg.Name + "." + sel.Sel.Name
					require.NotContains(t, outside, call, "%s/%s calls %s", name, fset.Position(n.Pos()), call)
				}
				return true
			})
		}
	}
}
