package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/restload"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// discoverService asks once for everything that the load is about: a wrong key or sync
// shows before it.
func (s *session) discoverService(ctx context.Context) error {
	work := s.e.service
	if work.Scenario == restload.ScenarioList {
		work.Plan()
		for _, list := range work.Walks {
			if _, err := s.firstPage(ctx, list.Path, 1, work.PerPage); err != nil {
				return err
			}
		}
		return nil
	}
	for _, id := range work.Syncs {
		c := restload.Call{Method: http.MethodGet, Path: "/syncs/" + strconv.FormatInt(id, 10)}
		if err := s.askOnce(ctx, c, func(body []byte) error { return restload.CheckSync(body, id) }); err != nil {
			return err
		}
	}
	for page := int64(1); len(s.o.Service.Syncs) == 0; page++ {
		p, err := s.firstPage(ctx, "/syncs", page, restload.MostPerPage)
		if err != nil {
			return err
		}
		for _, item := range p.Items {
			work.Syncs = append(work.Syncs, item.ID)
		}
		if p.Next == 0 || len(work.Syncs) >= mostPolled {
			break
		}
	}
	if len(work.Syncs) == 0 {
		return wire.Usagef("the workspace has no sync that could be polled")
	}
	if work.Syncs = work.Syncs[:min(len(work.Syncs), mostPolled)]; len(work.Syncs) == mostPolled {
		s.note("the workspace has %d syncs or more: these are polled", mostPolled)
	}
	return nil
}

// firstPage asks for a page of a list before the load.
func (s *session) firstPage(ctx context.Context, path string, page int64, perPage int) (p *restload.ListPage, err error) {
	c := restload.Call{Method: http.MethodGet, Path: restload.PagePath(path, page, perPage, "asc")}
	err = s.askOnce(ctx, c, func(body []byte) error {
		p, err = restload.DecodePage(body, page, perPage)
		return err
	})
	return p, err
}

// askOnce sends one request before the load. What is wrong with the reply is the load's
// to count, unless nothing can be sent at all.
func (s *session) askOnce(ctx context.Context, c restload.Call, check func(body []byte) error) error {
	w := s.e.newWorker(firstSender)
	defer w.line.Close()
	stop := context.AfterFunc(ctx, w.line.Interrupt)
	defer stop()
	timer := time.AfterFunc(s.e.end.Transport.PlanningTimeout, w.line.Interrupt)
	defer timer.Stop()
	rep, err := w.exchange(w.user.request(c), s.e.clock.Now())
	if err == nil {
		err = restload.CheckStatus(rep)
	}
	if err == nil {
		err = check(rep.Body)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("interrupted before the load")
	}
	what := s.e.end.Redact(fmt.Sprintf("%s %s: %s", c.Method, c.Path, wire.MessageOf(err)))
	switch rep.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s; --token-env names the variable with the API key of the workspace", what)
	case http.StatusNotFound:
		return wire.Usagef("%s; is the URL that of a service, and the id one of this workspace?", what)
	}
	return errors.New(what)
}

// followRuns polls the runs that are still going after a load, so that each of them has
// ended or is called unfinished. Nothing of it is measured; its errors count.
func (s *session) followRuns(ctx context.Context, m *measure) {
	if s.e.service == nil || s.e.service.Found.Open.Load() == 0 || ctx.Err() != nil {
		return
	}
	open := 0
	for _, w := range s.e.workers {
		if w.user.scenario.Open() {
			open++
		}
	}
	if s.o.Note != nil {
		s.o.Note(fmt.Sprintf("%s still going: polled to the end, for %s at most", quantity.Count(open, "run"), s.o.Service.RunTimeout))
	}
	of := s.e.pacer // of the load: what it has asked for is said later
	defer func() { s.e.pacer = of }()
	ph := phase{connections: s.o.Connections, settle: true, duration: s.o.Service.RunTimeout + time.Second}
	ph.watch = s.watcher("settle", 0, phase{})
	after := s.e.run(ctx, ph)
	for key, t := range after.tallies {
		if have := m.tallies[key]; have != nil {
			have.Count += t.Count
		} else {
			m.tallies[key] = t
		}
	}
}
