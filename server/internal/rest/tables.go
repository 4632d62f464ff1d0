package rest

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// tableOf shows a table with its columns.
func tableOf(t *store.SourceTable) api.Table {
	shown := tableNameOf(t)
	shown.Columns = t.Columns
	return shown
}

// tableNameOf shows a table as the list of objects does.
func tableNameOf(t *store.SourceTable) api.Table {
	return api.Table{
		Type: api.ObjectTable, ID: t.ID,
		TableCatalog: t.Catalog, TableSchema: t.Schema, TableName: t.Name,
	}
}

// ownTable finds the table of the path. One that the source no longer has is not
// found; it comes back under the same id when the source has it again.
func ownTable(c *call.Call, tx *store.Tx) (*store.Source, *store.SourceTable, error) {
	src, err := ownSource(c, tx)
	if err != nil {
		return nil, nil, err
	}
	t, err := store.SourceTables.Read(tx, src.ID, c.ID("table_id"))
	if err == nil && t.Gone {
		err = fmt.Errorf("table %d is gone: %w", t.ID, store.ErrNotFound)
	}
	return src, t, err
}

// tableOfPath is ownTable without its source.
func tableOfPath(c *call.Call, tx *store.Tx) (*store.SourceTable, error) {
	_, t, err := ownTable(c, tx)
	return t, err
}

// refreshSourceTables discovers the tables again.
func (h *Handlers) refreshSourceTables(c *call.Call) (*call.Reply, error) {
	var a sources.Access
	err := c.View(func(tx *store.Tx) error {
		src, err := ownSource(c, tx)
		if err == nil {
			a, err = h.Sources.Access(tx, src)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return h.startRefresh(c, store.RefreshTables, a.ID, func(ctx context.Context) error { return h.Sources.Rediscover(ctx, a) })
}

// refreshTable reads the columns of one table again, however the path names it.
func (h *Handlers) refreshTable(find func(*call.Call, *store.Tx) (*store.Source, *store.SourceTable, error)) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		var a sources.Access
		var t *store.SourceTable
		err := c.View(func(tx *store.Tx) (err error) {
			var src *store.Source
			if src, t, err = find(c, tx); err == nil {
				a, err = h.Sources.Access(tx, src)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return h.startRefresh(c, store.RefreshColumns, t.ID, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, sources.Timeout)
			defer cancel()
			return h.readColumns(ctx, a, t)
		})
	}
}

// readColumns brings the columns of one table up to date. A table that the
// source dropped is marked as gone.
func (h *Handlers) readColumns(ctx context.Context, a sources.Access, t *store.SourceTable) error {
	src, err := a.Open(ctx)
	if err != nil {
		return errors.New(a.Clean(err.Error()))
	}
	defer src.Close()
	columns, missing := src.Columns(ctx, source.Object{Catalog: t.Catalog, Schema: t.Schema, Name: t.Name})
	if missing != nil && !errors.Is(missing, source.ErrNoTable) {
		return errors.New(a.Clean(missing.Error()))
	}
	err = h.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		if changed, err := a.Changed(tx); changed || err != nil {
			return err
		}
		stored, err := store.SourceTables.Read(tx, a.ID, t.ID)
		if err != nil {
			return err
		}
		// Gone tables keep the columns they had, for when they come back.
		if stored.Gone = missing != nil; !stored.Gone {
			stored.Columns = columns
		}
		return store.SourceTables.Save(tx, stored)
	})
	// A refresh of a table that is gone has failed, though the store is right.
	return errors.Join(missing, err)
}

// fetchRefreshTablesStatus reports the status of a refresh of the tables.
func (h *Handlers) fetchRefreshTablesStatus(c *call.Call) (*call.Reply, error) {
	if _, err := view(c, ownSource); err != nil {
		return nil, err
	}
	return h.refreshStatus(c, store.RefreshTables, c.ID("source_id"))
}

// fetchRefreshColumnsStatus does so for the columns of one table.
func (h *Handlers) fetchRefreshColumnsStatus(c *call.Call) (*call.Reply, error) {
	err := c.View(func(tx *store.Tx) error {
		_, _, err := ownTable(c, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h.refreshStatus(c, store.RefreshColumns, c.ID("table_id"))
}
