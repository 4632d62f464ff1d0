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
	"cmd/destkit": {
		"cmd/destkit/internal/...", "cmd/destkit/internal/command", "cmd/destkit/internal/exit", "conformance",
		"conformance/destination", "conformance/report", "conformance/service", "destsim", "destsim/rpc", "features",
		"internal/dashboard", "internal/foreign", "internal/proxy", "internal/quantity", "internal/skeletons",
		"internal/suggest", "internal/unreached", "server",
	},
	"cmd/destkit/internal/command": {
		"cmd/destkit/internal/exit", "conformance", "conformance/destination", "destsim", "internal/foreign", "internal/reach",
		"internal/suggest", "loadgen", "server",
	},
	"cmd/destkit/internal/configfile": {"cmd/destkit/internal/command", "cmd/destkit/internal/exit", "conformance", "internal/yamldoc"}, // files whose keys are flags, waivers and hooks
	"cmd/destkit/internal/demo": { // the program in one command: tests use its world, too
		"cmd/destkit/internal/command", "cmd/destkit/internal/configfile", "cmd/destkit/internal/exit",
		"cmd/destkit/internal/loads", "cmd/destkit/internal/outputs", "cmd/destkit/internal/serve", "cmd/destkit/internal/syncs",
		"conformance", "conformance/destination", "conformance/report", "destsim", "internal/foreign", "internal/loadpage",
		"internal/page", "internal/quantity", "loadgen", "server", "server/api",
	},
	"cmd/destkit/internal/serve": {
		"cmd/destkit/internal/command", "cmd/destkit/internal/exit", "destsim",
		"internal/foreign", "internal/quantity", "internal/unreached", "openapi", "server",
	},
	"cmd/destkit/internal/exit": {"internal/foreign"}, // every command and what it calls ends by it
	"cmd/destkit/internal/loads": { // loads as commands
		"cmd/destkit/internal/command", "cmd/destkit/internal/exit", "cmd/destkit/internal/outputs", "conformance", "destsim",
		"internal/dashboard", "internal/foreign", "internal/loadpage", "internal/quantity", "internal/wholefile", "loadgen",
	},
	"cmd/destkit/internal/outputs": { // reports and progress of a judgement
		"cmd/destkit/internal/command", "cmd/destkit/internal/exit", "conformance", "conformance/report", "internal/foreign",
		"internal/quantity", "internal/suggest",
	},
	"cmd/destkit/internal/protocol": { // the text and the page of the protocol, from the contract and the catalogue
		"cmd/destkit/internal/command", "cmd/destkit/internal/exit", "conformance", "features", "internal/foreign",
		"internal/suggest", "internal/yamldoc", "openapi",
	},
	"cmd/destkit/internal/syncs": {
		"cmd/destkit/internal/command", "cmd/destkit/internal/exit", "internal/foreign", "internal/quantity",
		"internal/unreached", "server", "server/api",
	},

	"conformance": {
		"conformance/internal/...", "features", "internal/foreign", "internal/hook", "internal/quantity", "internal/suggest",
	},
	"conformance/destination": {
		"conformance", "conformance/internal/...", "destsim/rpc", "internal/foreign", "internal/hook", "internal/quantity",
		"internal/unreached", "openapi",
	},
	"conformance/internal/wire":    {"internal/foreign", "internal/quantity"},
	"conformance/internal/journal": {"internal/rawjson"},
	"conformance/report": {
		"conformance", "conformance/internal/wire", "features", "internal/foreign", "internal/page", "internal/quantity",
		"internal/rawjson", "internal/wholefile",
	},
	"conformance/service": {
		"conformance", "conformance/internal/...", "conformance/service/internal/...", "destsim/rpc", "features",
		"internal/quantity", "internal/unreached", "openapi",
	},
	"conformance/service/internal/endpoint":  {"conformance", "conformance/internal/wire", "conformance/service/internal/jsonvalue", "destsim/rpc"},
	"conformance/service/internal/jsonvalue": {"conformance/internal/wire", "internal/quantity"},

	"destsim": {
		"destsim/internal/...", "destsim/rpc", "internal/codec", "internal/console", "internal/foreign", "internal/rawjson",
		"internal/reach", "internal/suggest",
	},
	"destsim/internal/console":   {"destsim/rpc", "internal/console", "openapi"},
	"destsim/internal/httpfront": {"internal/rawconn"},
	"destsim/internal/meter":     {"destsim/rpc"},
	"destsim/internal/store":     {"destsim/rpc", "internal/handles", "internal/keepalive", "internal/rawjson"},
	"destsim/rpc":                {"internal/foreign", "internal/rawjson"},

	"features": {},
	"loadgen": {
		"destsim/rpc", "internal/foreign", "internal/histogram", "internal/hook", "internal/quantity", "internal/rawjson",
		"loadgen/internal/...", "loadgen/internal/records", "loadgen/internal/wire",
	},
	"loadgen/internal/records": {
		"destsim/rpc", "internal/codec", "internal/foreign", "internal/quantity", "internal/rawjson", "internal/source",
		"loadgen/internal/wire",
	},
	"loadgen/internal/wire":     {"internal/foreign", "internal/quantity", "internal/rawconn", "internal/unreached"},
	"loadgen/internal/pace":     {},
	"loadgen/internal/restload": {"internal/foreign", "internal/histogram", "internal/quantity", "loadgen/internal/wire"}, // clients of a REST API
	"openapi":                   {"internal/foreign"},

	"server": {
		"destsim/rpc", "internal/console", "internal/foreign", "internal/liquid", "internal/reach", "internal/source",
		"internal/suggest", "openapi", "server/api", "server/internal/...",
	},
	"server/api":                 {},
	"server/internal/console":    {"internal/console", "openapi", "server/api"}, // pages from replies: neither store nor engine
	"server/internal/background": {"server/internal/store", "server/internal/sync/clock"},
	"server/internal/faults": {
		"internal/foreign", "internal/suggest", "server/api", "server/internal/call", "server/internal/problem",
		"server/internal/sync/clock",
	},
	"server/internal/journal": {
		"internal/foreign", "server/api", "server/internal/background", "server/internal/call",
		"server/internal/problem", "server/internal/store",
		"server/internal/strictjson", "server/internal/sync/clock", "server/internal/sync/destination",
	},
	"server/internal/lifecycle": {
		"internal/foreign", "server/api", "server/internal/call",
		"server/internal/journal", "server/internal/latch", "server/internal/store", "server/internal/sync/clock",
		"server/internal/sync/destination", "server/internal/sync/mapping",
	},
	"server/internal/sources": {
		"internal/foreign", "internal/reach", "internal/source", "server/api", "server/internal/background", "server/internal/call",
		"server/internal/latch", "server/internal/problem", "server/internal/store",
		"server/internal/sync/clock", "server/internal/sync/mapping",
	},
	"server/internal/destinations": {
		"server/api", "server/internal/background", "server/internal/call", "server/internal/latch", "server/internal/problem",
		"server/internal/store", "server/internal/sync/clock", "server/internal/sync/destination",
		"server/internal/sync/mapping",
	},
	"server/internal/runs": { // of runs: a sync becomes a job of the executor
		"internal/rawjson", "internal/source", "server/api", "server/internal/background", "server/internal/call",
		"server/internal/descriptors", "server/internal/destinations",
		"server/internal/latch", "server/internal/lifecycle", "server/internal/problem", "server/internal/sources",
		"server/internal/store", "server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/executor",
		"server/internal/sync/ledger", "server/internal/sync/mapping",
	},
	"server/internal/inspect": { // of syncs: dry runs, explanations, audits
		"destsim/rpc", "internal/foreign", "internal/rawjson", "server/api", "server/internal/call", "server/internal/sources",
		"server/internal/journal", "server/internal/latch", "server/internal/runs", "server/internal/problem", "server/internal/store",
		"server/internal/sync/audit", "server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/executor",
		"server/internal/sync/ledger", "server/internal/sync/mapping",
	},
	"server/internal/rest": { // for Prometheus
		"internal/console", "internal/foreign", "internal/source", "internal/suggest", "openapi", "server/api",
		"server/internal/background", "server/internal/call", "server/internal/descriptors",
		"server/internal/destinations", "server/internal/faults", "server/internal/journal", "server/internal/latch",
		"server/internal/lifecycle", "server/internal/organizations", "server/internal/problem", "server/internal/runs",
		"server/internal/sources", "server/internal/store", "server/internal/strictjson",
		"server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/executor", "server/internal/sync/ledger",
		"server/internal/sync/mapping",
	},
	"server/internal/archive": {"internal/foreign", "server/internal/sync/clock"}, // the form of snapshots
	"server/internal/snapshot": { // of the whole state: what it consists of, and how it is held meanwhile
		"server/internal/archive", "server/internal/call", "server/internal/journal", "server/internal/latch",
		"server/internal/problem", "server/internal/sources", "server/internal/store", "server/internal/sync/clock",
		"server/internal/sync/destination", "server/internal/sync/ledger",
	},
	"server/internal/binding":     {"server/internal/call", "server/internal/store", "server/internal/sync/ledger"}, // a ledger and its database, and nothing else
	"server/internal/maintenance": {"server/internal/store"},                                                        // of data whose service does not run
	"server/internal/control": { // the clock, as people move it
		"internal/foreign", "internal/reach", "internal/yamldoc", "server/api", "server/internal/call", "server/internal/latch",
		"server/internal/organizations", "server/internal/problem", "server/internal/runs",
		"server/internal/sources", "server/internal/store", "server/internal/strictjson", "server/internal/sync/clock",
		"server/internal/sync/destination",
	},
	"server/internal/replacement": { // of the whole state, in order
		"server/internal/archive", "server/internal/binding", "server/internal/call",
		"server/internal/connectors", "server/internal/faults", "server/internal/journal", "server/internal/latch",
		"server/internal/lifecycle", "server/internal/organizations", "server/internal/runs", "server/internal/store",
		"server/internal/rest",
	},
	"server/internal/forks": { // services in one process: their names, their number, their paths
		"internal/console", "internal/foreign", "server/api", "server/internal/call", "server/internal/problem",
		"server/internal/snapshot", "server/internal/strictjson",
	},
	"server/internal/withheld": { // hosts and files that users of the API do not reach: by folders, and by the content of files
		"internal/reach", "server/internal/archive", "server/internal/background", "server/internal/call",
		"server/internal/organizations", "server/internal/store", "server/internal/store/sqlite",
	},
	"server/internal/organizations": {
		"server/api", "server/internal/background", "server/internal/call",
		"server/internal/problem", "server/internal/sources", "server/internal/store", "server/internal/sync/destination",
	},
	"server/internal/connectors": { // types that people declare
		"internal/foreign", "internal/source", "internal/yamldoc", "server/api", "server/internal/call",
		"server/internal/organizations", "server/internal/problem", "server/internal/sources",
		"server/internal/store", "server/internal/strictjson", "server/internal/sync/destination",
		"server/internal/sync/destination/catalogue",
	},
	"server/internal/seed": {
		"internal/foreign", "internal/suggest", "internal/yamldoc", "server/api", "server/internal/call",
		"server/internal/connectors", "server/internal/journal", "server/internal/latch", "server/internal/organizations",
		"server/internal/problem", "server/internal/sources", "server/internal/store", "server/internal/strictjson",
		"server/internal/sync/clock",
	},
	"server/internal/latch": {"server/internal/problem"},
	"server/internal/call": {
		"internal/foreign", "internal/suggest", "openapi", "server/api", "server/internal/problem", "server/internal/store",
		"server/internal/strictjson",
	},
	"server/internal/descriptors":   {},
	"server/internal/problem":       {"server/api", "server/internal/descriptors", "server/internal/store", "server/internal/sync/ledger"},
	"server/internal/store":         {"server/api", "server/internal/store/..."},
	"server/internal/store/sealing": {"server/internal/store/sqlite"},
	"server/internal/store/sqlite":  {"internal/handles"},
	"server/internal/strictjson":    {"internal/foreign", "internal/rawjson", "internal/suggest", "server/api", "server/internal/problem"},
	"server/internal/sync/audit": {
		"destsim/rpc", "internal/rawjson", "internal/source", "internal/source/rowsort", "server/api",
		"server/internal/sync/executor", "server/internal/sync/ledger", "server/internal/sync/mapping",
	},
	"server/internal/sync/clock": {},
	"server/internal/sync/destination": {
		"destsim/rpc", "internal/codec", "internal/connector", "internal/foreign", "internal/rawjson", "internal/reach",
		"server/api", "server/internal/descriptors", "server/internal/sync/clock", "server/internal/sync/destination/...",
		"server/internal/sync/pace",
	},
	"server/internal/sync/destination/catalogue": {"destsim/rpc", "internal/connector", "internal/yamldoc", "server/api"}, // emulated applications, described
	"server/internal/sync/executor": {
		"destsim/rpc", "internal/rawjson", "internal/source", "internal/source/rowsort", "server/api",
		"server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/destination/catalogue",
		"server/internal/sync/ledger", "server/internal/sync/mapping", "server/internal/sync/pace",
	},
	"server/internal/sync/ledger":  {},
	"server/internal/sync/mapping": {"internal/foreign", "internal/liquid", "internal/rawjson", "internal/suggest", "server/api"},
	"server/internal/sync/pace":    {},
	"server/internal/seam":         {"server/internal/store", "server/internal/sync/executor"}, // where tests stand

	"internal/bench":     {},                                                      // it measures the program from outside
	"internal/codec":     {"destsim/rpc", "internal/foreign", "internal/rawjson"}, // batches of the protocol, as fast as can be
	"internal/connector": {"server/api", "internal/yamldoc"},
	"internal/console":   {"internal/foreign", "internal/page", "internal/reach"},               // what the consoles have in common
	"internal/dashboard": {"internal/console", "internal/loadpage", "internal/page", "loadgen"}, // pages of load and proxy; the program fills those of a proxy, so they need neither proxy nor judge
	"internal/foreign":   {},                                                                    // text from outside on a screen
	"internal/histogram": {},                                                                    // of times, as text too
	"internal/hook":      {"destsim/rpc", "internal/unreached"},                                 // hooks of authors: the judge and the load ask them
	"internal/handles":   {},                                                                    // connections to SQLite share a table in the driver
	"internal/keepalive": {},                                                                    // connections to databases that may vanish
	"internal/liquid":    {},
	"internal/loadpage":  {"internal/foreign", "internal/histogram", "internal/page", "internal/quantity", "loadgen"}, // results of loads as HTML
	"internal/reach":     {"internal/foreign"},
	"internal/page":      {},
	"internal/rawconn":   {}, // sockets without futile reads
	"internal/rawjson":   {}, // JSON where it lies
	"internal/proxy": { // live and recorded traffic
		"conformance", "conformance/destination", "conformance/report", "internal/foreign", "internal/rawjson", "internal/reach",
		"internal/unreached",
	},
	"internal/quantity":  {},
	"internal/skeletons": {"destsim/rpc"}, // what destkit init writes
	"internal/suggest":   {},
	"internal/unreached": {}, // why a call got no response, in words
	"internal/wholefile": {}, // files appear whole or not at all
	"internal/yamldoc":   {"internal/suggest"},

	"internal/source": {
		"internal/connector", "internal/handles", "internal/keepalive", "internal/reach", "internal/source/internal/...",
		"internal/source/rowsort", "internal/yamldoc", "server/api",
	},
	"internal/source/internal/cell":       {"internal/rawjson", "server/api"},                                    // values of rows as JSON text
	"internal/source/internal/fileformat": {"internal/source/internal/cell", "server/api"},                       // files as tables
	"internal/source/internal/generated":  {"internal/connector", "internal/source/internal/cell", "server/api"}, // made-up rows
	"internal/source/rowsort":             {},                                                                    // the executor and the audit sort too

	// Only tests import these.
	"internal/testkit/browser":   {"internal/matrixtest"},
	"conformance/internal/zoo":   {}, // wrong apart from everything of ours
	"internal/testkit/diskfault": {"internal/handles"},
	"internal/matrixtest":        {},
	"internal/testkit":           {"cmd/destkit/internal/command", "internal/matrixtest"},
	"openapi/internal/clients":   {"server/api"}, // generated clients
}

