package sources

import (
	"context"
	"reflect"
	"slices"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Followed reports whether the mappings of a sync are made from the columns
// of its source (spec 2.6, field_behavior).
func Followed(c *api.SyncConfig) bool {
	return c.FieldBehavior != nil && *c.FieldBehavior == api.BehaviorAllProperties
}

// OpenedColumns is the open source of a run, with its columns.
type OpenedColumns struct {
	source.Source       // nil where it cannot be opened
	Fault         error // why not
	Fresh         bool  // the columns were read
}

// Release is for a run that ends before its job has the source.
func (o *OpenedColumns) Release() {
	if o.Source != nil {
		o.Close()
	}
}

// OpenColumns opens the source of a sync and reads the columns of its object again:
// columns that its owner has added or dropped are in no refresh yet. The schema of a
// topic is the client's own, and is not read. A source that does not answer, or an
// object that is gone, fails the run later, with the right words.
func OpenColumns(ctx context.Context, access Access, sh *Shape) (o OpenedColumns) {
	if sh.Streaming || !sh.ColumnsKnown {
		o.Source, o.Fault = access.Open(ctx)
		return o
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	columns, missing := []api.Column(nil), error(nil)
	o.Source, columns, missing, o.Fault = access.OpenAt(ctx, Readable(*sh))
	if o.Fresh = o.Fault == nil && missing == nil; o.Fresh {
		sh.Columns = columns
	}
	return o
}

// SameColumns reports whether two lists name the same columns with the same types.
func SameColumns(a, b []api.Column) bool {
	return slices.EqualFunc(a, b, func(a, b api.Column) bool { return a.Name == b.Name && a.Type == b.Type })
}

// StoreColumns keeps the columns of a table or a query as a run has read them, so that they are
// shown without a refresh.
func StoreColumns(tx *store.Tx, y *store.Sync, sh *Shape) error {
	if sh.DatasetID != nil {
		d, err := store.Datasets.Read(tx, y.WorkspaceID, *sh.DatasetID)
		if err != nil {
			return err
		}
		d.Columns = sh.Columns
		return store.Datasets.Save(tx, d)
	}
	o := sh.Object
	t, err := FindTable(tx, sh.Source, *o.TableCatalog, *o.TableSchema, *o.TableName)
	if err != nil || t == nil {
		return err
	}
	t.Columns = sh.Columns
	return store.SourceTables.Save(tx, t)
}

// Keep keeps with the sync what a run has found of the columns and the mappings that it
// has made, so that they are shown; planned: the run came so far as to make them. A sync
// that a client has changed meanwhile gets those of its next run.
func (w *ColumnWatch) Keep(tx *store.Tx, y *store.Sync, planned bool, generated []api.Mapping) error {
	now, err := store.Syncs.Read(tx, y.WorkspaceID, y.ID)
	if err != nil || !reflect.DeepEqual(now.Config, y.Config) {
		return err
	}
	made, columns, accepted := now.Generated, now.Columns, now.Accepted
	if planned {
		made = generated
	}
	if w.columns != nil {
		columns, accepted = w.columns, w.accepted
	}
	if reflect.DeepEqual(now.Generated, made) && slices.Equal(now.Columns, columns) && slices.Equal(now.Accepted, accepted) {
		return nil
	}
	now.Generated, now.Columns, now.Accepted = made, columns, accepted
	return tx.SetSyncColumns(now)
}

// Pause stops a sync whose columns have changed, unless a client has changed its
// policy meanwhile; nil: it goes on.
func Pause(tx *store.Tx, y *store.Sync) (*store.Sync, error) {
	now, err := store.Syncs.Read(tx, y.WorkspaceID, y.ID)
	if err != nil || now.Config.Paused || ColumnPolicy(&now.Config) != api.SchemaPause {
		return nil, err
	}
	now.Config.Paused = true
	if err := store.Syncs.Save(tx, now); err != nil {
		return nil, err
	}
	return now, nil
}

// Mappings are those of the client, then those that the service has made.
func Mappings(y *store.Sync) []api.Mapping {
	if len(y.Generated) == 0 || !Followed(&y.Config) {
		return y.Config.Mappings
	}
	return append(append([]api.Mapping{}, y.Config.Mappings...), y.Generated...)
}

// DropGenerated leaves out of a client's mappings those that the service has made
// and shown: they would no longer follow the source.
func DropGenerated(y *store.Sync) {
	if Followed(&y.Config) {
		y.Config.Mappings = mapping.WithoutGenerated(y.Config.Mappings, y.Generated)
	}
}

// GenerateMappings makes the mappings of a sync that is saved, from the columns that the
// service knows. Its next run makes them again, from the source.
func GenerateMappings(y *store.Sync, object *api.DestinationObject, sh *Shape) {
	switch {
	case !Followed(&y.Config):
		y.Generated = nil
	case object != nil && sh.ColumnsKnown:
		y.Generated = mapping.Generated(&y.Config, object, AcceptedColumns(y, sh.Columns))
	}
}

// Origin is what the columns of a sync depend on, besides the source itself.
type Origin struct {
	source, dataset, topic int64
	table                  [3]string
	policy                 string
	paused                 bool
}

// OriginOf is that of a sync as it is configured.
func OriginOf(y *store.Sync) Origin {
	o := &y.Config.SourceAttributes.Object
	return Origin{
		source: y.SourceID, dataset: api.Value(y.DatasetID), topic: api.Value(y.TopicID),
		table:  [3]string{api.Value(o.TableCatalog), api.Value(o.TableSchema), api.Value(o.TableName)},
		policy: ColumnPolicy(&y.Config), paused: y.Config.Paused,
	}
}

// Accept takes the columns of a source as they will be at the next run, where an
// update shows that its client has seen them: another policy is set, a paused sync
// goes on, or another object is read.
func (before Origin) Accept(y *store.Sync) {
	now := OriginOf(y)
	before.paused = before.paused && !now.paused
	now.paused = false
	if before != now {
		y.Columns, y.Accepted = nil, nil
	}
}
