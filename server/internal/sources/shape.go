package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// Shape is what a sync must know of its source object.
type Shape struct {
	Source            *store.Source
	Columns           []api.Column
	ColumnsKnown      bool // false: the rules about columns cannot be held
	Streaming         bool // the object is a topic
	StreamingDatabase bool // sync_behavior_family has a rule about it (spec 2.6)
	DatasetID         *int64
	TopicID           *int64
	Segment           *store.Segment   // of which the rows are read alone
	Segments          []*store.Segment // that each row is marked with
	Object            api.SourceObject // as replies show it
}

// sourceShape finds the source object that a sync names (spec 2.8) and names
// every problem with its field. A table that is not known is looked for in the
// source itself before it is refused: it may be younger than the last refresh.
func (k *Sources) Shape(ctx context.Context, workspaceID int64, at api.SourceAttributes) (Shape, []api.Problem, error) {
	// Looked at twice at most: by the stored tables, and after a new discovery.
	look := func() (found Shape, a Access, problems []api.Problem, err error) {
		err = k.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
			if found, problems, err = k.ShapeOf(tx, workspaceID, at); err == nil && found.Source != nil {
				a, err = k.Access(tx, found.Source)
			}
			return err
		})
		return found, a, problems, err
	}
	found, a, problems, err := look()
	if err != nil || found.Source == nil || len(problems) != 1 || problems[0].Field != tableNameField {
		return found, problems, err
	}
	if err := k.Rediscover(ctx, a); err != nil {
		// The table stays unknown; that the source is down is in the log.
		k.Log.Warn("table of a sync is not known and its source does not answer", "source", a.ID, "error", err)
		return found, problems, nil
	}
	found, _, problems, err = look()
	return found, problems, err
}

// Places in a sync's payload (spec 2.8).
const (
	objectField    = "source_attributes.object"
	tableNameField = objectField + ".table_name"
)

// ShapeOf is sourceShape within a transaction and by what the store knows. The
// source is there, with a problem too, when only the object is wrong.
func (k *Sources) ShapeOf(tx *store.Tx, workspaceID int64, at api.SourceAttributes) (Shape, []api.Problem, error) {
	src, err := store.Sources.Read(tx, workspaceID, at.ConnectionID)
	if errors.Is(err, store.ErrNotFound) {
		return Shape{}, []api.Problem{{
			Field:   "source_attributes.connection_id",
			Message: fmt.Sprintf("there is no source %d in this workspace", at.ConnectionID),
		}}, nil
	}
	if err != nil {
		return Shape{}, nil, err
	}
	// An unknown type has no rules.
	described := k.Described(src.Type)
	found := Shape{Source: src, StreamingDatabase: described.StreamingDatabase}
	resolve, ok := map[string]func(*store.Tx, api.SourceObject) ([]api.Problem, error){
		api.ObjectTable:   found.table,
		api.ObjectDataset: found.dataset,
		api.ObjectModel:   found.model,
		api.ObjectTopic:   found.topic,
	}[at.Object.Type]
	if !ok {
		return found, []api.Problem{{
			Field:   objectField + ".type",
			Message: fmt.Sprintf("unknown type %q: must be one of table, dataset, model, topic", foreign.Clip(at.Object.Type, 64)),
		}}, nil
	}
	problems, err := resolve(tx, at.Object)
	if err == nil && len(problems) == 0 && at.FilterSegmentID != nil {
		problems, err = found.segment(tx, *at.FilterSegmentID)
	}
	return found, problems, err
}

// absent is the problem of an object that is not there.
func absent(field, format string, args ...any) []api.Problem {
	return []api.Problem{{Field: objectField + field, Message: fmt.Sprintf(format, args...)}}
}

// missing turns a not-found error into that problem.
func missing(err error, field, format string, args ...any) ([]api.Problem, error) {
	if errors.Is(err, store.ErrNotFound) {
		return absent(field, format, args...), nil
	}
	return nil, err
}

// table finds a table by its three names, or by its id alone.
func (f *Shape) table(tx *store.Tx, o api.SourceObject) ([]api.Problem, error) {
	if o.ID != nil && o.TableName == nil {
		t, err := store.SourceTables.Read(tx, f.Source.ID, *o.ID)
		if err == nil && t.Gone {
			err = store.ErrNotFound
		}
		if err != nil {
			return missing(err, ".id", "source %d has no table %d", f.Source.ID, *o.ID)
		}
		f.setTable(t)
		return nil, nil
	}
	// By all three names, as replies show a table (spec 2.8).
	var problems []api.Problem
	for name, value := range map[string]*string{"table_catalog": o.TableCatalog, "table_schema": o.TableSchema, "table_name": o.TableName} {
		if value == nil {
			problems = append(problems, absent("."+name, "is required for a table")...)
		}
	}
	if len(problems) > 0 {
		slices.SortFunc(problems, func(a, b api.Problem) int { return strings.Compare(a.Field, b.Field) })
		return problems, nil
	}
	t, err := FindTable(tx, f.Source, *o.TableCatalog, *o.TableSchema, *o.TableName)
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		help := "see /sources/%[1]d/objects, or refresh its tables"
		if !api.Value(cmp.Or(f.Source.TestSucceeded, api.Ptr(true))) {
			help = "its connection test failed: send PATCH /sources/%[1]d, whose Warning header says why, correct it, and refresh its tables"
		}
		return absent(".table_name", "source %d has no table %s.%s.%s; "+help,
			f.Source.ID, foreign.Clip(*o.TableCatalog, 64), foreign.Clip(*o.TableSchema, 64), foreign.Clip(*o.TableName, 64)), nil
	}
	f.setTable(t)
	return nil, nil
}

