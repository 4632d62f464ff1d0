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
		"cmd/destkit/internal/...",
		"conformance", "conformance/destination", "conformance/report", "conformance/service", "destsim", "destsim/rpc", "server",
		"internal/dashboard", "internal/foreign", "internal/plural", "internal/proxy", "internal/skeletons",
		"internal/suggest", "internal/unreached", "internal/anchors",
	},
	"cmd/destkit/internal/build": {}, // what the linker and Go have written into the program
	"cmd/destkit/internal/command": { // arguments, help, suggestions, the end: the same for all commands
		"cmd/destkit/internal/endpoint", "cmd/destkit/internal/exit", "cmd/destkit/internal/terminal", "internal/foreign", "internal/suggest",
	},
	"cmd/destkit/internal/configfile": { // files whose keys are flags, waivers and hooks
		"cmd/destkit/internal/command", "cmd/destkit/internal/endpoint", "cmd/destkit/internal/exit", "conformance", "internal/yamldoc",
	},
	"cmd/destkit/internal/demo": { // the program in one command: tests use its world, too
		"cmd/destkit/internal/build", "cmd/destkit/internal/command", "cmd/destkit/internal/configfile",
		"cmd/destkit/internal/exit", "cmd/destkit/internal/failure", "cmd/destkit/internal/listen",
		"cmd/destkit/internal/loadview", "cmd/destkit/internal/outputs", "cmd/destkit/internal/profiling",
		"cmd/destkit/internal/rest", "cmd/destkit/internal/serve", "cmd/destkit/internal/syncs", "cmd/destkit/internal/syncview",
		"cmd/destkit/internal/terminal", "conformance", "conformance/destination", "conformance/report", "destsim", "loadgen", "server", "server/api",
		"internal/foreign", "internal/loadpage", "internal/page", "internal/plural", "internal/quantity",
	},
	"cmd/destkit/internal/emulation": {"cmd/destkit/internal/exit", "destsim", "server"}, // the service calls what it does not import
	"cmd/destkit/internal/endpoint": { // how it is reached: for all commands that call one
		"cmd/destkit/internal/exit", "cmd/destkit/internal/secret", "cmd/destkit/internal/shell", "conformance", "conformance/destination", "internal/suggest",
	},
	"cmd/destkit/internal/exit": {"internal/foreign"}, // every command and what it calls ends by it
	"cmd/destkit/internal/failure": { // exit statuses of the libraries' errors
		"cmd/destkit/internal/exit", "conformance", "loadgen",
	},
	"cmd/destkit/internal/keyrange": { // which keys are those of a run
		"cmd/destkit/internal/exit", "conformance",
	},
	"cmd/destkit/internal/listen": { // ports and first lines; simulators are served by their own front
		"cmd/destkit/internal/build", "cmd/destkit/internal/exit", "cmd/destkit/internal/secret", "destsim", "server",
		"internal/foreign", "internal/loopback",
	},
	"cmd/destkit/internal/loads": { // loads as commands
		"cmd/destkit/internal/build", "cmd/destkit/internal/command", "cmd/destkit/internal/endpoint",
		"cmd/destkit/internal/exit", "cmd/destkit/internal/failure", "cmd/destkit/internal/keyrange",
		"cmd/destkit/internal/listen", "cmd/destkit/internal/loadview", "cmd/destkit/internal/outputs",
		"cmd/destkit/internal/profiling", "cmd/destkit/internal/secret", "cmd/destkit/internal/shell",
		"cmd/destkit/internal/terminal", "conformance", "destsim", "loadgen", "internal/dashboard", "internal/foreign",
		"internal/loadpage", "internal/plural", "internal/quantity", "internal/redact", "internal/wholefile",
	},
	"cmd/destkit/internal/loadview": { // loads on a terminal: for load, load service and the demo
		"cmd/destkit/internal/terminal", "loadgen", "internal/foreign", "internal/plural", "internal/quantity",
	},
	"cmd/destkit/internal/outputs": { // reports and progress of a judgement
		"cmd/destkit/internal/exit", "cmd/destkit/internal/terminal", "conformance", "conformance/report",
		"internal/foreign", "internal/plural", "internal/suggest",
	},
	"cmd/destkit/internal/profiling": {"cmd/destkit/internal/exit", "internal/loopback"}, // of every command that runs long
	"cmd/destkit/internal/protocol": { // the text and the page of the protocol, from the contract and the catalogue
		"cmd/destkit/internal/exit", "cmd/destkit/internal/terminal", "conformance", "features", "openapi",
		"internal/foreign", "internal/suggest", "internal/yamldoc", "internal/anchors",
	},
	"cmd/destkit/internal/rest": { // commands call a service as any client does
		"cmd/destkit/internal/endpoint", "cmd/destkit/internal/exit", "cmd/destkit/internal/secret", "cmd/destkit/internal/syncview",
		"server", "server/api", "internal/redact", "internal/unreached",
	},
	"cmd/destkit/internal/secret": {"cmd/destkit/internal/exit"}, // how each command gets its tokens
	"cmd/destkit/internal/serve": { // the service as a program
		"cmd/destkit/internal/build", "cmd/destkit/internal/command", "cmd/destkit/internal/emulation", "cmd/destkit/internal/exit",
		"cmd/destkit/internal/listen", "cmd/destkit/internal/profiling", "cmd/destkit/internal/secret", "cmd/destkit/internal/terminal",
		"cmd/destkit/internal/violations", "destsim", "server", "internal/foreign", "internal/plural", "internal/unreached", "openapi",
	},
	"cmd/destkit/internal/shell": {}, // words of command lines: those that people give, and those that messages show
	"cmd/destkit/internal/syncview": { // runs on a terminal: for sync run, sync watch and the demo
		"cmd/destkit/internal/terminal", "server/api", "internal/foreign", "internal/plural", "internal/quantity",
	},
	"cmd/destkit/internal/violations": { // of simulator and service, in one shape
		"cmd/destkit/internal/command", "destsim", "server", "internal/foreign", "internal/plural",
	},
	"cmd/destkit/internal/syncs": { // syncs as commands
		"cmd/destkit/internal/command", "cmd/destkit/internal/exit", "cmd/destkit/internal/profiling",
		"cmd/destkit/internal/rest", "cmd/destkit/internal/secret", "cmd/destkit/internal/syncview", "server", "server/api",
		"internal/foreign", "internal/quantity",
	},
	"cmd/destkit/internal/watch":    {"cmd/destkit/internal/exit", "cmd/destkit/internal/shell", "cmd/destkit/internal/terminal", "internal/foreign"}, // files, keys and processes, apart from the judge
	"cmd/destkit/internal/terminal": {"internal/foreign"},                                                                                             // every display asks it

	"conformance":                              {"features", "conformance/internal/...", "internal/foreign", "internal/hook", "internal/plural", "internal/suggest"},
	"conformance/destination":                  {"conformance", "conformance/internal/...", "destsim/rpc", "openapi", "internal/foreign", "internal/hook", "internal/plural", "internal/unreached"},
	"conformance/internal/causes":              {},
	"conformance/internal/datatable":           {},
	"conformance/internal/journal":             {"internal/rawjson"},
	"conformance/internal/wire":                {"internal/foreign", "internal/plural", "internal/redact"},
	"conformance/report":                       {"conformance", "conformance/internal/wire", "internal/foreign", "internal/outline", "internal/page", "internal/plural", "internal/rawjson", "internal/anchors", "internal/wholefile"},
	"conformance/service":                      {"conformance", "conformance/internal/...", "conformance/service/internal/...", "destsim/rpc", "openapi", "features", "internal/plural", "internal/unreached", "internal/anchors"},
	"conformance/service/internal/certificate": {},
	"conformance/service/internal/jsonvalue":   {"conformance/internal/wire", "internal/plural"},
	"conformance/service/internal/endpoint":    {"conformance", "conformance/internal/wire", "conformance/service/internal/jsonvalue", "destsim/rpc"},

	"destsim":                    {"destsim/rpc", "destsim/internal/...", "internal/console", "internal/loopback", "internal/redact", "internal/codec", "internal/rawjson", "internal/foreign", "internal/suggest"},
	"destsim/internal/console":   {"destsim/rpc", "internal/console", "openapi"},
	"destsim/internal/httpfront": {"internal/rawconn"},
	"destsim/internal/meter":     {"destsim/rpc"},
	"destsim/internal/store":     {"destsim/rpc", "internal/handles", "internal/keepalive", "internal/rawjson"},
	"destsim/rpc":                {"internal/rawjson", "internal/foreign"},

	"features": {},
	"loadgen": {
		"destsim/rpc", "loadgen/internal/...",
		"internal/foreign", "internal/histogram", "internal/hook", "internal/plural", "internal/quantity", "internal/rawjson",
	},
	"loadgen/internal/batch":    {"destsim/rpc", "loadgen/internal/failure", "loadgen/internal/records", "internal/codec", "internal/foreign", "internal/rawjson"}, // requests, and the check of their replies
	"loadgen/internal/cpu":      {},
	"loadgen/internal/failure":  {"internal/foreign", "internal/unreached"}, // what goes wrong, in words
	"loadgen/internal/pace":     {},
	"loadgen/internal/planning": {"destsim/rpc", "loadgen/internal/failure", "loadgen/internal/records", "loadgen/internal/wire"},                   // what a target says of itself
	"loadgen/internal/records":  {"destsim/rpc", "loadgen/internal/failure", "internal/plural", "internal/source", "internal/rawjson"},              // what is sent, without a connection
	"loadgen/internal/restload": {"internal/foreign", "internal/histogram", "internal/plural", "loadgen/internal/failure", "loadgen/internal/wire"}, // clients of a REST API
	"loadgen/internal/wire":     {"loadgen/internal/failure", "internal/foreign", "internal/plural", "internal/rawconn", "internal/redact"},         // calls as bytes
	"openapi":                   {"internal/foreign"},

	"server": {
		"server/api", "server/internal/...", "destsim/rpc", "openapi",
		"internal/console", "internal/foreign", "internal/liquid", "internal/loopback", "internal/source", "internal/suggest",
	},
	"server/api":                 {},
	"server/internal/console":    {"server/api", "internal/console", "openapi"}, // pages from replies: neither store nor engine
	"server/internal/background": {"server/internal/store", "server/internal/sync/clock"},
	"server/internal/faults":     {"server/api", "server/internal/call", "server/internal/problem", "server/internal/settings", "server/internal/sync/clock", "internal/foreign", "internal/suggest"},
	"server/internal/journal": {
		"server/api", "server/internal/background", "server/internal/call", "server/internal/cluster/chronicle", "server/internal/problem",
		"server/internal/settings", "server/internal/store", "server/internal/strictjson", "server/internal/sync/clock",
		"server/internal/sync/destination", "internal/search", "internal/foreign",
	},
	"server/internal/settings": {"server/internal/cluster/chronicle", "server/internal/store", "server/internal/sync/clock"},
	"server/internal/lifecycle": {
		"server/api", "server/internal/call", "server/internal/cluster", "server/internal/cluster/lease", "server/internal/journal", "server/internal/latch",
		"server/internal/store", "server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/mapping", "internal/foreign",
	},
	"server/internal/sources": {
		"server/api", "server/internal/background", "server/internal/call", "server/internal/latch", "server/internal/problem", "server/internal/store",
		"server/internal/sync/clock", "server/internal/sync/mapping", "internal/foreign", "internal/reach", "internal/source",
	},
	"server/internal/destinations": {
		"server/api", "server/internal/background", "server/internal/call", "server/internal/latch", "server/internal/problem", "server/internal/store",
		"server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/mapping",
	},
	"server/internal/states": { // of syncs, in their sources
		"server/internal/background", "server/internal/call", "server/internal/sources", "server/internal/store",
		"server/internal/sync/executor", "internal/source",
	},
	"server/internal/columns": { // of sources, as syncs follow them
		"server/api", "server/internal/cluster", "server/internal/sources", "server/internal/store", "server/internal/sync/mapping",
		"internal/foreign", "internal/source",
	},
	"server/internal/planning": { // of runs: a sync becomes a job of the executor
		"server/api", "server/internal/call", "server/internal/columns", "server/internal/destinations", "server/internal/problem",
		"server/internal/sources", "server/internal/states", "server/internal/store", "server/internal/sync/destination",
		"server/internal/sync/executor", "server/internal/sync/mapping", "internal/source",
	},
	"server/internal/records": { // of the ledger, as people find and see them
		"server/api", "server/internal/store", "server/internal/sync/executor", "server/internal/sync/ledger",
		"server/internal/sync/mapping", "destsim/rpc", "internal/rawjson",
	},
	"server/internal/inspect": { // of syncs: dry runs, explanations, audits
		"server/api", "server/internal/call", "server/internal/columns", "server/internal/journal", "server/internal/latch",
		"server/internal/planning", "server/internal/problem", "server/internal/records", "server/internal/runs",
		"server/internal/sources", "server/internal/states", "server/internal/store", "server/internal/sync/audit",
		"server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/executor",
		"server/internal/sync/ledger", "server/internal/sync/mapping", "internal/foreign", "destsim/rpc", "internal/rawjson",
	},
	"server/internal/metrics":  {"server/internal/call", "server/internal/descriptors", "server/internal/store"},                          // for Prometheus
	"server/internal/fidelity": {"server/api", "server/internal/call", "server/internal/problem", "internal/foreign", "internal/yamldoc"}, // rules and their proofs: it shows a table
	"server/internal/archive":  {"server/internal/sync/clock", "internal/foreign"},                                                        // the form of snapshots
	"server/internal/snapshot": { // of the whole state: what it consists of, and how it is held meanwhile
		"server/internal/archive", "server/internal/call", "server/internal/journal", "server/internal/latch", "server/internal/problem",
		"server/internal/sources", "server/internal/store", "server/internal/sync/clock", "server/internal/sync/destination",
		"server/internal/sync/ledger",
	},
	"server/internal/binding":     {"server/internal/call", "server/internal/store", "server/internal/sync/ledger"}, // a ledger and its database, and nothing else
	"server/internal/maintenance": {"server/internal/store", "server/internal/store/postgres"},                      // of data whose service does not run
	"server/internal/timing": { // the clock, as people move it
		"server/internal/call", "server/internal/latch", "server/internal/problem", "server/internal/runs",
		"server/internal/sync/clock", "internal/foreign",
	},
	"server/internal/trust": {"server/internal/call", "server/internal/problem", "server/internal/settings"}, // authorities beside those of the system
	"server/internal/front": { // what stands beside the API: where things are, whether the process is ready
		"openapi", "server/api", "server/internal/call", "server/internal/problem", "server/internal/store", "server/internal/strictjson",
		"internal/console", "internal/suggest",
	},
	"server/internal/answering": { // what stands around an operation of the API
		"openapi", "server/internal/call", "server/internal/faults", "server/internal/journal", "server/internal/latch",
		"server/internal/metrics", "server/internal/problem", "server/internal/store", "server/internal/strictjson",
		"server/internal/sync/clock",
	},
	"server/internal/controlapi": { // the control API but for what its routes do
		"server/internal/call", "server/internal/latch", "server/internal/problem", "internal/loopback",
	},
	"server/internal/replacement": { // of the whole state, in order
		"server/internal/archive", "server/internal/binding", "server/internal/call", "server/internal/cluster/member",
		"server/internal/connectors", "server/internal/faults", "server/internal/journal", "server/internal/latch",
		"server/internal/lifecycle", "server/internal/organizations", "server/internal/runs", "server/internal/store",
		"server/internal/syncs",
	},
	"server/internal/forks": { // services in one process: their names, their number, their paths
		"server/api", "server/internal/call", "server/internal/problem", "server/internal/snapshot", "server/internal/strictjson",
		"internal/console", "internal/foreign",
	},
	"server/internal/withheld": { // hosts and files that users of the API do not reach: by folders, and by the content of files
		"server/internal/archive", "server/internal/background", "server/internal/call", "server/internal/organizations",
		"server/internal/store", "server/internal/store/sqlite", "internal/reach",
	},
	"server/internal/syncs": { // the resource that runs work on
		"server/api", "server/internal/call", "server/internal/cluster", "server/internal/columns", "server/internal/destinations",
		"server/internal/problem", "server/internal/records", "server/internal/runs", "server/internal/sources", "server/internal/states",
		"server/internal/store", "server/internal/strictjson", "server/internal/sync/clock", "server/internal/sync/destination",
		"server/internal/sync/executor", "server/internal/sync/ledger", "server/internal/sync/mapping",
	},
	"server/internal/organizations": {
		"server/api", "server/internal/background", "server/internal/call", "server/internal/destinations", "server/internal/problem",
		"server/internal/sources", "server/internal/store",
	},
	"server/internal/connectors": { // types that people declare
		"server/api", "server/internal/call", "server/internal/organizations", "server/internal/problem", "server/internal/settings",
		"server/internal/sources", "server/internal/store", "server/internal/strictjson", "server/internal/sync/destination", "server/internal/sync/destination/catalogue",
		"internal/foreign", "internal/source", "internal/yamldoc",
	},
	"server/internal/control": {
		"server/api", "server/internal/call", "server/internal/organizations", "server/internal/problem", "server/internal/runs",
		"server/internal/sources", "server/internal/store", "server/internal/strictjson", "server/internal/sync/clock",
		"server/internal/sync/destination", "internal/foreign",
	},
	"server/internal/seed": {
		"server/api", "server/internal/call", "server/internal/connectors", "server/internal/journal", "server/internal/latch",
		"server/internal/organizations", "server/internal/problem", "server/internal/sources", "server/internal/store",
		"server/internal/strictjson", "server/internal/sync/clock", "internal/foreign", "internal/suggest", "internal/yamldoc",
	},
	"server/internal/rest": {
		"server/api", "server/internal/background", "server/internal/call", "server/internal/destinations", "server/internal/latch", "server/internal/lifecycle", "server/internal/organizations",
		"server/internal/problem", "server/internal/settings", "server/internal/sources", "server/internal/store", "server/internal/strictjson",
		"server/internal/sync/clock", "server/internal/sync/destination", "internal/foreign", "internal/liquid", "internal/source", "internal/suggest",
	},
	"server/internal/cluster": {"server/internal/store"},
	"server/internal/cluster/member": { // this process beside others: leases, the queue, who leads, what is told
		"server/api", "server/internal/background", "server/internal/call", "server/internal/cluster", "server/internal/cluster/jobs",
		"server/internal/cluster/lease", "server/internal/cluster/quota", "server/internal/lifecycle", "server/internal/problem",
		"server/internal/runs", "server/internal/store", "server/internal/sync/clock", "server/internal/sync/ledger", "server/internal/sync/pace",
	},
	"server/internal/runs": { // from the queue to the end: made, planned, worked on, held, logged
		"server/api", "server/internal/background", "server/internal/call", "server/internal/cluster", "server/internal/cluster/lease",
		"server/internal/columns", "server/internal/descriptors", "server/internal/latch", "server/internal/lifecycle",
		"server/internal/planning", "server/internal/records", "server/internal/sources", "server/internal/states", "server/internal/store",
		"server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/executor", "server/internal/sync/ledger",
		"server/internal/sync/mapping", "internal/source",
	},
	"server/internal/links": {
		"server/api", "server/internal/call", "server/internal/latch", "server/internal/problem", "server/internal/sources", "server/internal/store", "server/internal/strictjson",
		"server/internal/sync/clock", "server/internal/sync/destination", "internal/foreign", "internal/source",
	},
	"server/internal/latch":             {"server/internal/problem"},
	"server/internal/call":              {"server/api", "server/internal/dialect", "server/internal/problem", "server/internal/store", "server/internal/strictjson", "internal/foreign", "internal/suggest", "openapi"},
	"server/internal/cluster/chronicle": {"server/internal/cluster/lease"},
	"server/internal/cluster/jobs":      {"server/internal/cluster/lease"},
	"server/internal/cluster/lease":     {},
	"server/internal/cluster/quota":     {"server/internal/sync/pace"},
	"server/internal/cluster/shelf":     {"server/internal/cluster/lease", "server/internal/sync/ledger"},
	"server/internal/descriptors":       {},
	"server/internal/dialect":           {"server/api", "server/internal/problem"},
	"server/internal/problem":           {"server/api", "server/internal/descriptors", "server/internal/store", "server/internal/sync/ledger"},
	"server/internal/store":             {"server/api", "server/internal/store/..."},
	"server/internal/store/database":    {}, // what SQLite and PostgreSQL have in common
	"server/internal/store/migrations":  {"server/internal/store/database"},
	"server/internal/store/postgres": {
		"server/internal/store/database", "server/internal/store/migrations", "server/internal/store/sqlite", // a copy is a SQLite database
		"internal/keepalive",
	},
	"server/internal/store/sealing": {"server/internal/store/database"},
	"server/internal/store/sqlite":  {"server/internal/store/database", "server/internal/store/migrations", "internal/handles"},
	"server/internal/strictjson":    {"server/api", "server/internal/problem", "internal/foreign", "internal/rawjson", "internal/suggest"},
	"server/internal/sync/audit": {
		"server/api", "server/internal/sync/executor", "server/internal/sync/ledger", "server/internal/sync/mapping",
		"internal/source", "internal/source/rowsort", "destsim/rpc", "internal/rawjson",
	},
	"server/internal/sync/clock": {},
	"server/internal/sync/destination": {
		"server/api", "server/internal/descriptors", "server/internal/sync/clock", "server/internal/sync/destination/...",
		"server/internal/sync/pace", "internal/connector", "internal/search", "internal/foreign", "internal/loopback", "internal/reach",
		"destsim/rpc", "internal/codec", "internal/rawjson",
	},
	"server/internal/sync/destination/catalogue": {"server/api", "internal/connector", "internal/yamldoc", "destsim/rpc"}, // emulated applications, described
	"server/internal/sync/destination/hide":      {"internal/foreign"},                                                    // secrets of a connection in texts
	"server/internal/sync/executor": {
		"server/api", "server/internal/sync/clock", "server/internal/sync/destination", "server/internal/sync/destination/catalogue",
		"server/internal/sync/ledger", "server/internal/sync/mapping", "server/internal/sync/pace", "internal/source", "internal/source/rowsort", "destsim/rpc", "internal/rawjson",
	},
	"server/internal/sync/ledger":  {},
	"server/internal/sync/mapping": {"server/api", "internal/foreign", "internal/suggest", "internal/liquid", "internal/rawjson"},
	"server/internal/sync/pace":    {},
	"server/internal/violation": {
		"server/api", "server/internal/store", "server/internal/sync/executor", "server/internal/sync/mapping",
		"server/internal/violation/exchange", "destsim/rpc", "internal/liquid", "internal/suggest",
	},
	"server/internal/violation/exchange": {"server/api"}, // messages that violations see and change

	"internal/anchors":   {},                                                      // where the sentences of the specification stand in the documentation
	"internal/bench":     {},                                                      // it measures the program from outside
	"internal/codec":     {"destsim/rpc", "internal/foreign", "internal/rawjson"}, // batches of the protocol, as fast as can be
	"internal/connector": {"server/api"},
	"internal/console":   {"internal/foreign", "internal/loopback", "internal/page"},                                // what the consoles have in common
	"internal/dashboard": {"internal/console", "internal/loadpage", "internal/outline", "internal/page", "loadgen"}, // pages of load and proxy; the program fills those of a proxy, so they need neither proxy nor judge
	"internal/foreign":   {},                                                                                        // text from outside on a screen
	"internal/histogram": {},                                                                                        // of times, as text too
	"internal/hook":      {"destsim/rpc", "internal/unreached"},                                                     // hooks of authors: the judge and the load ask them
	"internal/handles":   {},                                                                                        // connections to SQLite share a table in the driver
	"internal/keepalive": {},                                                                                        // connections to databases that may vanish
	"internal/liquid":    {},
	"internal/loadpage":  {"loadgen", "internal/foreign", "internal/histogram", "internal/page", "internal/plural", "internal/quantity"},                                     // results of loads as HTML
	"internal/loopback":  {"internal/foreign"},                                                                                                                               // who may use a control endpoint
	"internal/outline":   {},                                                                                                                                                 // what reports and pages both show
	"internal/rawconn":   {},                                                                                                                                                 // sockets without futile reads
	"internal/page":      {},                                                                                                                                                 // the look of HTML pages
	"internal/rawjson":   {},                                                                                                                                                 // JSON where it lies
	"internal/proxy":     {"conformance", "conformance/destination", "conformance/report", "internal/loopback", "internal/rawjson", "internal/redact", "internal/unreached"}, // live and recorded traffic
	"internal/reach":     {},                                                                                                                                                 // files and hosts that may be reached
	"internal/plural":    {},                                                                                                                                                 // counts with their noun
	"internal/quantity":  {"internal/plural"},                                                                                                                                // numbers and times of syncs, loads and the demo read the same
	"internal/redact":    {},                                                                                                                                                 // secrets in text from outside
	"internal/search":    {},                                                                                                                                                 // a text in others, without regard to case
	"internal/skeletons": {"destsim/rpc"},                                                                                                                                    // what destkit init writes
	"internal/suggest":   {},
	"internal/unreached": {}, // why a call got no response, in words
	"internal/wholefile": {}, // files appear whole or not at all
	"internal/yamldoc":   {"internal/suggest"},

	"internal/source": {
		"internal/connector", "internal/handles", "internal/keepalive", "internal/reach", "internal/source/internal/...",
		"internal/source/rowsort", "internal/yamldoc", "server/api",
	},
	"internal/source/internal/cell":       {"server/api", "internal/rawjson"},                                                    // values of rows as JSON text
	"internal/source/internal/fileformat": {"internal/source/internal/cell", "internal/source/internal/valuekind", "server/api"}, // files as tables
	"internal/source/internal/generated":  {"internal/connector", "internal/source/internal/cell", "server/api"},                 // made-up rows
	"internal/source/internal/valuekind":  {"server/api"},                                                                        // kinds of columns
	"internal/source/rowsort":             {},                                                                                    // the executor and the audit sort too

	// Only tests import these.
	"internal/browsertest":                    {}, // pages in a real browser
	"conformance/internal/zoo":                {}, // wrong apart from everything of ours
	"conformance/internal/zoo/golang":         {},
	"internal/crowd":                          {"openapi"},
	"internal/diskfault":                      {"internal/handles"},
	"internal/matrixtest":                     {},
	"internal/postgrestest":                   {},
	"internal/redact/redacttest":              {},
	"cmd/destkit/internal/rest/resttest":      {"cmd/destkit/internal/secret"},
	"openapi/internal/clients":                {"server/api"}, // generated clients
	"server/internal/cluster/shelf/shelftest": {"server/internal/...", "internal/postgrestest"},
}

