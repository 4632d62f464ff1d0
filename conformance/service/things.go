package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// things are what the run has made in the service, oldest first.
type things struct {
	mu   sync.Mutex
	made []thing
}

// thing is one resource of the service.
type thing struct {
	kind    string // "destinations", "syncs", … as in the path
	id      int64
	as      identity
	path    string // "" is the ordinary one
	token   string // where it is not that of the run
	control bool   // below the control URL
}

// at is the path of the thing below the base URL.
func (t thing) at() string { return cmp.Or(t.path, below(t.kind, t.id, "")) }

// prefix begins every name that a check or the run gives; by it the journal recognises what a killed run leaves.
func (r *run) prefix(part string) string { return fmt.Sprintf("zz-conf-%s-%s-", r.opts.RunID, part) }

// called makes a name of the run itself.
func (r *run) called(what string) string {
	return fmt.Sprintf("%s%s-%d", r.prefix("run"), what, r.numbers.Add(1))
}

// announce notes that things with the names of a part of the run will be made.
func (r *run) announce(part string) error {
	const object = "names that begin with" // in place of the name of one
	_, err := r.journal.Begin(object, "name", "create", []json.RawMessage{jsonvalue.Encode(r.prefix(part))})
	return err
}

// keep notes a thing that was made, to be deleted at the end.
func (r *run) keep(t thing) {
	r.things.mu.Lock()
	defer r.things.mu.Unlock()
	r.things.made = append(r.things.made, t)
}

// forget drops a thing that is gone.
func (r *run) forget(kind string, id int64) {
	r.things.mu.Lock()
	defer r.things.mu.Unlock()
	r.things.made = slices.DeleteFunc(r.things.made, func(t thing) bool { return t.kind == kind && t.id == id })
}

// cleanUp deletes the things that are left, the newest first.
func (r *run) cleanUp(ctx context.Context, residue *conformance.Residue) {
	r.things.mu.Lock()
	made := slices.Clone(r.things.made)
	r.things.mu.Unlock()
	for _, t := range slices.Backward(made) {
		if why := r.remove(ctx, t); why != "" {
			residue.Refused = append(residue.Refused, conformance.Leftover{
				Object: t.kind, Field: "id", Identifier: strconv.FormatInt(t.id, 10), Reason: r.secrets.String(why),
			})
			continue
		}
		residue.Cleaned++
	}
}

// remove deletes one thing; a thing that is gone already is no error.
func (r *run) remove(ctx context.Context, t thing) (why string) {
	a, err := r.send(ctx, "CLEAN", request{method: "DELETE", path: t.at(), as: t.as, token: t.token, control: t.control})
	switch {
	case err != nil:
		return err.Error()
	case a.OK() && (a.Status < 300 || a.Status == http.StatusNotFound):
		r.forget(t.kind, t.id)
		return ""
	}
	return a.short()
}

// prepare makes the workspace of the run, unless a key was given, and the source of all scenarios.
func (r *run) prepare(ctx context.Context) (problem, fix string) {
	if r.key == "" {
		a, err := r.send(ctx, "", request{method: "POST", path: "/workspaces", as: asOrganization,
			body: map[string]any{"name": r.called("workspace"), "return_workspace_api_key": true}})
		switch {
		case err != nil:
			return err.Error(), ""
		case a.text("data", "api_key") == "":
			return "no workspace could be made: " + a.short(), "give a key in DESTKIT_WORKSPACE_API_KEY, or a personal access token that may make workspaces"
		}
		r.key = a.text("data", "api_key")
		r.secrets.Add(r.key, "$DESTKIT_WORKSPACE_API_KEY")
		r.keep(thing{kind: "workspaces", id: a.id("data", "id"), as: asOrganization})
	}
	if r.source = r.opts.SourceID; r.source != 0 {
		return "", ""
	}
	a, err := r.send(ctx, "", request{method: "POST", path: "/sources", body: emulatedSource(r.called("source"))})
	switch {
	case err != nil:
		return err.Error(), ""
	case a.id("data", "id") == 0:
		return "no source could be made: " + a.short(), "name an SQL source of the workspace with --source ID"
	}
	r.source = a.id("data", "id")
	r.keep(thing{kind: "sources", id: r.source})
	return "", ""
}

// emulatedSource creates the warehouse to read from where none is named: its rows are in the queries of datasets.
func emulatedSource(name string) map[string]any {
	return map[string]any{"connection": map[string]any{"name": name, "type": "snowflake", "credentials": map[string]any{
		"account": "zz-conf", "warehouse": "CONF", "database": "CONF", "user": "CONF", "password": "conf",
	}}}
}

// kinds are what a run makes, in the order in which it can be deleted; named is the field of the name.
var kinds = []struct {
	path, named string
	as          identity
}{
	{"syncs", "label", asWorkspace}, {"datasets", "name", asWorkspace}, {"destinations", "name", asWorkspace},
	{"sources", "name", asWorkspace}, {"webhooks", "name", asWorkspace},
	{"invitations", "email", asOrganization}, {"workspaces", "name", asOrganization},
}

