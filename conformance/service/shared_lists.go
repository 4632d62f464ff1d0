package service

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
)

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
