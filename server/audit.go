package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/columns"
	"github.com/destkit/destkit/server/internal/planning"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/records"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/audit"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// AuditRequest says what to audit and how the destination is read.
type AuditRequest struct {
	SyncID int64 `json:"sync_id"`
	// Readback is needed for custom destinations only: the service has the store
	// of emulated ones, and the files of local_files.
	Readback *AuditHook `json:"readback"`
	// Limit is the most findings that are listed, 1 to 10,000; 100 when zero.
	Limit int64 `json:"limit"`
	// LedgerOnly leaves the source out, for one that has changed since the last
	// run.
	LedgerOnly bool `json:"ledger_only"`
	// SkipsAcknowledged is for destinations that answer a skipped record with
	// success.
	SkipsAcknowledged bool `json:"skips_acknowledged"`
}

// AuditHook is a read-back hook (docs/judge.md) with the headers of its calls.
type AuditHook struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// maxFindings bounds what one audit lists.
const maxFindings = 10_000

// auditRoutes prove what runs have claimed.
func (s *Server) auditRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/audit", "sync_id, readback (url, headers), limit, ledger_only, skips_acknowledged: holds what a destination has stored against the ledger and the source", func(c *call.Control) (any, error) {
			var q AuditRequest
			if err := c.Body(&q); err != nil {
				return nil, err
			}
			return s.Audit(c.R.Context(), q)
		}),
	}
}

// Audit reads what the destination of a sync has stored and holds it against
// the ledger and the source. Nothing is changed. A sync
// that is not there, a request that is wrong, a source or a hook that cannot be
// read are errors; what is wrong with records is in the report.
func (s *Server) Audit(ctx context.Context, q AuditRequest) (*audit.Report, error) {
	if q.SyncID < 1 {
		return nil, problem.InvalidField("sync_id", "is required: the id of a sync")
	}
	if q.Limit < 0 || q.Limit > maxFindings {
		return nil, problem.InvalidField("limit", "must be 1 to %d", maxFindings)
	}
	y, runs, err := s.syncWithRuns(ctx, q.SyncID)
	if err != nil {
		return nil, err
	}
	view, done, err := s.viewOf(ctx, y, lastOf(runs))
	if err != nil {
		return nil, err
	}
	defer done()
	job := audit.Job{
		Sync: y.ID, Config: y.Config, Plan: view.plan, Books: s.ledger.Sync(y.ID), Warehouse: view.job.Warehouse,
		Source: view.job.Source, Object: view.job.Object, LedgerOnly: q.LedgerOnly,
		Events:   records.EventField(y) != "",
		TrueSwap: view.job.DestinationType != api.TypeCustomAPI, SkipsAcknowledged: q.SkipsAcknowledged,
		Handled: view.job.DestinationType != api.TypeCustomAPI && !s.gate.FileSystem(view.job.DestinationType),
		Limit:   int(q.Limit),
	}
	for _, run := range runs {
		switch run.Run.Status {
		case api.RunCompleted, api.RunFailed:
			job.Runs = append(job.Runs, run.Run)
		case api.RunQueued, api.RunWorking:
			job.Active = true
		}
	}
	if own, listed := view.job.Destination.(destination.Lister); listed && q.Readback == nil {
		job.Content, job.Texts = s.gate.FileSystem(view.job.DestinationType), own.Texts()
	}
	if job.Destination, err = s.auditedDestination(&q, view); err != nil {
		return nil, err
	}
	var report *audit.Report
	err = s.latch.Aside(ctx, func(ctx context.Context) error {
		report, err = audit.Audit(ctx, job)
		return err
	})
	var hook *audit.HookError
	if errors.As(err, &hook) {
		return nil, problem.Refuse(http.StatusBadRequest, "readback: %v", hook)
	}
	var end *audit.ReadError
	if errors.As(err, &end) && ctx.Err() == nil {
		message := "the " + end.What + " cannot be read"
		if end.What == "destination" { // what its source says may hold a secret
			message += ": " + end.Err.Error()
		}
		return nil, &problem.Failure{Code: http.StatusConflict, Message: message, Cause: err}
	}
	return report, err
}

// auditedDestination chooses the way by which the destination is read.
func (s *Server) auditedDestination(q *AuditRequest, view *syncView) (audit.Destination, error) {
	job := view.job
	if q.Readback != nil {
		client, why := s.gate.HookClient(q.Readback.URL)
		if why != "" {
			return audit.Destination{}, problem.InvalidField("readback.url", "%s", why)
		}
		hook := &audit.Hook{
			URL: q.Readback.URL, Header: http.Header{}, Client: client, Timeout: s.config.CallTimeout,
			Object: job.DestinationObject.FullName, Identifier: view.plan.Identifier(),
		}
		for name, value := range q.Readback.Headers {
			hook.Header.Set(name, value)
		}
		return audit.Destination{Lookup: hook.Lookup}, nil
	}
	if job.DestinationType == api.TypeCustomAPI {
		return audit.Destination{}, problem.InvalidField("readback", "is required: a custom destination is read by its read-back hook only; give url and headers")
	}
	own, listed := job.Destination.(destination.Lister)
	if !listed {
		return audit.Destination{}, problem.InvalidField("readback", "is required: the service cannot read destinations of type %s itself; give url and headers", job.DestinationType)
	}
	return audit.Destination{List: func(_ context.Context, fn func(map[string]json.RawMessage) error) error {
		return own.EachStored(job.DestinationObject.FullName, fn)
	}}, nil
}

// syncView is a sync as its next run would see it.
type syncView struct {
	job  *executor.Job
	plan *mapping.Plan
}

// viewOf opens both ends of a sync; done closes them. run may be nil.
func (s *Server) viewOf(ctx context.Context, y *store.Sync, run *store.SyncRun) (*syncView, func(), error) {
	if run == nil {
		run = &store.SyncRun{}
	}
	var to planning.Endpoint
	job, done, err := s.planning.Job(ctx, y, run, &to, new(columns.Watch))
	var p *planning.Error
	if errors.As(err, &p) {
		message := p.Message
		if p.Detail != "" {
			message += ": " + p.Detail
		}
		return nil, nil, problem.Refuse(http.StatusConflict, "%s", message)
	}
	if err != nil {
		return nil, nil, err
	}
	plan, problems := mapping.Compile(job.Config, job.DestinationObject, job.Columns, mapping.Env{
		RunID: run.ID, SyncID: y.ID, Now: s.clock.Now(), DestinationType: job.DestinationType,
		HiddenIdentifier: job.HiddenIdentifier, Segments: job.Segments, NullText: job.Settings.NullText,
	})
	if len(problems) > 0 {
		done()
		return nil, nil, problem.Refuse(http.StatusConflict, "the sync does not fit its source and destination any more: %s", problems[0])
	}
	return &syncView{job, plan}, done, nil
}

// syncWithRuns finds a sync of any workspace, with its runs in ascending order.
func (s *Server) syncWithRuns(ctx context.Context, id int64) (y *store.Sync, runs []*store.SyncRun, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		found, err := tx.EverySync(id-1, 1)
		if err != nil {
			return err
		}
		if len(found) == 0 || found[0].ID != id {
			return call.Gone("sync", id)
		}
		y = found[0]
		runs, _, err = tx.SyncRuns(id, store.Page{Ascending: true})
		return err
	})
	return y, runs, err
}

// lastOf is the newest run that was not skipped; nil: there is none.
func lastOf(runs []*store.SyncRun) *store.SyncRun {
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Run.Status != api.RunSkipped {
			return runs[i]
		}
	}
	return nil
}
