package loadgen

import (
	"net/http"
	"time"

	"github.com/destkit/destkit/loadgen/internal/restload"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// apiUser is one client of the API: a connection with its scenario.
type apiUser struct {
	w        *worker
	scenario restload.Scenario
	base     string // path of the API at the process that it is connected to
	buf      []byte
}

func newAPIUser(w *worker, work *restload.Work) *apiUser {
	return &apiUser{w: w, base: w.end.URL.EscapedPath(), scenario: work.Client(w.number, w.e.clock.Now)}
}

// request makes the bytes of a call.
func (u *apiUser) request(c restload.Call) wire.Request {
	target := u.base + c.Path
	u.buf = append(append(append(append(u.buf[:0], c.Method...), ' '), target...), " HTTP/1.1\r\n"...)
	u.buf = append(u.buf, u.w.end.Lines...)
	if c.Method == http.MethodPost {
		u.buf = append(u.buf, "Content-Length: 0\r\n"...)
	}
	u.buf = append(u.buf, "\r\n"...)
	return wire.Request{Wire: u.buf, Method: c.Method, Target: target}
}

// ask sends the next call of the scenario, checks its reply and records it; false ends
// the connection's work.
func (u *apiUser) ask(ph phase, intended int64, waited bool) bool {
	c, ok := u.scenario.Next(ph.settle)
	if !ok || c.Again && !ph.open && !u.wait(ph) {
		return false
	}
	w := u.w
	s := w.due(intended, waited)
	s.records, s.call = 1, c.Kind
	rep, err := w.exchange(u.request(c), s.start)
	if err == nil {
		err = restload.CheckStatus(rep)
	}
	if err == nil {
		err = u.scenario.Took(c, rep.Body)
	}
	if !w.finish(&s, rep, err) {
		return false
	}
	if err != nil {
		w.fail(err, Example{Identifier: c.Method + " " + w.end.Redact(c.Path), At: float64(s.end) / 1e9})
		u.scenario.Lost(c)
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
