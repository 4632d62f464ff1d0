package server

import (
	"context"
	"reflect"
	"slices"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/states"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// followsColumns reports whether the mappings of a sync are made from the columns
// of its source (spec 2.6, field_behavior).
func followsColumns(c *api.SyncConfig) bool {
	return c.FieldBehavior != nil && *c.FieldBehavior == api.BehaviorAllProperties
}

// openedSource is the source of a run, open, beside what was found of its columns.
type openedSource struct {
	source.Source       // nil where it cannot be opened
	fault         error // why not
	fresh         bool  // the columns were read
}

// close is for a run that ends before its job has the source.
func (o *openedSource) close() {
	if o.Source != nil {
		o.Close()
	}
}

// open opens the source of a sync and reads the columns of its object anew: what
// its owner has added or dropped is in no refresh yet. The schema of a topic is the
// client's own, and is not asked for. A source that does not answer, or an object
// that is gone, fails the run later, with the right words.
func (e *engine) open(ctx context.Context, access sources.Access, sh *sources.Shape) (o openedSource) {
	if sh.Streaming || !sh.ColumnsKnown {
		o.Source, o.fault = access.Open(ctx)
		return o
	}
	ctx, cancel := context.WithTimeout(ctx, sources.Timeout)
	defer cancel()
	columns, missing := []api.Column(nil), error(nil)
	o.Source, columns, missing, o.fault = access.OpenAt(ctx, sources.Readable(*sh))
	if o.fresh = o.fault == nil && missing == nil; o.fresh {
		sh.Columns = columns
	}
	return o
}

// storeColumns keeps the columns of a table or a query as a run has read them, so
// that they are shown without a refresh.
func (e *engine) storeColumns(ctx context.Context, y *store.Sync, sh *sources.Shape, before []api.Column) {
	same := func(a, b api.Column) bool { return a.Name == b.Name && a.Type == b.Type }
	if slices.EqualFunc(sh.Columns, before, same) {
		return
	}
	if states.IsDry(ctx) {
		return
	}
	err := e.s.store.Update(ctx, func(tx *store.Tx) error {
		if sh.DatasetID != nil {
			d, err := tx.Dataset(y.WorkspaceID, *sh.DatasetID)
			if err != nil {
				return err
			}
			d.Columns = sh.Columns
			return tx.SaveDataset(d)
		}
		o := sh.Object
		t, err := sources.FindTable(tx, sh.Source, *o.TableCatalog, *o.TableSchema, *o.TableName)
		if err != nil || t == nil {
			return err
		}
		t.Columns = sh.Columns
		return tx.SaveSourceTable(t)
	})
	if err != nil { // the run has them all the same
		e.s.log.Warn("new columns of a source cannot be stored", "sync", y.ID, "error", err)
	}
}

// keepColumns keeps with the sync what a run has found of the columns and the
// mappings that it has made, so that they are shown. A sync that a client
// has changed meanwhile gets those of its next run.
func (e *engine) keepColumns(tx *store.Tx, y *store.Sync, progress *runProgress) error {
	now, err := tx.Sync(y.WorkspaceID, y.ID)
	if err != nil || !reflect.DeepEqual(now.Config, y.Config) {
		return err
	}
	made, columns, accepted := now.Generated, now.Columns, now.Accepted
	if progress.planned {
		made = progress.generated
	}
	if seen := &progress.schema; seen.columns != nil {
		columns, accepted = seen.columns, seen.accepted
	}
	if reflect.DeepEqual(now.Generated, made) && slices.Equal(now.Columns, columns) && slices.Equal(now.Accepted, accepted) {
		return nil
	}
	now.Generated, now.Columns, now.Accepted = made, columns, accepted
	return tx.SetSyncColumns(now)
}

// shownMappings are those of the client, then those that the service has made.
func shownMappings(y *store.Sync) []api.Mapping {
	if len(y.Generated) == 0 || !followsColumns(&y.Config) {
		return y.Config.Mappings
	}
	return append(append([]api.Mapping{}, y.Config.Mappings...), y.Generated...)
}

// dropGenerated leaves out of a client's mappings those that the service has made
// and shown: they would no longer follow the source.
func dropGenerated(y *store.Sync) {
	if followsColumns(&y.Config) {
		y.Config.Mappings = mapping.WithoutGenerated(y.Config.Mappings, y.Generated)
	}
}

// generate makes the mappings of a sync that is saved, from the columns that the
// service knows. Its next run makes them again, from the source.
func generate(y *store.Sync, object *api.DestinationObject, sh *sources.Shape) {
	switch {
	case !followsColumns(&y.Config):
		y.Generated = nil
	case object != nil && sh.ColumnsKnown:
		y.Generated = mapping.Generated(&y.Config, object, accepted(y, sh.Columns))
	}
}

// columnsOrigin is what the columns of a sync depend on, beside the source itself.
type columnsOrigin struct {
	source, dataset, topic int64
	table                  [3]string
	policy                 string
	paused                 bool
}

func originOf(y *store.Sync) columnsOrigin {
	o := &y.Config.SourceAttributes.Object
	return columnsOrigin{
		source: y.SourceID, dataset: api.Value(y.DatasetID), topic: api.Value(y.TopicID),
		table:  [3]string{api.Value(o.TableCatalog), api.Value(o.TableSchema), api.Value(o.TableName)},
		policy: schemaPolicy(&y.Config), paused: y.Config.Paused,
	}
}

// acceptColumns takes the columns of a source as they will be at the next run, where
// an update says that its client has seen them: another policy is set, a paused sync
// goes on, or another object is read.
func acceptColumns(before columnsOrigin, y *store.Sync) {
	now := originOf(y)
	before.paused = before.paused && !now.paused
	now.paused = false
	if before != now {
		y.Columns, y.Accepted = nil, nil
	}
}
