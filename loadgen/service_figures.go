package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/restload"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// ServiceFigures are what a load on the API of a service has measured in addition to
// those of every load.
type ServiceFigures struct {
	// Calls by their method and path.
	Calls []CallFigures `json:"calls"`
	// Lists that were walked to their end, and the items on all pages.
	Lists int64 `json:"lists_walked"`
	Items int64 `json:"items_listed"`
	// Runs that were started; nil: the scenario starts none.
	Runs *RunFigures `json:"runs,omitempty"`
}

// CallFigures are those of one kind of call. Times are of the answered ones.
type CallFigures struct {
	Call              string  `json:"call"` // such as GET /syncs/{id}
	Requests          int64   `json:"requests"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	FailedRequests    int64   `json:"requests_failed"`
	Latency           Times   `json:"latency"`
	Histogram         string  `json:"histogram"` // as those of Histograms
}

// RunFigures are what became of the runs that a load has started. Every one has ended,
// counts as unfinished, or was still going when the load was interrupted.
type RunFigures struct {
	Started    int64 `json:"started"`
	Completed  int64 `json:"completed"`
	Failed     int64 `json:"failed"`
	Skipped    int64 `json:"skipped"` // an earlier run of the sync still worked
	Canceled   int64 `json:"canceled"`
	Unfinished int64 `json:"unfinished"`
	Going      int64 `json:"going"`
	// Failure is the message of one that failed.
	Failure string `json:"failure,omitempty"`
	// TimeToEnd is the time from the reply to the trigger until a poll has shown the end,
	// of runs that completed; its precision is the interval of polls.
	TimeToEnd Times  `json:"time_to_end"`
	Histogram string `json:"histogram"`
}

// serviceFigures assembles the measurements and findings.
func serviceFigures(w *restload.Work, m *measure) (*ServiceFigures, error) {
	f := w.Found
	r := &ServiceFigures{Calls: []CallFigures{}, Lists: f.Walks.Load(), Items: f.Items.Load()}
	for i, p := range m.calls {
		if p.requests == 0 {
			continue
		}
		c := CallFigures{Call: w.Calls[i], Requests: p.requests, RequestsPerSecond: float64(p.requests) / m.seconds(), FailedRequests: p.failed, Latency: times(p.latency)}
		var err error
		if c.Histogram, err = histogram.Encode(p.latency); err != nil {
			return nil, err
		}
		r.Calls = append(r.Calls, c)
	}
	if w.Scenario != restload.ScenarioTrigger {
		return r, nil
	}
	runs, toEnd := f.Ended()
	r.Runs = &RunFigures{
		Started: runs.Started, Completed: runs.Completed, Failed: runs.Failed, Skipped: runs.Skipped, Canceled: runs.Canceled,
		Unfinished: runs.Unfinished, Going: f.Open.Load(), Failure: runs.Failure, TimeToEnd: times(toEnd),
	}
	var err error
	r.Runs.Histogram, err = histogram.Encode(toEnd)
	return r, err
}

// Text is what became of the runs, in a line.
func (r *RunFigures) Text() string {
	text := fmt.Sprintf("%s started: %s completed, %s failed, %s skipped, %s cancelled, %s not ended in time",
		quantity.Grouped(r.Started), quantity.Grouped(r.Completed), quantity.Grouped(r.Failed), quantity.Grouped(r.Skipped), quantity.Grouped(r.Canceled), quantity.Grouped(r.Unfinished))
	if r.Going > 0 {
		text += fmt.Sprintf(", %s still going", quantity.Grouped(r.Going))
	}
	return text
}

// joinService puts the figures of several loads on a service together.
func (r *Result) joinService(results []*Result) error {
	r.Service = nil
	for i, o := range results {
		if o.Service == nil {
			continue
		}
		if r.Service == nil {
			r.Service = &ServiceFigures{Calls: []CallFigures{}}
		}
		if err := r.Service.add(o.Service); err != nil {
			return wire.Usagef("%s: %v", named(results, i), err)
		}
	}
	return nil
}

func (f *ServiceFigures) add(o *ServiceFigures) (err error) {
	f.Lists, f.Items = f.Lists+o.Lists, f.Items+o.Items
	for _, c := range o.Calls {
		at := slices.IndexFunc(f.Calls, func(have CallFigures) bool { return have.Call == c.Call })
		if at < 0 {
			f.Calls = append(f.Calls, c)
			continue
		}
		have := &f.Calls[at]
		have.Requests, have.FailedRequests = have.Requests+c.Requests, have.FailedRequests+c.FailedRequests
		have.RequestsPerSecond += c.RequestsPerSecond
		if have.Histogram, have.Latency, err = joinTimes(have.Histogram, c.Histogram); err != nil {
			return err
		}
	}
	if o.Runs == nil {
		return nil
	}
	if f.Runs == nil {
		runs := *o.Runs
		f.Runs = &runs
		return nil
	}
	have, more := f.Runs, o.Runs
	have.Started, have.Completed, have.Failed = have.Started+more.Started, have.Completed+more.Completed, have.Failed+more.Failed
	have.Skipped, have.Canceled = have.Skipped+more.Skipped, have.Canceled+more.Canceled
	have.Unfinished, have.Going = have.Unfinished+more.Unfinished, have.Going+more.Going
	have.Failure = cmp.Or(have.Failure, more.Failure)
	have.Histogram, have.TimeToEnd, err = joinTimes(have.Histogram, more.Histogram)
	return err
}

// discoverService fetches everything that the load is about once: a wrong key or sync
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

// firstPage fetches a page of a list before the load.
func (s *session) firstPage(ctx context.Context, path string, page int64, perPage int) (p *restload.ListPage, err error) {
	c := restload.Call{Method: http.MethodGet, Path: restload.PagePath(path, page, perPage, "asc")}
	err = s.askOnce(ctx, c, func(body []byte) error {
		p, err = restload.DecodePage(body, page, perPage)
		return err
	})
	return p, err
}

// askOnce sends one request before the load. The load counts problems of the reply,
// unless nothing can be sent at all.
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
	of := s.e.pacer // of the load: its requested rate is reported later
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
