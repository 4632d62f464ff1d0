package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/destination"
	"github.com/destkit/destkit/server/executor"
	"github.com/destkit/destkit/server/mapping"
	"github.com/destkit/destkit/server/source"
	"github.com/destkit/destkit/server/store"
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
// configuration still fits both (service.md: plan).
func (e *engine) job(ctx context.Context, y *store.Sync, run *store.SyncRun, to *endpoint) (job *executor.Job, done func(), err error) {
	s := e.s
	var d *store.Destination
	var credentials map[string]json.RawMessage
	var access sourceAccess
	var sh shape
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
		src, err := tx.Source(y.WorkspaceID, y.SourceID)
		if err != nil {
			return err
		}
		if access, err = s.sourceAccess(tx, src); err != nil {
			return err
		}
		sh, problems, err = shapeOf(tx, y.WorkspaceID, y.Config.SourceAttributes)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	subject := mapping.Subject{
		Config: y.Config, DestinationType: d.Type, Columns: sh.Columns, ColumnsKnown: sh.ColumnsKnown,
		Streaming: sh.Streaming, StreamingDatabase: sh.StreamingDatabase, ExistingAlerts: alertIDs(&y.Config),
	}
	misfits, err := e.fit(ctx, d, &subject)
	if err != nil {
		return nil, nil, err
	}
	if problems = append(problems, misfits...); len(problems) > 0 {
		return nil, nil, &planError{
			code: executor.CodeConfiguration, message: "the sync no longer fits its source and destination: " + problems[0].String(), detail: invalid(problems).message,
		}
	}
	return e.connect(ctx, y, run, d, credentials, access, sh, subject.Object)
}

// fit checks a sync against what the destination says of itself. What does not
// fit any more may be the fault of an old answer, so the destination is asked
// again before the run fails (service.md 2.1).
func (e *engine) fit(ctx context.Context, d *store.Destination, subject *mapping.Subject) ([]api.Problem, error) {
	for asked := false; ; asked = true {
		var objects []*api.DestinationObject
		err := e.s.executor.Ask(ctx, d.ID, func(ctx context.Context) (err error) {
			objects, err = e.s.objects(ctx, d)
			return err
		})
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
		if subject.Object == nil {
			problems = append([]api.Problem{{Field: "destination_attributes.object", Message: "the destination no longer has the object"}}, problems...)
		}
		if len(problems) == 0 || asked || e.s.broken.deviations().TrustsMetadata {
			return problems, nil
		}
		if err := e.s.refreshObjects(ctx, d); store.Passing(err) {
			return nil, err
		} else if err != nil {
			e.s.log.Warn("destination cannot be asked again", "destination", d.ID, "error", err)
			return problems, nil
		}
	}
}

// connect opens both ends of a job; done closes them.
func (e *engine) connect(ctx context.Context, y *store.Sync, run *store.SyncRun, d *store.Destination, credentials map[string]json.RawMessage, access sourceAccess, sh shape, object *api.DestinationObject) (*executor.Job, func(), error) {
	from, err := access.open(ctx)
	if err != nil {
		return nil, nil, &planError{code: executor.CodeSource, message: "the source cannot be opened", detail: access.clean(err.Error()), transient: true, cause: err}
	}
	reader, ok := from.(source.Reader)
	if !ok {
		from.Close()
		return nil, nil, &planError{code: executor.CodeSource, message: "the source has no rows to read"}
	}
	state, err := e.s.stateIn(ctx, access, from, y.ID)
	if err != nil {
		from.Close()
		return nil, nil, err
	}
	to, err := e.s.gate.Sender(d.ID, d.Type, credentials)
	if err != nil {
		from.Close()
		return nil, nil, err
	}
	job := &executor.Job{
		Run: run.ID, Sync: y.ID, Config: y.Config, Full: run.Run.FullSync, Source: reader, Object: readable(sh), Columns: sh.Columns, Warehouse: state,
		Destination: to, DestinationObject: object, DestinationType: d.Type, Connection: d.ID,
		HiddenIdentifier: e.s.gate.HiddenIdentifier(d.Type, object.FullName),
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
	}
	return p
}

// passing tells of a failed call whether the next one may well succeed.
func passing(err error) bool {
	var call *destination.CallError
	return errors.As(err, &call) && call.Outcome != destination.OutcomeRefused && call.Outcome != destination.OutcomeURL
}

// readable is the source object as readers name it.
func readable(sh shape) source.Object {
	o := sh.Object
	if o.Query != nil && *o.Query != "" {
		return source.Object{Query: *o.Query}
	}
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	if sh.Streaming {
		return source.Object{Name: text(o.Name)}
	}
	return source.Object{Catalog: text(o.TableCatalog), Schema: text(o.TableSchema), Name: text(o.TableName)}
}