// FindTable finds a table that the source still has; nil when there is none. A
// file may be named with its extension too.
func FindTable(tx *store.Tx, src *store.Source, catalog, schema, name string) (*store.SourceTable, error) {
	names := []string{name}
	if described, _ := source.Type(src.Type); described.File {
		names = append(names, strings.TrimSuffix(name, path.Ext(name)))
	}
	for _, name := range names {
		t, err := tx.FindSourceTable(src.ID, catalog, schema, name)
		if err == nil && !t.Gone {
			return t, nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return nil, nil
}

// setTable takes a table over, in replies with the four keys of spec 2.8.
func (f *Shape) setTable(t *store.SourceTable) {
	f.Columns, f.ColumnsKnown = t.Columns, true
	f.Object = api.SourceObject{Type: api.ObjectTable, TableCatalog: &t.Catalog, TableSchema: &t.Schema, TableName: &t.Name}
}

// dataset finds a dataset of this source by its id.
func (f *Shape) dataset(tx *store.Tx, o api.SourceObject) ([]api.Problem, error) {
	if o.ID == nil {
		return absent(".id", "is required for a dataset"), nil
	}
	d, err := store.Datasets.Read(tx, f.Source.WorkspaceID, *o.ID)
	if err != nil {
		return missing(err, ".id", "there is no dataset %d in this workspace", *o.ID)
	}
	if d.SourceID != f.Source.ID { // the connection is what the rows are read from
		return absent(".id", "dataset %d belongs to source %d, not to source %d", d.ID, d.SourceID, f.Source.ID), nil
	}
	f.Columns, f.ColumnsKnown, f.DatasetID = d.Columns, true, &d.ID
	f.Object = namedObject(api.ObjectDataset, d.Row, d.Name)
	f.Object.Query = &d.Query
	return nil, nil
}

// model finds a model of this source by its id, or by its name.
func (f *Shape) model(tx *store.Tx, o api.SourceObject) ([]api.Problem, error) {
	m, problems, err := f.findModel(tx, o)
	if err != nil || len(problems) > 0 {
		return problems, err
	}
	d, err := store.Datasets.Read(tx, f.Source.WorkspaceID, m.DatasetID)
	if err != nil {
		return nil, err
	}
	// The dataset is what the sync holds on to, so neither can be deleted.
	f.Columns, f.ColumnsKnown, f.DatasetID = d.Columns, true, &d.ID
	f.Object = namedObject(api.ObjectModel, m.Row, m.Name)
	f.Object.Query, f.Object.DatasetID = &m.Query, &d.ID
	return nil, nil
}

// findModel gives the model, or the problem of one that is not there.
func (f *Shape) findModel(tx *store.Tx, o api.SourceObject) (*store.Model, []api.Problem, error) {
	switch {
	case o.ID != nil: // wins over the name, which a reply showed and may be old
		m, err := store.Models.Read(tx, f.Source.ID, *o.ID)
		problems, err := missing(err, ".id", "source %d has no model %d", f.Source.ID, *o.ID)
		return m, problems, err
	case o.Name != nil:
		m, err := tx.ModelByName(f.Source.ID, *o.Name)
		problems, err := missing(err, ".name", "source %d has no model named %q", f.Source.ID, foreign.Clip(*o.Name, 64))
		return m, problems, err
	}
	return nil, absent(".id", "is required for a model, or its name"), nil
}

// topic finds a topic of this source by its id.
func (f *Shape) topic(tx *store.Tx, o api.SourceObject) ([]api.Problem, error) {
	if o.ID == nil {
		return absent(".id", "is required for a topic"), nil
	}
	t, err := store.Topics.Read(tx, f.Source.ID, *o.ID)
	if err != nil {
		return missing(err, ".id", "source %d has no topic %d", f.Source.ID, *o.ID)
	}
	f.Columns, f.ColumnsKnown, f.TopicID, f.Streaming = source.TopicColumns(t.Schema), true, &t.ID, true
	f.Object = namedObject(api.ObjectTopic, t.Row, t.Name)
	return nil, nil
}

// namedObject is what datasets, models and topics show alike.
func namedObject(kind string, row store.Row, name string) api.SourceObject {
	return api.SourceObject{
		Type: kind, ID: &row.ID, Name: &name,
		CreatedAt: api.At(row.CreatedAt), UpdatedAt: api.At(row.UpdatedAt),
	}
}
