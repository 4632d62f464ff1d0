package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sync/audit"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// AuditRequest selects what to audit and how the destination is read.
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
func (k *Inspector) auditRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/audit", "sync_id, readback (url, headers), limit, ledger_only, skips_acknowledged: holds what a destination has stored against the ledger and the source", func(c *call.Control) (any, error) {
			var q AuditRequest
			if err := c.Body(&q); err != nil {
				return nil, err
			}
			return k.Audit(c.R.Context(), q)
		}),
	}
}

// Audit reads what the destination of a sync has stored and holds it against
// the ledger and the source. Nothing is changed. A sync that is not there, a
// request that is wrong, a source or a hook that cannot be read are errors;
// wrong records are in the report.
func (k *Inspector) Audit(ctx context.Context, q AuditRequest) (*audit.Report, error) {
	if q.SyncID < 1 {
		return nil, problem.InvalidField("sync_id", "is required: the id of a sync")
	}
	if q.Limit < 0 || q.Limit > maxFindings {
		return nil, problem.InvalidField("limit", "must be 1 to %d", maxFindings)
	}
	y, all, err := k.syncWithRuns(ctx, q.SyncID)
	if err != nil {
		return nil, err
	}
	view, done, err := k.viewOf(ctx, y, lastOf(all))
	if err != nil {
		return nil, err
	}
	defer done()
	job := audit.Job{
		Sync: y.ID, Config: y.Config, Plan: view.plan, Ledger: k.Ledger().Sync(y.ID),
		Source: view.job.Source, Object: view.job.Object, LedgerOnly: q.LedgerOnly,
		Events:   runs.EventField(y) != "",
		TrueSwap: view.job.DestinationType != api.TypeCustomAPI, SkipsAcknowledged: q.SkipsAcknowledged,
		Handled: view.job.DestinationType != api.TypeCustomAPI && !k.Gate.FileSystem(view.job.DestinationType),
		Limit:   int(q.Limit),
	}
	for _, run := range all {
		switch run.Run.Status {
		case api.RunCompleted, api.RunFailed:
			job.Runs = append(job.Runs, run.Run)
		case api.RunQueued, api.RunWorking:
			job.Active = true
		}
	}
	if own, listed := view.job.Destination.(destination.Lister); listed && q.Readback == nil {
		job.Content, job.Texts = k.Gate.FileSystem(view.job.DestinationType), own.Texts()
	}
	if job.Destination, err = k.auditedDestination(&q, view); err != nil {
		return nil, err
	}
	report, err := audit.Audit(ctx, job)
	var hook *audit.HookError
	if errors.As(err, &hook) {
		return nil, problem.Refuse(http.StatusBadRequest, "readback: %v", hook)
	}
	var end *audit.ReadError
	if errors.As(err, &end) && ctx.Err() == nil {
		message := "the " + end.What + " cannot be read"
		if end.What == "destination" { // an error of its source may hold a secret
			message += ": " + end.Err.Error()
		}
		return nil, &problem.Failure{Code: http.StatusConflict, Message: message, Cause: err}
	}
	return report, err
}

// auditedDestination chooses the way by which the destination is read.
func (k *Inspector) auditedDestination(q *AuditRequest, view *syncView) (audit.Destination, error) {
	job := view.job
	if q.Readback != nil {
		client, why := k.Gate.HookClient(q.Readback.URL)
		if why != "" {
			return audit.Destination{}, problem.InvalidField("readback.url", "%s", why)
		}
		hook := &audit.Hook{
			URL: q.Readback.URL, Header: http.Header{}, Client: client, Timeout: k.Timeout,
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
