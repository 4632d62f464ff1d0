package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// DryRunRequest selects what to plan.
type DryRunRequest struct {
	// Full plans a full sync.
	Full bool `json:"full"`
	// Limit is the most records of each action that are shown, 0 to 100; nil is 10.
	Limit *int64 `json:"limit"`
}

const usualDrySample = 10

// dryRunRoutes report what a run would do.
func (k *Inspector) dryRunRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/syncs/{id}/plan", "full, limit: what a run of the sync would create, change, delete and refuse; nothing is sent or written", func(c *call.Control) (any, error) {
			var q DryRunRequest
			if err := c.Body(&q); err != nil {
				return nil, err
			}
			return k.DryRun(c.R.Context(), call.IDOf(c), q)
		}),
	}
}

// DryRun reports what the next run of a sync would do, using the code of a run. It
// sends and writes nothing, but fetches the cached objects of the destination again
// when they are old, as any reader does. It refuses a sync with an active run: what
// that sends is known only at its end.
func (k *Inspector) DryRun(ctx context.Context, id int64, q DryRunRequest) (*controlapi.DryRun, error) {
	most := int64(usualDrySample)
	if q.Limit != nil {
		if most = *q.Limit; most < 0 || most > executor.MaxDrySamples {
			return nil, problem.InvalidField("limit", "must be 0 to %d", executor.MaxDrySamples)
		}
	}
	began, at := time.Now(), k.Clock.Now()
	y, last, err := k.idle(ctx, id)
	if err != nil {
		return nil, err
	}
	if q.Full && executor.SentOnce(&y.Config) {
		return nil, problem.InvalidField("full", "append syncs and event-based activation have no full sync: each row is sent once")
	}
	found, clean, err := k.rehearse(runs.Dry(ctx), y, q.Full, int(most))
	if err != nil {
		return nil, err
	}
	// A run that came meanwhile has changed the data.
	if _, now, err := k.idle(ctx, id); err != nil {
		return nil, err
	} else if now != last {
		return nil, problem.Refuse(http.StatusConflict, "run %d of sync %d came in between; plan again", now, id)
	}
	shown := shownDryRun(y, found, clean)
	shown.At, shown.DurationMS = api.Time{Time: at}, float64(time.Since(began).Microseconds())/1000
	return shown, nil
}

// idle finds a sync of any workspace without an active run, and its last run; 0 is
// none.
func (k *Inspector) idle(ctx context.Context, id int64) (y *store.Sync, last int64, err error) {
	err = k.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		if y, err = call.Known(tx, store.Syncs, "sync", id); err != nil {
			return err
		}
		run, err := tx.ActiveRun(id)
		if err == nil {
			return problem.Refuse(http.StatusConflict, "run %d of sync %d is active; plan when it is over", run.ID, id)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if run, err = tx.LastRun(id); err == nil {
			last = run.ID
		} else if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return err
	})
	return y, last, err
}

// rehearse resolves the sync as a run does, and hands it to the executor. clean takes
// the secrets of the connection out of a text.
func (k *Inspector) rehearse(ctx context.Context, y *store.Sync, full bool, most int) (found *executor.DryRun, clean func(string) string, err error) {
	var to runs.Endpoint
	job, done, err := k.Planning.Job(ctx, y, &store.SyncRun{}, &to, &sources.ColumnWatch{Enforce: true})
	var p *runs.PlanError
	if errors.As(err, &p) {
		o := runs.PlanFailure(err)
		return &executor.DryRun{Failure: &executor.Failure{Code: o.Code, Message: o.Message, Detail: o.Detail}}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if job.Full = full; full {
		job.FullReason = "it was asked for"
	}
	k.Planning.Resend(job, to)
	if clean, err = k.cleaner(ctx, y.DestinationID, job.DestinationType); err != nil {
		return nil, nil, err
	}
	found, err = k.Executor().DryRun(ctx, *job, most)
	switch {
	case errors.Is(err, ledger.ErrBusy):
		return nil, nil, problem.Refuse(http.StatusConflict, "a run of sync %d is active; plan when it is over", y.ID)
	case errors.Is(err, executor.ErrUnsettled):
		return nil, nil, problem.Refuse(http.StatusConflict, "sync %d cannot be planned now: %v", y.ID, err)
	}
	return found, clean, err
}

// cleaner takes the secrets of a destination's connection out of texts, as the
// journal of its calls does.
func (k *Inspector) cleaner(ctx context.Context, id int64, typ string) (clean func(string) string, err error) {
	err = k.Shared.Store.View(ctx, func(tx *store.Tx) error {
		credentials, err := tx.DestinationCredentials(id)
		if err != nil {
			return fmt.Errorf("read credentials of destination %d: %w", id, err)
		}
		clean = k.Gate.Cleaner(typ, credentials)
		return nil
	})
	return clean, err
}

// shownDryRun writes a dry run as the control API shows it.
func shownDryRun(y *store.Sync, d *executor.DryRun, clean func(string) string) *controlapi.DryRun {
	processed := d.SourceUpdates + d.SourceDeletes
	shown := &controlapi.DryRun{
		SyncID: y.ID, Label: y.Config.Label, Operation: y.Config.Operation, FullSync: d.FullSync, FullSyncReason: optional(d.FullReason),
		SourceRecordCount:   max(d.SourceRecords, processed+d.SourceInvalids), // as countersOf
		SourceRecordUpdates: d.SourceUpdates, SourceRecordDeletes: d.SourceDeletes, SourceRecordInvalids: d.SourceInvalids,
		Actions: controlapi.DryRunActions{
			Create: d.Created, Change: d.Changed, Resend: d.Resent, Delete: d.SourceDeletes, Refuse: d.SourceInvalids, Skip: d.Skipped, Unchanged: d.Unchanged,
		},
		Refused: shownReasons(d.Reasons), Doubtful: shownReasons(d.Doubts), Sample: []controlapi.DryRunRecord{},
	}
	text := func(value []byte) json.RawMessage {
		if cleaned := []byte(clean(string(value))); len(value) > 0 && json.Valid(cleaned) {
			return cleaned
		}
		return json.RawMessage("null")
	}
	for i := range d.Samples {
		r := &d.Samples[i]
		shown.Sample = append(shown.Sample, controlapi.DryRunRecord{
			Action: r.Action, Identifier: text(r.Identifier), Operation: optional(r.Operation), Record: text(r.Record), Bytes: r.Bytes,
			Reason: optional(r.Reason), Rows: r.Rows,
		})
	}
	if f := d.Failure; f != nil {
		shown.Failure = &controlapi.DryRunFailure{Code: f.Code, Message: f.Message, Detail: optional(f.Detail)}
	}
	return shown
}

// shownReasons is a list on the wire, also when it is empty.
func shownReasons(reasons []executor.Reason) []controlapi.DryRunReason {
	shown := []controlapi.DryRunReason{}
	for _, r := range reasons {
		shown = append(shown, controlapi.DryRunReason{Reason: r.Text, Rows: r.Rows})
	}
	return shown
}

// optional is nil for an empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
