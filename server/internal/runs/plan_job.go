package runs

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Job resolves a sync: its source, its destination, and whether its configuration still
// fits both. to is where the run sends to, seen the found columns of its source; done
// closes both ends.
func (k *Planner) Job(ctx context.Context, y *store.Sync, run *store.SyncRun, to *Endpoint, seen *sources.ColumnWatch) (job *executor.Job, done func(), err error) {
	var d *store.Destination
	var credentials map[string]json.RawMessage
	var access sources.Access
	var had merged
	var sh sources.Shape
	var problems []api.Problem
	err = k.Shared.Store.View(ctx, func(tx *store.Tx) error {
		if d, err = store.Destinations.Read(tx, y.WorkspaceID, y.DestinationID); err != nil {
			return err
		}
		if credentials, err = tx.DestinationCredentials(d.ID); err != nil {
			return err
		}
		if *to, err = endpointOf(tx, y.ID, credentials); err != nil {
			return err
		}
		if had, err = mergedOf(tx, y.ID); err != nil {
			return err
		}
		src, err := store.Sources.Read(tx, y.WorkspaceID, y.SourceID)
		if err != nil {
			return err
		}
		if access, err = k.Sources.Access(tx, src); err != nil {
			return err
		}
		from := y.Config.SourceAttributes
		if from.FilterSegmentID == nil { // of a sync that was stored before segments were
			from.FilterSegmentID = y.Config.FilterSegmentID
		}
		sh, problems, err = k.Sources.ShapeOf(tx, y.WorkspaceID, from)
		if err == nil && sh.DatasetID != nil && mapping.ReadsSegments(&y.Config) {
			sh.Segments, err = tx.SegmentsOfDataset(*sh.DatasetID)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	stored := sh.Columns
	from := sources.OpenColumns(ctx, access, &sh)
	defer func() {
		if err != nil {
			from.Release()
		}
	}()
	if from.Fresh {
		if seen.Compare(y, sh.Columns, access.Inferred()); seen.Enforce {
			k.storeColumns(ctx, y, &sh, stored)
		}
		if r := seen.Refuse(y, sh.Columns); r != nil {
			return nil, nil, &PlanError{Code: r.Code, Message: r.Message, Detail: r.Detail}
		}
		sh.Columns = sources.AcceptedColumns(y, sh.Columns)
	}
	subject := mapping.Subject{
		Config: y.Config, DestinationType: d.Type, Columns: sh.Columns, ColumnsKnown: sh.ColumnsKnown, Running: true,
		Streaming: sh.Streaming, StreamingDatabase: sh.StreamingDatabase, ExistingAlerts: mapping.AlertIDs(&y.Config),
		UpdatesPart: k.Shared.Dialect.UpdateNeedsIdentifier,
	}
	misfits, err := k.fit(ctx, d, &subject, seen.Enforce && len(seen.Changes) > 0)
	if err != nil {
		return nil, nil, err
	}
	if problems = append(problems, misfits...); len(problems) > 0 {
		return nil, nil, &PlanError{
			Code: executor.CodeConfiguration, Message: "the sync no longer fits its source and destination: " + problems[0].String(), Detail: problem.Invalid(problems).Message,
		}
	}
	if job, done, err = k.connect(ctx, y, run, d, credentials, access, from, sh, subject.Object); err == nil {
		had.tell(job, run)
	}
	return job, done, err
}

// storeColumns keeps the columns that a run has read of a table or a query.
func (k *Planner) storeColumns(ctx context.Context, y *store.Sync, sh *sources.Shape, before []api.Column) {
	if sources.SameColumns(sh.Columns, before) || isDry(ctx) {
		return
	}
	if err := k.Shared.Store.Update(ctx, func(tx *store.Tx) error { return sources.StoreColumns(tx, y, sh) }); err != nil { // the run has them all the same
		k.Log.Warn("new columns of a source cannot be stored", "sync", y.ID, "error", err)
	}
}

// fit checks a sync against the destination's objects. A mismatch may come from
// an old answer, so it fetches them again before the run fails. The same holds
// where columns have changed: fields that were created for them are in no old
// answer, and their types count.
func (k *Planner) fit(ctx context.Context, d *store.Destination, subject *mapping.Subject, changed bool) ([]api.Problem, error) {
	asked := false
	if changed && sources.Followed(&subject.Config) {
		if _, err := k.askAgain(ctx, d); err != nil {
			return nil, err
		}
		asked = true
	}
	for ; ; asked = true {
		var objects []*api.DestinationObject
		ask := func(ctx context.Context) (err error) {
			objects, err = k.Destinations.Objects(ctx, d)
			return err
		}
		var err error
		if isDry(ctx) { // a caller waits for the answer, so nothing waits for the clock
			err = ask(ctx)
		} else {
			err = k.Ask(ctx, d.ID, ask)
		}
		if err != nil {
			return nil, unplanned(err)
		}
		subject.Object = nil
		for _, o := range objects {
			if o.FullName == subject.Config.DestinationAttributes.Object {
				subject.Object = o
			}
		}
		problems := mapping.Check(*subject)
		fixed := subject.Object != nil && sources.Followed(&subject.Config) && !subject.Object.AllowCustomFields
		if subject.Object == nil {
			problems = append([]api.Problem{{Field: "destination_attributes.object", Message: "the destination no longer has the object"}}, problems...)
		}
		if len(problems) == 0 && !fixed || asked {
			return problems, nil
		}
		if answered, err := k.askAgain(ctx, d); err != nil || !answered {
			return problems, err
		}
	}
}

// askAgain fetches the objects of a destination. No answer is no error: the old one
// has to do.
func (k *Planner) askAgain(ctx context.Context, d *store.Destination) (answered bool, err error) {
	err = k.Destinations.Refresh(ctx, d)
	if store.Passing(err) {
		return false, err
	}
	if err != nil {
		k.Log.Warn("destination cannot be asked again", "destination", d.ID, "error", err)
	}
	return err == nil, nil
}

// connect opens the other end of a job; done closes both. After an error the source
// is the caller's to close.
func (k *Planner) connect(ctx context.Context, y *store.Sync, run *store.SyncRun, d *store.Destination, credentials map[string]json.RawMessage, access sources.Access, from sources.OpenedColumns, sh sources.Shape, object *api.DestinationObject) (*executor.Job, func(), error) {
	if err := from.Fault; err != nil {
		return nil, nil, &PlanError{Code: executor.CodeSource, Message: "the source cannot be opened", Detail: access.Clean(err.Error()), Transient: true, Cause: err}
	}
	reader, ok := from.Source.(source.Reader)
	if !ok {
		return nil, nil, &PlanError{Code: executor.CodeSource, Message: "the source has no rows to read"}
	}
	to, err := k.Gate.Sender(d.ID, d.Type, credentials)
	if err != nil {
		return nil, nil, err
	}
	job := &executor.Job{
		Run: run.ID, Sync: y.ID, Config: y.Config, Full: run.Run.FullSync, Source: reader, Object: sources.RowsOf(&sh), Columns: sh.Columns,
		Destination: to, DestinationObject: object, DestinationType: d.Type, Connection: d.ID,
		HiddenIdentifier: k.Gate.HiddenIdentifier(d.Type, object.FullName),
		Settings:         k.Gate.Settings(d.Type, object.FullName, y.Config.AdvancedConfiguration),
	}
	for _, g := range sh.Segments {
		job.Segments = append(job.Segments, mapping.Segment{ID: g.ID, Name: g.Name})
	}
	return job, func() { from.Close(); to.Close() }, nil
}

// unplanned is the failure of a run that could not fetch the objects of its
// destination.
func unplanned(err error) *PlanError {
	p := &PlanError{Code: CodeFailed, Message: "the destination could not be asked for its objects", Detail: err.Error(), Transient: passing(err), Cause: err}
	var call *destination.CallError
	if errors.As(err, &call) {
		p.Message += ": " + call.Message
		if call.Outcome == destination.OutcomeSecret {
			p.Code = executor.CodeUnauthorized
		}
	}
	return p
}

// passing reports whether the call after a failed one may well succeed.
func passing(err error) bool {
	var call *destination.CallError
	if !errors.As(err, &call) {
		return false
	}
	switch call.Outcome {
	case destination.OutcomeRefused, destination.OutcomeURL, destination.OutcomeSecret:
		return false
	}
	return true
}
