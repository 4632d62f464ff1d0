package restload

import (
	"net/http"
	"strconv"

	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Call is one call of the API.
type Call struct {
	Kind   Kind
	Method string
	Path   string // behind the base, with its query
	// Again: the client has sent the same request before, and waits in between.
	Again bool
}

// Scenario is what one client does: one call after the other.
type Scenario interface {
	// Next is the next call; ok is false where there is none. settle: only calls that
	// end what was started.
	Next(settle bool) (c Call, ok bool)
	// Took checks the body of a reply with status 200; the error is a *Failure.
	Took(c Call, body []byte) error
	// Lost gets a call without a good reply.
	Lost(c Call)
	// Open reports whether something was started that has not ended.
	Open() bool
}

// Client is what the client with a number does, on a clock in nanoseconds.
func (w *Work) Client(number int, now func() int64) Scenario {
	switch w.Scenario {
	case ScenarioList:
		return &listing{work: w, at: number % max(len(w.Walks), 1)}
	case ScenarioPoll:
		return &polling{work: w, at: number % max(len(w.Syncs), 1), ended: map[int64]endedRun{}}
	}
	return &triggering{work: w, now: now, at: number % max(len(w.Syncs), 1)}
}

// PagePath is the path of a page of a list.
func PagePath(path string, page int64, perPage int, order string) string {
	return path + "?page=" + strconv.FormatInt(page, 10) + "&per_page=" + strconv.Itoa(perPage) + "&order=" + order
}

// listing walks lists from their first page to their last. The oldest come first, so
// that new items come at the end.
type listing struct {
	work *Work
	at   int // the list
	page int64
	walk walk
}

func (l *listing) Next(settle bool) (Call, bool) {
	if settle {
		return Call{}, false
	}
	if l.page == 0 {
		l.page, l.walk = 1, walk{seen: map[int64]bool{}}
	}
	list := l.work.Walks[l.at]
	return Call{Kind: list.kind, Method: http.MethodGet, Path: PagePath(list.Path, l.page, l.work.PerPage, "asc")}, true
}

func (l *listing) Took(_ Call, body []byte) error {
	p, err := DecodePage(body, l.page, l.work.PerPage)
	if err == nil {
		err = l.walk.add(p)
	}
	if err != nil {
		return err
	}
	l.work.Found.Items.Add(int64(len(p.Items)))
	if l.page = p.Next; p.Next == 0 {
		l.work.Found.Walks.Add(1)
		l.Lost(Call{}) // on to the next list
	}
	return nil
}

func (l *listing) Lost(Call) { l.page, l.at = 0, (l.at+1)%len(l.work.Walks) }

func (l *listing) Open() bool { return false }

// polling fetches syncs and their latest runs, as monitors do.
type polling struct {
	work  *Work
	at    int   // the sync
	step  int   // 0 the sync, 1 its latest run in the list, 2 that run by its id
	run   int64 // that the list showed last
	ended map[int64]endedRun
}

// endedRun is how a run has ended, by the sync.
type endedRun struct {
	run    int64
	status string
}

func (p *polling) Next(settle bool) (Call, bool) {
	if settle {
		return Call{}, false
	}
	path := "/syncs/" + strconv.FormatInt(p.work.Syncs[p.at], 10)
	switch p.step {
	case 1:
		path = PagePath(path+"/sync_runs", 1, 1, "desc")
	case 2:
		path = "/sync_runs/" + strconv.FormatInt(p.run, 10)
	}
	return Call{Kind: Kind(p.step), Method: http.MethodGet, Path: path}, true
}

func (p *polling) Took(c Call, body []byte) error {
	id := p.work.Syncs[p.at]
	switch p.step {
	case 0:
		if err := CheckSync(body, id); err != nil {
			return err
		}
		p.step = 1
	case 1:
		page, err := DecodePage(body, 1, 1)
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			p.Lost(c) // it has had no run
			return nil
		}
		run := page.Items[0]
		if err := run.check(-1, id); err != nil {
			return err
		}
		if err := p.same(run); err != nil {
			return err
		}
		p.step, p.run = 2, run.ID
	default:
		run, err := decodeRun(body, p.run, id)
		if err != nil {
			return err
		}
		if err := p.same(run); err != nil {
			return err
		}
		p.Lost(c) // on to the next sync
	}
	return nil
}

// same refuses a run that has ended and is now otherwise.
func (p *polling) same(run Item) error {
	id := p.work.Syncs[p.at]
	before := p.ended[id]
	if before.status != "" && before.run == run.ID && before.status != run.status {
		return wire.Newf(wire.KindRunState, "a run that had ended as %s is %s later", before.status, run.status)
	}
	if run.over() {
		p.ended[id] = endedRun{run.ID, run.status}
	}
	return nil
}

func (p *polling) Lost(Call) { p.step, p.at = 0, (p.at+1)%len(p.work.Syncs) }

func (p *polling) Open() bool { return false }

// triggering starts a run and polls it until it has ended, over and over.
type triggering struct {
	work    *Work
	now     func() int64
	at      int   // the sync
	run     int64 // that is polled, while going
	going   bool
	started int64 // when its id was given
}

func (t *triggering) Next(settle bool) (Call, bool) {
	if t.going {
		return Call{Kind: 1, Method: http.MethodGet, Path: "/sync_runs/" + strconv.FormatInt(t.run, 10), Again: true}, true
	}
	if settle {
		return Call{}, false
	}
	path := "/syncs/" + strconv.FormatInt(t.work.Syncs[t.at], 10) + "/trigger"
	if t.work.FullSync {
		path += "?force_full_sync=true"
	}
	return Call{Method: http.MethodPost, Path: path}, true
}

func (t *triggering) Took(c Call, body []byte) error {
	if c.Method == http.MethodPost {
		run, err := decodeTriggered(body)
		if err != nil {
			return err
		}
		if !t.work.Found.begin(run) {
			return wire.Newf(wire.KindItem, "the trigger answers with the id of a run that was started before")
		}
		t.run, t.going, t.started = run, true, t.now()
		return nil
	}
	run, err := decodeRun(body, t.run, t.work.Syncs[t.at])
	if err != nil {
		return err
	}
	took := t.now() - t.started
	switch {
	case run.over():
		t.work.Found.finish(run, took)
		t.turn()
	case took > int64(t.work.RunTimeout):
		return wire.Newf(wire.KindRunUnfinished, "a run has not ended after %s: it is %s", t.work.RunTimeout, run.status)
	}
	return nil
}

// turn goes on to the next sync.
func (t *triggering) turn() { t.going, t.at = false, (t.at+1)%len(t.work.Syncs) }

// lost gives a run up whose time is over.
func (t *triggering) Lost(Call) {
	switch {
	case !t.going:
		t.turn()
	case t.now()-t.started > int64(t.work.RunTimeout):
		t.work.Found.giveUp()
		t.turn()
	}
}

func (t *triggering) Open() bool { return t.going }
