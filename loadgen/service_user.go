package loadgen

import (
	"net/http"
	"strconv"
	"time"

	"github.com/destkit/destkit/loadgen/internal/failure"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// apiCall is one call of the API.
type apiCall struct {
	kind   callKind
	method string
	path   string // behind the base, with its query
	// again: the client has asked for the same before, and waits in between.
	again bool
}

// scenario is what one client does: one call after the other.
type scenario interface {
	// next is what to ask; ok is false where there is nothing. settle: only what ends
	// what has begun.
	next(settle bool) (c apiCall, ok bool)
	// took checks the body of a reply with status 200; the error is a *Failure.
	took(c apiCall, body []byte) error
	// lost is told of a call without a good reply.
	lost(c apiCall)
	// open reports whether something has begun that has not ended.
	open() bool
}

// apiUser is one client of the API: a connection with its scenario.
type apiUser struct {
	w        *worker
	scenario scenario
	base     string // path of the API at the process that it is connected to
	buf      []byte
}

func newAPIUser(w *worker, work *serviceWork) *apiUser {
	u := &apiUser{w: w, base: w.end.URL.EscapedPath()}
	switch work.Scenario {
	case ScenarioList:
		u.scenario = &listing{work: work, at: w.number % max(len(work.walks), 1)}
	case ScenarioPoll:
		u.scenario = &polling{work: work, at: w.number % max(len(work.Syncs), 1), ended: map[int64]endedRun{}}
	default:
		u.scenario = &triggering{work: work, now: w.e.clock.Now, at: w.number % max(len(work.Syncs), 1)}
	}
	return u
}

// request makes the bytes of a call.
func (u *apiUser) request(c apiCall) wire.Request {
	target := u.base + c.path
	u.buf = append(append(append(append(u.buf[:0], c.method...), ' '), target...), " HTTP/1.1\r\n"...)
	u.buf = append(u.buf, u.w.end.Lines...)
	if c.method == http.MethodPost {
		u.buf = append(u.buf, "Content-Length: 0\r\n"...)
	}
	u.buf = append(u.buf, "\r\n"...)
	return wire.Request{Wire: u.buf, Method: c.method, Target: target}
}

// ask sends the next call of the scenario, checks its reply and records it; false ends
// the connection's work.
func (u *apiUser) ask(ph phase, intended int64, waited bool) bool {
	c, ok := u.scenario.next(ph.settle)
	if !ok || c.again && !ph.open && !u.wait(ph) {
		return false
	}
	w := u.w
	s := w.due(intended, waited)
	s.records, s.call = 1, c.kind
	rep, err := w.exchange(u.request(c), s.start)
	if err == nil {
		err = checkStatus(rep)
	}
	if err == nil {
		err = u.scenario.took(c, rep.Body)
	}
	if !w.finish(&s, rep, err) {
		return false
	}
	if err != nil {
		w.fail(err, Example{Identifier: c.method + " " + w.end.Redact(c.path), At: float64(s.end) / 1e9})
		u.scenario.lost(c)
	} else {
		s.good = 1
	}
	w.keep(s)
	return w.pause(err)
}

// wait lets the interval between two questions pass; false: the phase has ended.
func (u *apiUser) wait(ph phase) bool {
	d := u.w.e.service.PollInterval
	if ph.settle {
		d = min(d, settleInterval)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-u.w.e.quit:
		return false
	}
}

// pagePath is the path of a page of a list.
func pagePath(path string, page int64, perPage int, order string) string {
	return path + "?page=" + strconv.FormatInt(page, 10) + "&per_page=" + strconv.Itoa(perPage) + "&order=" + order
}

// listing walks lists from their first page to their last. The oldest come first, so
// that what is created meanwhile comes at the end.
type listing struct {
	work *serviceWork
	at   int // the list
	page int64
	walk walk
}

func (l *listing) next(settle bool) (apiCall, bool) {
	if settle {
		return apiCall{}, false
	}
	if l.page == 0 {
		l.page, l.walk = 1, walk{seen: map[int64]bool{}}
	}
	list := l.work.walks[l.at]
	return apiCall{kind: list.kind, method: http.MethodGet, path: pagePath(list.path, l.page, l.work.PerPage, "asc")}, true
}

func (l *listing) took(_ apiCall, body []byte) error {
	p, err := decodePage(body, l.page, l.work.PerPage)
	if err == nil {
		err = l.walk.add(p)
	}
	if err != nil {
		return err
	}
	l.work.found.items.Add(int64(len(p.items)))
	if l.page = p.next; p.next == 0 {
		l.work.found.walks.Add(1)
		l.lost(apiCall{}) // on to the next list
	}
	return nil
}

func (l *listing) lost(apiCall) { l.page, l.at = 0, (l.at+1)%len(l.work.walks) }
func (l *listing) open() bool   { return false }

// polling asks for syncs and their latest runs, as monitors do.
type polling struct {
	work  *serviceWork
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

func (p *polling) next(settle bool) (apiCall, bool) {
	if settle {
		return apiCall{}, false
	}
	path := "/syncs/" + strconv.FormatInt(p.work.Syncs[p.at], 10)
	switch p.step {
	case 1:
		path = pagePath(path+"/sync_runs", 1, 1, "desc")
	case 2:
		path = "/sync_runs/" + strconv.FormatInt(p.run, 10)
	}
	return apiCall{kind: callKind(p.step), method: http.MethodGet, path: path}, true
}

func (p *polling) took(c apiCall, body []byte) error {
	id := p.work.Syncs[p.at]
	switch p.step {
	case 0:
		if err := checkSync(body, id); err != nil {
			return err
		}
		p.step = 1
	case 1:
		page, err := decodePage(body, 1, 1)
		if err != nil {
			return err
		}
		if len(page.items) == 0 {
			p.lost(c) // it has had no run
			return nil
		}
		run := page.items[0]
		if err := run.check(-1, id); err != nil {
			return err
		}
		if err := p.same(run); err != nil {
			return err
		}
		p.step, p.run = 2, run.id
	default:
		run, err := decodeRun(body, p.run, id)
		if err != nil {
			return err
		}
		if err := p.same(run); err != nil {
			return err
		}
		p.lost(c) // on to the next sync
	}
	return nil
}

// same refuses a run that has ended and is now otherwise.
func (p *polling) same(run apiItem) error {
	id := p.work.Syncs[p.at]
	before := p.ended[id]
	if before.status != "" && before.run == run.id && before.status != run.status {
		return failure.Newf(failure.KindRunState, "a run that had ended as %s is %s later", before.status, run.status)
	}
	if run.over() {
		p.ended[id] = endedRun{run.id, run.status}
	}
	return nil
}

func (p *polling) lost(apiCall) { p.step, p.at = 0, (p.at+1)%len(p.work.Syncs) }
func (p *polling) open() bool   { return false }

// triggering starts a run and polls it until it has ended, over and over.
type triggering struct {
	work    *serviceWork
	now     func() int64
	at      int   // the sync
	run     int64 // that is polled, while going
	going   bool
	started int64 // when its id was given
}

func (t *triggering) next(settle bool) (apiCall, bool) {
	if t.going {
		return apiCall{kind: 1, method: http.MethodGet, path: "/sync_runs/" + strconv.FormatInt(t.run, 10), again: true}, true
	}
	if settle {
		return apiCall{}, false
	}
	path := "/syncs/" + strconv.FormatInt(t.work.Syncs[t.at], 10) + "/trigger"
	if t.work.FullSync {
		path += "?force_full_sync=true"
	}
	return apiCall{method: http.MethodPost, path: path}, true
}

func (t *triggering) took(c apiCall, body []byte) error {
	if c.method == http.MethodPost {
		run, err := decodeTriggered(body)
		if err != nil {
			return err
		}
		if !t.work.found.begin(run) {
			return failure.Newf(failure.KindItem, "the trigger answers with the id of a run that was started before")
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
		t.work.found.finish(run, took)
		t.turn()
	case took > int64(t.work.RunTimeout):
		return failure.Newf(failure.KindRunUnfinished, "a run has not ended after %s: it is %s", t.work.RunTimeout, run.status)
	}
	return nil
}

// turn goes on to the next sync.
func (t *triggering) turn() { t.going, t.at = false, (t.at+1)%len(t.work.Syncs) }

// lost gives a run up whose time is over.
func (t *triggering) lost(apiCall) {
	switch {
	case !t.going:
		t.turn()
	case t.now()-t.started > int64(t.work.RunTimeout):
		t.work.found.giveUp()
		t.turn()
	}
}

func (t *triggering) open() bool { return t.going }