// testArrows are what tests may import beyond that; all may import the helpers of
// tests.
var testArrows = map[string][]string{
	"internal/source":            {"internal/rawjson"},
	"cmd/destkit":                {"cmd/destkit/testdata/crowd", "internal/yamldoc", "loadgen", "openapi", "server/api"},
	"cmd/destkit/internal/serve": {"destsim/rpc"},
	"conformance/destination":    {"conformance/report", "destsim"},
	"conformance/internal/wire":  {"destsim"},
	"conformance/internal/zoo": { // syncs are judged on their way
		"conformance", "conformance/destination", "conformance/internal/zoo/testdata/golang", "conformance/service",
		"destsim/rpc", "internal/proxy", "server",
	},
	"conformance/report":               {"conformance/destination", "destsim"},
	"conformance/service":              {"conformance/destination", "destsim", "internal/yamldoc", "server", "server/api"},
	"destsim":                          {"openapi"},
	"destsim/rpc":                      {"openapi"},
	"internal/dashboard":               {"destsim", "server"},
	"loadgen":                          {"destsim", "internal/codec"},
	"openapi":                          {"destsim/rpc", "server/api"},
	"openapi/internal/clients":         {"destsim", "openapi", "server"},
	"server":                           {"destsim", "internal/connector", "internal/yamldoc"},
	"server/internal/store":            {"internal/handles"},
	"server/internal/sync/destination": {"destsim"},
	"server/internal/sync/executor":    {"destsim", "internal/codec"},
	"server/internal/sync/ledger":      {},

	"internal/source/internal/fileformat":        {"internal/rawjson", "internal/source"},
	"internal/source/rowsort":                    {"internal/handles", "internal/source", "internal/source/internal/cell", "server/api"},
	"server/internal/sync/destination/catalogue": {"destsim"},
}

