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

// language is how one is started and tested.
type language struct {
	Title   string            // its name
	Needs   map[string]string // what must be installed, by store
	Setup   map[string]string // command before the first start, by store; "" is none
	Start   string            // command that starts the endpoint
	Test    string            // command of its own test
	Image   string            // container image of a pipeline
	Ending  string            // of source files
	Install string            // step of a GitHub workflow that installs the runtime
}

const (
	everyStore  = "every store"
	nodeInstall = "actions/setup-node@v4\n        with: {node-version: 24}"
)

var languages = map[string]language{
	"node": {
		Title: "Node", Ending: "js", Image: "node:24", Install: nodeInstall,
		Needs: map[string]string{"memory": "Node 20 or newer", "sqlite": "Node 22.13 or newer, which has node:sqlite", "postgres": "Node 20 or newer"},
		Setup: map[string]string{"postgres": "npm install"},
		Start: "node main.js", Test: "npm test",
	},
}

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
	var test []string
	if setup := p.Setup[p.Store]; setup != "" {
		test = append(test, setup)
	}
	return Commands{append(test, p.Test), p.StartCommands(), p.JudgeCommands()}, nil
}

// Token is the token of the commands that are for trying things out.
const Token = "try-me"

// StartCommands start the endpoint.
func (p *page) StartCommands() []string {
	var all []string
	if setup := p.Setup[p.Store]; setup != "" {
		all = append(all, setup)
	}
	settings := fmt.Sprintf("export DESTINATION_TOKEN=%s PORT=%d HOOKS_PORT=%d", Token, p.Port, p.HooksPort())
	if p.Store == "postgres" {
		settings += " DATABASE_URL=${DATABASE_URL:-postgres://postgres@127.0.0.1:5432/postgres}"
	}
	return append(all, settings, p.Start)
}

// JudgeCommands judge it.
func (p *page) JudgeCommands() []string {
	return []string{
		"export DESTINATION_TOKEN=" + Token,
		fmt.Sprintf("destkit conform http://127.0.0.1:%d/ --config destkit.yaml", p.Port),
	}
}