// Clean deletes what a killed run left behind: things whose names start as in the journal, a file of Options.Journal.
func Clean(ctx context.Context, target Target, opts Options) (*conformance.Residue, error) {
	r, err := newRun(target, &opts)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.journal, err = journal.Open(opts.Journal); err != nil {
		return nil, conformance.Usage("%s", err.Error())
	}
	if r.journal.Header().Suite != conformance.SuiteService {
		return nil, conformance.Usage("the journal is that of a judged destination: give the URL of its endpoint")
	}
	pending := r.journal.Pending()
	var prefixes []string
	for _, k := range pending {
		var prefix string
		if err := json.Unmarshal(k.Identifier, &prefix); err != nil || !strings.HasPrefix(prefix, "zz-conf-"+r.journal.Header().Run+"-") {
			return nil, conformance.Usage("the journal names %s, which no run of this program has made", k.Identifier)
		}
		prefixes = append(prefixes, prefix)
	}
	for _, kind := range kinds {
		if r.tokenFor(request{as: kind.as}) == "" {
			continue
		}
		if err := r.find(ctx, kind.path, kind.named, kind.as, prefixes); err != nil {
			return nil, err
		}
	}
	residue := &conformance.Residue{Journal: opts.Journal, Refused: []conformance.Leftover{}, Unknown: []conformance.Leftover{}}
	r.cleanUp(ctx, residue)
	if len(residue.Refused) == 0 {
		return residue, r.journal.Cleaned(pending)
	}
	return residue, nil
}

// find keeps the things of a kind with such names, to be deleted in the opposite order: those that others need last.
func (r *run) find(ctx context.Context, path, named string, as identity, prefixes []string) error {
	var found []thing
	for page := 1; ; page++ {
		a, err := r.send(ctx, "CLEAN", request{method: "GET", path: fmt.Sprintf("/%s?per_page=100&order=asc&page=%d", path, page), as: as})
		switch {
		case err != nil:
			return err
		case a.Status == 404: // the service has no such list
			return nil
		case !a.OK() || a.Status >= 300:
			return fmt.Errorf("list %s: %s", path, r.secrets.String(a.short()))
		}
		for _, one := range jsonvalue.Items(a.at("data")) {
			name := jsonvalue.Text(one.Get(named))
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				id, _ := one.Get("id").Int()
				found = append(found, thing{kind: path, id: id, as: as})
			}
		}
		if last, _ := a.at("pagination", "last_page").Int(); int64(page) >= last {
			break
		}
	}
	// cleanUp takes the last first, so what comes first here goes to the end.
	r.things.mu.Lock()
	defer r.things.mu.Unlock()
	r.things.made = append(found, r.things.made...)
	return nil
}

// listing is a list of the API that only its scenario adds to.
type listing struct {
	path   string
	as     identity
	key    string   // of another workspace than that of the others
	things int      // at least
	exact  bool     // there are no more things
	order  []string // ids in the order of their making, as far as they are known
}

// sharedLists are lists that are made once in a run and only read by its scenarios.
type sharedLists struct {
	mu       sync.Mutex
	made     bool
	err      error
	scenario *scenario // who made them
	lists    []listing
}

// How many things the lists hold: objects beyond the largest page.
const thingsPerList, objectsPerList = 5, 104

// usesSharedLists takes a scenario to the lists of the run, which the first one makes.
func (sc *scenario) usesSharedLists() {
	s := &sc.sharedLists
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.made {
		s.scenario = newScenario(sc.ctx, sc.run, sc.Findings)
		s.scenario.key, s.scenario.pat, s.scenario.source = sc.key, sc.pat, sc.source
		s.err = caught(func() { s.lists = s.scenario.makeLists() })
		s.made = s.err == nil || sc.ctx.Err() == nil
	}
	sc.key, sc.pat, sc.lists = s.scenario.key, s.scenario.pat, s.lists
	stop(s.err)
}

// makeLists makes one list of each kind of spec 4.
func (sc *scenario) makeLists() []listing {
	users := sc.userList()
	sc.ownSource()
	objects := sc.objectList()
	destinations := listOf("/destinations", thingsPerList, func() int64 { return sc.connect(connecting{}).id })
	rows := sc.newDataset(numbered(1))
	syncs := listOf("/syncs", thingsPerList, func() int64 { return sc.newSync(rows, sc.syncBody(rows, rpc.OperationUpsert)).id })
	runs := listOf(sc.syncPath()+"/sync_runs", thingsPerList, func() int64 { return sc.runs(sc.latest()).id("data", "id") })
	return []listing{destinations, objects, syncs, runs, {path: "/source_types", things: 1}, users}
}

// listOf creates the things of a list.
func listOf(path string, things int, create func() int64) listing {
	l := listing{path: path, things: things, exact: true}
	for range things {
		l.order = append(l.order, strconv.FormatInt(create(), 10))
	}
	return l
}

// userList uses an organization with several users, where one can be created, and else a separate workspace.
func (sc *scenario) userList() listing {
	if sc.target.ControlURL == "" {
		sc.ownWorkspace()
		return listing{path: "/users", as: asOrganization, things: 1}
	}
	sc.ownOrganization()
	users := listOf("/users", thingsPerList-1, func() int64 { return sc.joined().id("user", "id") })
	users.as, users.things, users.order = asOrganization, thingsPerList, append([]string{sc.words["user"]}, users.order...)
	return users
}

// objectList creates a destination with many objects, which a list of its workspace would all show.
func (sc *scenario) objectList() listing {
	_, key := sc.newWorkspace(nil)
	usual := sc.key
	sc.key = key
	defer func() { sc.key = usual }()
	c := connecting{sim: SimulatorConfig{Fields: map[string][]rpc.Field{}}}
	for i := range objectsPerList {
		name := fmt.Sprintf("thing%03d", i)
		c.sim.Objects = append(c.sim.Objects, rpc.Object{APIName: name, Label: name})
		c.sim.Fields[name] = thingFields()[:1]
	}
	return listing{path: below("destinations", sc.connect(c).id, "/objects"), key: key, things: objectsPerList, exact: true}
}

// clear ends the scenario of the lists: the run deletes what it created.
func (s *sharedLists) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scenario != nil {
		_ = s.scenario.end() // the clean-up of the run reports what stays
	}
}