// testHelpers are what every test may import.
var testHelpers = []string{"internal/testkit", "internal/testkit/browser", "internal/testkit/diskfault", "internal/matrixtest", "server/testdata/violation"}

// doors are the packages by which a module enters, mostly one alone. What
// people write in YAML is decoded by internal/yamldoc; the program takes the tree
// of a file whose keys are flags, and templates in JSON mode put out YAML of
// any shape.
var doors = map[string][]string{
	"github.com/chromedp/":        {"internal/testkit/browser"},
	"github.com/cucumber/":        {"conformance"},
	"github.com/fsnotify/":        {"cmd/destkit"},
	"github.com/getkin/":          {"openapi"},
	"github.com/HdrHistogram/":    {"internal/histogram", "loadgen"},
	"github.com/goccy/go-yaml":    {"internal/yamldoc", "cmd/destkit/internal/configfile", "server/internal/sync/mapping"},
	"github.com/hashicorp/":       {"server/internal/sync/destination"},
	"github.com/jackc/pgx/":       {"destsim/internal/store", "internal/source", "server/internal/store"},
	"github.com/emersion/":        {"server"},
	"github.com/osteele/":         {"internal/liquid"},
	"github.com/netresearch/":     {"server/internal/sync/mapping"},
	"github.com/parquet-go/":      {"internal/source/internal/fileformat"},
	"github.com/santhosh-tekuri/": {"openapi"},
	"github.com/spf13/":           {"cmd/destkit", "cmd/destkit/internal/..."},
	"github.com/wneessen/":        {"server/internal/lifecycle"},
	"zombiezen.com/go/sqlite":     {"destsim/internal/store", "internal/handles", "server/internal/store/sqlite", "internal/source"},
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
				require.True(t, allowed(name, own, slices.Concat(rules, testArrows[name], testHelpers)), "the tests of %s must not import %s", name, own)
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
					require.True(t, allowed("", name, open), "%s imports %s, which only %s may", name, imported, strings.Join(open, " and "))
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
		if strings.HasPrefix(name, "cmd/") || name == "internal/bench" || name == "internal/testkit/browser" || name == "internal/matrixtest" || name == "internal/testkit" {
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
