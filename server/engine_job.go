package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/columns"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/states"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// errorPlanning is the error_code of a run whose destination cannot be asked.
const errorPlanning = "PLANNING_FAILED"

// planError is why a run cannot be planned.
type planError struct {
	code, message, detail string
	transient             bool // it may pass by itself
	cause                 error
}

func (p *planError) Error() string { return p.message }
func (p *planError) Unwrap() error { return p.cause }

func planFailure(err error) executor.Outcome {
	var p *planError
	if !errors.As(err, &p) {
		p = &planError{code: errorPlanning, message: err.Error()}
	}
	return executor.Outcome{Status: api.RunFailed, Code: p.code, Message: p.message, Detail: p.detail, Transient: p.transient, Cause: err}
}

// job resolves a sync: its source, its destination, and whether its
// configuration still fits both.
func (e *engine) job(ctx context.Context, y *store.Sync, run *store.SyncRun, to *endpoint, seen *columns.Watch) (job *executor.Job, done func(), err error) {
	s := e.s
	var d *store.Destination
	var credentials map[string]json.RawMessage
	var access sources.Access
	var had merged
	var sh sources.Shape
	var problems []api.Problem
	err = s.store.View(ctx, func(tx *store.Tx) error {
		if d, err = tx.Destination(y.WorkspaceID, y.DestinationID); err != nil {
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
		src, err := tx.Source(y.WorkspaceID, y.SourceID)
		if err != nil {
			return err
		}
		if access, err = s.sources.Access(tx, src); err != nil {
			return err
		}
		from := y.Config.SourceAttributes
		if from.FilterSegmentID == nil { // of a sync that was stored before segments were
			from.FilterSegmentID = y.Config.FilterSegmentID
		}
		sh, problems, err = s.sources.ShapeOf(tx, y.WorkspaceID, from)
		if err == nil && sh.DatasetID != nil && mapping.ReadsSegments(&y.Config) {
			sh.Segments, err = tx.SegmentsOfDataset(*sh.DatasetID)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	stored := sh.Columns
	from := columns.Open(ctx, access, &sh)
	defer func() {
		if err != nil {
			from.Release()
		}
	}()
	if from.Fresh {
		if seen.Compare(y, sh.Columns, access.Inferred()); seen.Enforce {
			e.storeColumns(ctx, y, &sh, stored)
		}
		if r := seen.Refuse(y, sh.Columns); r != nil {
			return nil, nil, &planError{code: r.Code, message: r.Message, detail: r.Detail}
		}
		sh.Columns = columns.Accepted(y, sh.Columns)
	}
	subject := mapping.Subject{
		Config: y.Config, DestinationType: d.Type, Columns: sh.Columns, ColumnsKnown: sh.ColumnsKnown, Running: true,
		Streaming: sh.Streaming, StreamingDatabase: sh.StreamingDatabase, ExistingAlerts: alertIDs(&y.Config),
		UpdatesPart: s.dialect.UpdateNeedsIdentifier,
	}
	misfits, err := e.fit(ctx, d, &subject, seen.Enforce && len(seen.Changes) > 0)
	if err != nil {
		return nil, nil, err
	}
	if problems = append(problems, misfits...); len(problems) > 0 {
		return nil, nil, &planError{
			code: executor.CodeConfiguration, message: "the sync no longer fits its source and destination: " + problems[0].String(), detail: problem.Invalid(problems).Message,
		}
	}
	if job, done, err = e.connect(ctx, y, run, d, credentials, access, from, sh, subject.Object); err == nil {
		had.tell(job, run)
	}
	return job, done, err
}

// storeColumns keeps the columns that a run has read of a table or a query.
func (e *engine) storeColumns(ctx context.Context, y *store.Sync, sh *sources.Shape, before []api.Column) {
	if columns.Same(sh.Columns, before) || states.IsDry(ctx) {
		return
	}
	if err := e.s.store.Update(ctx, func(tx *store.Tx) error { return columns.Store(tx, y, sh) }); err != nil { // the run has them all the same
		e.s.log.Warn("new columns of a source cannot be stored", "sync", y.ID, "error", err)
	}
}

// fit checks a sync against what the destination says of itself. What does not
// fit any more may be the fault of an old answer, so the destination is asked
// again before the run fails. So it is where columns have changed:
// fields that were created for them are in no old answer, and their types count.
func (e *engine) fit(ctx context.Context, d *store.Destination, subject *mapping.Subject, changed bool) ([]api.Problem, error) {
	asked := false
	if changed && columns.Followed(&subject.Config) && !e.s.broken.Deviations().TrustsMetadata {
		if _, err := e.askAgain(ctx, d); err != nil {
			return nil, err
		}
		asked = true
	}
	for ; ; asked = true {
		var objects []*api.DestinationObject
		ask := func(ctx context.Context) (err error) {
			objects, err = e.s.destinations.Objects(ctx, d)
			return err
		}
		var err error
		if states.IsDry(ctx) { // a caller waits for the answer, so nothing waits for the clock
			err = ask(ctx)
		} else {
			err = e.s.executor.Ask(ctx, d.ID, ask)
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
		fixed := subject.Object != nil && columns.Followed(&subject.Config) && !subject.Object.AllowCustomFields
		if subject.Object == nil {
			problems = append([]api.Problem{{Field: "destination_attributes.object", Message: "the destination no longer has the object"}}, problems...)
		}
		if len(problems) == 0 && !fixed || asked || e.s.broken.Deviations().TrustsMetadata {
			return problems, nil
		}
		if answered, err := e.askAgain(ctx, d); err != nil || !answered {
			return problems, err
		}
	}
}

// askAgain asks a destination for its objects. One that does not answer is no error:
// its old answer has to do.
func (e *engine) askAgain(ctx context.Context, d *store.Destination) (answered bool, err error) {
	err = e.s.destinations.Refresh(ctx, d)
	if store.Passing(err) {
		return false, err
	}
	if err != nil {
		e.s.log.Warn("destination cannot be asked again", "destination", d.ID, "error", err)
	}
	return err == nil, nil
}

// connect opens the other end of a job; done closes both. After an error the source
// is the caller's to close.
func (e *engine) connect(ctx context.Context, y *store.Sync, run *store.SyncRun, d *store.Destination, credentials map[string]json.RawMessage, access sources.Access, from columns.Opened, sh sources.Shape, object *api.DestinationObject) (*executor.Job, func(), error) {
	if err := from.Fault; err != nil {
		return nil, nil, &planError{code: executor.CodeSource, message: "the source cannot be opened", detail: access.Clean(err.Error()), transient: true, cause: err}
	}
	reader, ok := from.Source.(source.Reader)
	if !ok {
		return nil, nil, &planError{code: executor.CodeSource, message: "the source has no rows to read"}
	}
	state, err := e.s.states.In(ctx, access, from.Source, y.ID)
	if err != nil {
		return nil, nil, err
	}
	to, err := e.s.gate.Sender(d.ID, d.Type, credentials)
	if err != nil {
		return nil, nil, err
	}
	job := &executor.Job{
		Run: run.ID, Sync: y.ID, Config: y.Config, Full: run.Run.FullSync, Source: reader, Object: sources.RowsOf(&sh), Columns: sh.Columns, Warehouse: state,
		Destination: to, DestinationObject: object, DestinationType: d.Type, Connection: d.ID,
		HiddenIdentifier: e.s.gate.HiddenIdentifier(d.Type, object.FullName),
		Settings:         e.s.gate.Settings(d.Type, object.FullName, y.Config.AdvancedConfiguration),
	}
	for _, g := range sh.Segments {
		job.Segments = append(job.Segments, mapping.Segment{ID: g.ID, Name: g.Name})
	}
	return job, func() { from.Close(); to.Close() }, nil
}

// unplanned is the failure of a run whose destination could not be asked for its
// objects.
func unplanned(err error) *planError {
	p := &planError{code: errorPlanning, message: "the destination could not be asked for its objects", detail: err.Error(), transient: passing(err), cause: err}
	var call *destination.CallError
	if errors.As(err, &call) {
		p.message += ": " + call.Message
		if call.Outcome == destination.OutcomeSecret {
			p.code = executor.CodeUnauthorized
		}
	}
	return p
}

// passing tells of a failed call whether the next one may well succeed.
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