// testArrows are what tests may import beyond that; all may import the helpers of
// tests.
var testArrows = map[string][]string{
	"internal/source":                   {"internal/rawjson"},
	"cmd/destkit":                       {"loadgen", "openapi", "server/api", "internal/yamldoc"},
	"cmd/destkit/internal/emulation":    {"destsim/rpc"},
	"conformance/destination":           {"destsim", "conformance/report"},
	"conformance/internal/wire":         {"destsim"},
	"conformance/internal/zoo":          {"conformance", "conformance/destination", "conformance/internal/zoo/golang", "conformance/service", "destsim/rpc", "internal/proxy", "server"}, // syncs are judged on their way
	"conformance/report":                {"destsim", "conformance/destination"},
	"conformance/service":               {"destsim", "conformance/destination", "server", "internal/yamldoc", "server/api"},
	"destsim":                           {"openapi"},
	"destsim/rpc":                       {"openapi"},
	"internal/dashboard":                {"destsim", "server"},
	"loadgen":                           {"destsim", "internal/codec"},
	"openapi":                           {"destsim/rpc", "server/api"},
	"openapi/internal/clients":          {"destsim", "openapi", "server"},
	"server":                            {"destsim", "internal/connector", "internal/yamldoc"},
	"server/internal/cluster/chronicle": {"server/internal/store"},
	"server/internal/cluster/quota":     {"server/internal/store"},
	"server/internal/cluster/shelf":     {"server/internal/store", "server/internal/cluster/shelf/shelftest"},
	"server/internal/store":             {"internal/handles"},
	"server/internal/sync/destination":  {"destsim"},
	"server/internal/sync/executor":     {"destsim", "server/internal/cluster/shelf", "server/internal/cluster/shelf/shelftest", "internal/codec"},
	"server/internal/sync/ledger":       {"server/internal/cluster/shelf", "server/internal/cluster/shelf/shelftest"},

	"internal/source/internal/fileformat":        {"internal/source", "internal/rawjson"},
	"internal/source/rowsort":                    {"internal/handles", "internal/source", "internal/source/internal/cell", "server/api"},
	"server/internal/sync/destination/catalogue": {"destsim"},
}

