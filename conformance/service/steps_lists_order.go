package service

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// listing is a list of the API with things that no one else adds to.
type listing struct {
	path string
	as   identity
	key  string // of another workspace than that of the others
	// things is how many there are at least; exact when it is known.
	things int
	exact  bool
	// order are the ids in the order of their making, as far as they are known.
	order []string
}

// sharedLists are lists that are made once in a run and only read by its scenarios.
type sharedLists struct {
	mu       sync.Mutex
	made     bool
	err      error
	scenario *scenario // who made them
	lists    []listing
}

// How many things stand in the lists: objects beyond the largest page.
const (
	thingsPerList  = 5
	objectsPerList = 104
)

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
	objects, destinations := sc.objectList(), sc.destinationList()
	syncs, runs := sc.syncList()
	return []listing{destinations, objects, syncs, runs, {path: "/source_types", things: 1}, users}
}

// userList goes into an organization with several users, where that can be
// made, and else into a workspace of its own.
func (sc *scenario) userList() listing {
	users := listing{path: "/users", as: asOrganization, things: 1}
	if sc.target.ControlURL == "" {
		sc.ownWorkspace()
		return users
	}
	sc.ownOrganization()
	users.order = []string{sc.words["user"]}
	for range thingsPerList - 1 {
		users.order = append(users.order, strconv.FormatInt(sc.joined().id("user", "id"), 10))
	}
	users.things, users.exact = thingsPerList, true
	return users
}

// joined lets a new person into the organization and gives the answer of the
// claim, which only the control API can do for a person.
func (sc *scenario) joined() *answer {
	email := sc.email("member")
	a := sc.must(request{method: "POST", path: "/invitations", as: asOrganization, body: map[string]any{"email": email, "role": "member"}})
	sc.words["member"] = email
	return sc.control("POST", below("invitations", a.id("data", "id"), "/claim"), map[string]any{})
}

// destinationList makes connections with one object each.
func (sc *scenario) destinationList() listing {
	l := listing{path: "/destinations", things: thingsPerList, exact: true}
	for range thingsPerList {
		l.order = append(l.order, strconv.FormatInt(sc.connect(connecting{}).id, 10))
	}
	return l
}

// objectList makes a destination with many objects, in a workspace of its
// own: a list of destinations shows all their objects.
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

// syncList makes syncs to the latest destination, and runs of the last one.
func (sc *scenario) syncList() (syncs, runs listing) {
	rows := sc.newDataset(numbered(1, 1))
	syncs = listing{path: "/syncs", things: thingsPerList, exact: true}
	for range thingsPerList {
		syncs.order = append(syncs.order, strconv.FormatInt(sc.newSync(sc.dest, rows, rpc.OperationUpsert, nil).id, 10))
	}
	runs = listing{path: below("syncs", sc.latest().id, "/sync_runs"), things: thingsPerList, exact: true}
	for range thingsPerList {
		runs.order = append(runs.order, strconv.FormatInt(sc.runs(sc.latest()).id("data", "id"), 10))
	}
	return syncs, runs
}

// clear ends the scenario of the lists: what it made is deleted by the run.
func (s *sharedLists) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scenario != nil {
		_ = s.scenario.end() // the clean-up of the run reports what stays
	}
}

// reading is one page of a list as it was answered.
type reading struct {
	*answer
	list listing
	page int // as asked for; 1 when nothing was
	size int // likewise, within the limits
}

// items are the records of the page.
func (r reading) items() []*wire.Node { return jsonvalue.Items(r.at("data")) }

// number is a member of pagination; ok is false for anything but an integer.
func (r reading) number(member string) (int, bool) {
	n, ok := r.at("pagination", member).Int()
	return int(n), ok
}

// identity of a record: kinds without an id have a name of their own.
func identityOf(record *wire.Node) string {
	for _, name := range []string{"id", "full_name", "service_name"} {
		if n := record.Get(name); n != nil {
			if n.Is(wire.String) {
				return n.Text
			}
			return string(n.Raw)
		}
	}
	return ""
}

// sequence is all that was read of a list, in the order of the reading.
type sequence struct {
	path    string
	records []*wire.Node
	last    reading
}

