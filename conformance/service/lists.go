package service

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// listing is a list of the API with things that nobody else adds to.
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

// shelf are lists that are made once in a run and only read by its scenarios.
type shelf struct {
	mu    sync.Mutex
	made  bool
	err   error
	play  *play // who made them
	lists []listing
}

// How many things stand in the lists: objects beyond the largest page.
const (
	shelfThings  = 5
	shelfObjects = 104
)

// shelved takes a scenario to the lists of the run, which the first one makes.
func (p *play) shelved() error {
	s := &p.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.made {
		s.play = &play{run: p.run, Scene: p.Scene, ctx: p.ctx, key: p.key, pat: p.pat, source: p.source}
		s.lists, s.err = s.play.fillShelf()
		s.made = s.err == nil || p.ctx.Err() == nil
	}
	p.key, p.pat, p.lists = s.play.key, s.play.pat, s.lists
	return s.err
}

// fillShelf makes one list of each kind of spec 4.
func (p *play) fillShelf() ([]listing, error) {
	users, err := p.shelfUsers()
	if err != nil {
		return nil, err
	}
	if err := p.ownSource(); err != nil {
		return nil, err
	}
	objects, err := p.shelfObjectList()
	if err != nil {
		return nil, err
	}
	destinations, err := p.shelfDestinations()
	if err != nil {
		return nil, err
	}
	syncs, runs, err := p.shelfSyncs()
	if err != nil {
		return nil, err
	}
	return []listing{destinations, objects, syncs, runs, {path: "/source_types", things: 1}, users}, nil
}

// shelfUsers goes into an organization with several users, where that can be
// made, and else into a workspace of its own.
func (p *play) shelfUsers() (listing, error) {
	users := listing{path: "/users", as: asOrganization, things: 1}
	if p.target.ControlURL == "" {
		return users, p.ownWorkspace()
	}
	if err := p.ownOrganization(); err != nil {
		return users, err
	}
	users.order = []string{strconv.FormatInt(p.named.user.value, 10)}
	for range shelfThings - 1 {
		a, err := p.joined("member", nil)
		if err != nil {
			return users, err
		}
		users.order = append(users.order, strconv.FormatInt(a.id("user", "id"), 10))
	}
	users.things, users.exact = shelfThings, true
	return users, nil
}

// joined lets a new person into the organization and gives the answer of the
// claim, which only the control API can do for a person.
func (p *play) joined(role string, workspaces []map[string]any) (*answer, error) {
	email := p.email("member")
	body := map[string]any{"email": email, "role": role}
	if workspaces != nil {
		body["workspaces"] = workspaces
	}
	a, err := p.must(request{method: "POST", path: "/invitations", as: asOrganization, body: body})
	if err != nil {
		return nil, err
	}
	p.named.member = some(email)
	return p.control("POST", below("invitations", a.id("data", "id"), "/claim"), map[string]any{})
}

// shelfDestinations makes connections with one object each.
func (p *play) shelfDestinations() (listing, error) {
	l := listing{path: "/destinations", things: shelfThings, exact: true}
	for range shelfThings {
		d, err := p.connect(connecting{})
		if err != nil {
			return l, err
		}
		l.order = append(l.order, strconv.FormatInt(d.id, 10))
	}
	return l, nil
}

// shelfObjectList makes a destination with many objects, in a workspace of its
// own: a list of destinations shows all their objects.
func (p *play) shelfObjectList() (listing, error) {
	_, key, err := p.newWorkspace(nil)
	if err != nil {
		return listing{}, err
	}
	usual := p.key
	p.key = key
	defer func() { p.key = usual }()
	c := connecting{sim: SimulatorConfig{Fields: map[string][]rpc.Field{}}}
	for i := range shelfObjects {
		name := fmt.Sprintf("thing%03d", i)
		c.sim.Objects = append(c.sim.Objects, rpc.Object{APIName: name, Label: name})
		c.sim.Fields[name] = thingFields()[:1]
	}
	d, err := p.connect(c)
	if err != nil {
		return listing{}, err
	}
	return listing{path: below("destinations", d.id, "/objects"), key: key, things: shelfObjects, exact: true}, nil
}

// shelfSyncs makes syncs to the latest destination, and runs of the last one.
func (p *play) shelfSyncs() (syncs, runs listing, err error) {
	rows, err := p.newDataset(numbered(1, 1))
	if err != nil {
		return syncs, runs, err
	}
	syncs = listing{path: "/syncs", things: shelfThings, exact: true}
	for range shelfThings {
		s, err := p.newSync(p.dest, rows, rpc.OperationUpsert, nil)
		if err != nil {
			return syncs, runs, err
		}
		syncs.order = append(syncs.order, strconv.FormatInt(s.id, 10))
	}
	runs = listing{path: below("syncs", p.latest().id, "/sync_runs"), things: shelfThings, exact: true}
	for range shelfThings {
		if _, err := p.runs(p.latest()); err != nil {
			return syncs, runs, err
		}
		ran := p.latest().runs
		runs.order = append(runs.order, strconv.FormatInt(ran[len(ran)-1].id("data", "id"), 10))
	}
	return syncs, runs, nil
}

// put the shelf away: what it made is deleted by the run.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.play != nil {
		_ = s.play.end() // what stays is told by the clean-up of the run
	}
}

// reading is one page of a list as it was answered.
type reading struct {
	*answer
	list  listing
	page  int // as asked for; 1 when nothing was
	size  int // likewise, within the limits
	asked string
}

// items are the records of the page.
func (r reading) items() []*wire.Node {
	if n := r.at("data"); n != nil {
		return n.Items
	}
	return nil
}

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