// testHelpers are what every test may import.
var testHelpers = []string{"cmd/destkit/internal/rest/resttest", "internal/browsertest", "internal/crowd", "internal/diskfault", "internal/matrixtest", "internal/postgrestest", "internal/redact/redacttest"}

// doors are the packages by which a module enters, mostly one alone. What
// people write in YAML is decoded by internal/yamldoc; the program takes the tree
// of a file whose keys are flags, and templates in JSON mode put out YAML of
// any shape.
var doors = map[string][]string{
	"github.com/chromedp/":        {"internal/browsertest"},
	"github.com/cucumber/":        {"conformance"},
	"github.com/fsnotify/":        {"cmd/destkit/internal/watch"},
	"github.com/getkin/":          {"openapi"},
	"github.com/HdrHistogram/":    {"internal/crowd", "internal/histogram", "loadgen"},
	"github.com/goccy/go-yaml":    {"internal/yamldoc", "cmd/destkit/internal/configfile", "server/internal/sync/mapping"},
	"github.com/hashicorp/":       {"server/internal/sync/destination"},
	"github.com/jackc/pgx/":       {"destsim/internal/store", "server/internal/cluster/chronicle", "server/internal/cluster/jobs", "server/internal/cluster/lease", "server/internal/cluster/quota", "server/internal/cluster/shelf", "server/internal/cluster/shelf/shelftest", "internal/source", "server/internal/store", "server/internal/store/postgres"},
	"github.com/emersion/":        {"server"},
	"github.com/osteele/":         {"internal/liquid"},
	"github.com/netresearch/":     {"server/internal/sync/mapping"},
	"github.com/parquet-go/":      {"internal/source/internal/fileformat"},
	"github.com/riverqueue/":      {"server/internal/cluster/jobs"},
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
		if strings.HasPrefix(name, "cmd/") || name == "internal/bench" || name == "internal/browsertest" || name == "internal/matrixtest" || name == "internal/postgrestest" || name == "server/internal/cluster/shelf/shelftest" {
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