func sequences(all []reading) []*sequence {
	var out []*sequence
	for _, r := range all {
		i := slices.IndexFunc(out, func(s *sequence) bool { return s.path == r.list.path })
		if i < 0 {
			i, out = len(out), append(out, &sequence{path: r.list.path})
		}
		out[i].records, out[i].last = append(out[i].records, r.items()...), r
	}
	return out
}

func identities(records []*wire.Node) []string { return lists.Of(records, identityOf) }

func (sc *scenario) eachOnce() error {
	all := sc.lastReading()
	for _, s := range sequences(all) {
		ids := identities(s.records)
		slices.Sort(ids)
		if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
			sc.broken("each record of "+s.path+" stands on one page", quantity.Count(len(ids)-n, "record")+" on several", s.last.answer)
		}
		if total := s.last.total(); len(ids) < total {
			sc.broken(fmt.Sprintf("the pages of %s hold all %s", s.path, quantity.Count(total, "record")), strconv.Itoa(len(ids)), s.last.answer)
		}
	}
	return sc.heldBy(len(all), "page")
}

// inOrder looks at created_at where records have it, and at what is known of
// the order in which they were made.
func (sc *scenario) inOrder(first string) error {
	all := sc.lastReading()
	decided := 0
	for _, s := range sequences(all) {
		times, ids, want := createdAt(s.records), identities(s.records), slices.Clone(s.last.list.order)
		if first == "newest" {
			slices.Reverse(want)
			slices.Reverse(times)
		}
		if len(want) > 1 {
			decided++
			known := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(want, id) })
			if !slices.Equal(known, want) {
				sc.broken(fmt.Sprintf("%s in the order %v", s.path, want), fmt.Sprint(known), s.last.answer)
			}
		}
		if !slices.IsSortedFunc(times, time.Time.Compare) {
			sc.broken(s.path+" in the order of created_at, the "+first+" first", s.last.short(), s.last.answer)
		}
	}
	if decided == 0 {
		undecided("no list has two records whose order is known")
	}
	return sc.HeldBy("%s with a known order", quantity.Count(decided, "list"))
}

// createdAt are the times of creation as far as records tell them.
func createdAt(records []*wire.Node) []time.Time {
	var out []time.Time
	for _, r := range records {
		if t, err := time.Parse(time.RFC3339Nano, jsonvalue.Text(r.Get("created_at"))); err == nil {
			out = append(out, t)
		}
	}
	return out
}

// sameRecords compares the last two readings of each list.
func (sc *scenario) sameRecords() error {
	if len(sc.readings) < 2 {
		return engine.Outcome(conformance.HarnessError, "", "the lists were not read twice")
	}
	before, after := sequences(sc.readings[len(sc.readings)-2]), sequences(sc.lastReading())
	for i, s := range after {
		if want, got := identities(before[i].records), identities(s.records); !slices.Equal(want, got) {
			sc.broken(fmt.Sprintf("%s shows %v", s.path, want), fmt.Sprint(got), s.last.answer)
		}
	}
	return sc.heldBy(len(after), "list")
}

// nextLeads follows the legacy address of the next page (spec 2.1).
func (sc *scenario) nextLeads(path string) error {
	now := sc.read(listing{path: path, as: asOrganization}, "per_page=1")
	ids := identities(now.items())
	for range maxPages {
		n := now.at("next")
		_, more := now.number("next_page")
		rest, found := strings.CutPrefix(jsonvalue.Text(n), sc.target.BaseURL)
		switch {
		case !more && n.Is(wire.Null):
			if total, _ := now.number("total_records"); total != len(ids) {
				sc.broken(fmt.Sprintf("next leads over all %s", quantity.Count(total, "record")), fmt.Sprintf("%d were met", len(ids)), now.answer)
			}
			if len(ids) < 2 {
				return engine.Inconclusive("--control-url", "the list has one page only; with the control API it gets more")
			}
			return sc.heldBy(len(ids), "page")
		case !more || !found:
			sc.broken("next begins with "+sc.target.BaseURL+", and is null on the last page alone",
				"next is "+jsonvalue.Raw(n)+", next_page is "+jsonvalue.Raw(now.at("pagination", "next_page")), now.answer)
			return sc.Held()
		}
		now.answer = sc.api(request{method: http.MethodGet, path: rest, as: asOrganization})
		ids = append(ids, identities(now.items())...)
	}
	sc.broken("next ends with null", fmt.Sprintf("it went on for %d pages", maxPages), now.answer)
	return sc.Held()
}
