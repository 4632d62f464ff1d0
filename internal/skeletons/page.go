package skeletons

import (
	"fmt"
	"slices"
	"strings"
)

// page is what the common files know of a skeleton.
type page struct {
	Choice
	language
	StoreWords string // where the records are
}

// language is how one is started and tested. What differs between stores is under
// their names, the rest under "".
type language struct {
	Title  string              // its name
	Ending string              // of source files
	Image  string              // container image of a pipeline
	Action string              // step of a GitHub workflow that installs the runtime
	Task   string              // step of an Azure pipeline that does
	needs  map[string]string   // what must be installed
	setup  map[string][]string // commands before the first start
	start  map[string]string   // command that starts the endpoint
	test   map[string]string   // command of its own test
}

var languages = map[string]language{
	"node": {
		Title: "Node", Ending: "js", Image: "node:24",
		Action: "actions/setup-node@v4\n        with: {node-version: 24}",
		Task:   "UseNode@1\n    inputs: {version: 24.x}",
		needs:  map[string]string{"": "Node 20 or newer", "sqlite": "Node 22.13 or newer, which has node:sqlite"},
		setup:  map[string][]string{"postgres": {"npm install"}},
		start:  map[string]string{"": "node main.js"},
		test:   map[string]string{"": "npm test"},
	},
	"typescript": {
		Title: "TypeScript", Ending: "ts", Image: "node:24",
		Action: "actions/setup-node@v4\n        with: {node-version: 24}",
		Task:   "UseNode@1\n    inputs: {version: 24.x}",
		needs:  map[string]string{"": "Node 22.18 or newer, which runs TypeScript as it is"},
		setup:  map[string][]string{"postgres": {"npm install"}},
		start:  map[string]string{"": "node main.ts"},
		test:   map[string]string{"": "npm install && npm test"},
	},
	"python": {
		Title: "Python", Ending: "py", Image: "python:3.13",
		Action: "actions/setup-python@v5\n        with: {python-version: '3.13'}",
		Task:   "UsePythonVersion@0\n    inputs: {versionSpec: '3.13'}",
		needs: map[string]string{
			"":         "Python 3.9 or newer and no package",
			"postgres": "Python 3.9 or newer with venv (python3-venv on Debian)",
		},
		setup: map[string][]string{"postgres": {
			"test -d .venv || python3 -m venv --system-site-packages .venv",
			".venv/bin/python -c 'import psycopg_pool' 2>/dev/null || .venv/bin/pip install -r requirements.txt",
		}},
		start: map[string]string{"": "python3 main.py", "postgres": ".venv/bin/python main.py"},
		test:  map[string]string{"": "python3 -m unittest", "postgres": ".venv/bin/python -m unittest"},
	},
	"go": {
		Title: "Go", Ending: "go", Image: "golang:1.26",
		Action: "actions/setup-go@v5\n        with: {go-version-file: go.mod}",
		Task:   "GoTool@0\n    inputs: {version: '1.26'}",
		needs:  map[string]string{"": "Go 1.24 or newer", "sqlite": "Go 1.26 or newer", "postgres": "Go 1.26 or newer"},
		start:  map[string]string{"": "go run ."},
		test:   map[string]string{"": "go test ./..."},
	},
}

// of is the entry of a store, or else the one of all stores.
func of[V any](m map[string]V, store string) V {
	if v, ok := m[store]; ok {
		return v
	}
	return m[""]
}

// Needs, Setup, Start and Test are those of the store.
func (p *page) Needs() string   { return of(p.needs, p.Store) }
func (p *page) Setup() []string { return of(p.setup, p.Store) }
func (p *page) Start() string   { return of(p.start, p.Store) }
func (p *page) Test() string    { return of(p.test, p.Store) }

var storeWords = map[string]string{
	"memory":   "in memory, for trying things out: they are gone when it stops",
	"sqlite":   "in a SQLite file",
	"postgres": "in PostgreSQL",
}

func newPage(c Choice) (*page, error) {
	for _, choice := range []struct {
		what, value string
		of          []string
	}{{"language", c.Language, Languages}, {"store", c.Store, Stores}, {"pipeline", c.Pipeline, Pipelines}} {
		if !slices.Contains(choice.of, choice.value) {
			return nil, fmt.Errorf("unknown %s %q: choose %s", choice.what, choice.value, strings.Join(choice.of, ", "))
		}
	}
	return &page{Choice: c, language: languages[c.Language], StoreWords: storeWords[c.Store]}, nil
}

// common are the files that are alike for every language: source and name.
func (p *page) common() map[string]string {
	files := map[string]string{"README.md.tmpl": "README.md", "destkit.yaml": "destkit.yaml", "hooks.yaml": "hooks.yaml"}
	if name, ok := pipelineFiles[p.Pipeline]; ok {
		files[p.Pipeline+".yml"] = name
	}
	return files
}

// HooksPort is where the hooks of the judge are.
func (p *page) HooksPort() int { return p.Port + 1 }

// Commands are the lines of a shell in the folder of a skeleton.
type Commands struct {
	Needs string   // what must be installed, in words
	Test  []string // its own test
	Start []string // starts the endpoint
	Judge []string // judges it, in another terminal
}

// CommandsOf are those of a skeleton.
func CommandsOf(c Choice) (Commands, error) {
	p, err := newPage(c)
	if err != nil {
		return Commands{}, err
	}
	return Commands{p.Needs(), append(p.TestSettings(), p.Test()), p.StartCommands(), p.JudgeCommands()}, nil
}

// Token is the token of the commands that are for trying things out.
const Token = "try-me"

// database is the setting of a database that has to be there.
const database = "DATABASE_URL=${DATABASE_URL:-postgres://postgres@127.0.0.1:5432/postgres}"

// TestSettings come before the endpoint's own test.
func (p *page) TestSettings() []string {
	if p.Store != "postgres" {
		return p.Setup()
	}
	return append(slices.Clone(p.Setup()), "export "+database)
}

// StartCommands start the endpoint.
func (p *page) StartCommands() []string {
	settings := fmt.Sprintf("export DESTINATION_TOKEN=%s PORT=%d HOOKS_PORT=%d", Token, p.Port, p.HooksPort())
	if p.Store == "postgres" {
		settings += " " + database
	}
	return append(slices.Clone(p.Setup()), settings, p.Start())
}

// JudgeCommands judge it.
func (p *page) JudgeCommands() []string {
	return []string{
		"export DESTINATION_TOKEN=" + Token,
		fmt.Sprintf("destkit conform http://127.0.0.1:%d/ --config destkit.yaml", p.Port),
	}
}
