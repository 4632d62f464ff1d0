package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// startRefresh notes a refresh, runs it in the background, and answers its key.
func (h *Handlers) startRefresh(c *call.Call, kind string, target int64, work func(context.Context) error) (*call.Reply, error) {
	r := &store.Refresh{WorkspaceID: c.Who.WorkspaceID, Kind: kind, TargetID: target, Status: store.RefreshProcessing, StartedAt: h.Clock.Now()}
	if err := c.Update(func(tx *store.Tx) error { return store.Refreshes.Create(tx, r) }); err != nil {
		return nil, err
	}
	// The client polls the status; it need not wait for a slow destination.
	h.Work.Later("refresh "+kind, func(ctx context.Context) {
		// A failure is noted as one: a client that waits must see an end.
		r.Status, r.Error = store.RefreshCompleted, ""
		if err := work(ctx); err != nil {
			r.Status, r.Error = store.RefreshFailed, err.Error()
			h.Log.Warn("refresh failed", "kind", kind, "target", target, "error", err)
		}
		r.CompletedAt = h.Clock.Now()
		err := h.Shared.Store.Update(ctx, func(tx *store.Tx) error { return store.Refreshes.Save(tx, r) })
		// Who has deleted its target does not ask for it.
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrNotFound) {
			h.Log.Error("refresh cannot be noted", "kind", kind, "target", target, "error", err)
		}
	})
	return h.refreshReply(r.Key())
}

// refreshReply is {"refresh_key": n}, bare in the live dialect.
func (h *Handlers) refreshReply(key int64) (*call.Reply, error) {
	body := map[string]any{"refresh_key": key}
	if !h.Shared.Dialect.BareKeys {
		body["status"] = api.StatusSuccess
	}
	return &call.Reply{Code: http.StatusOK, Body: body}, nil
}

// refreshStatus answers {"status": "processing"} until the refresh has ended.
func (h *Handlers) refreshStatus(c *call.Call, kind string, target int64) (*call.Reply, error) {
	r, err := h.refreshOf(c, kind, target)
	if err != nil {
		return nil, err
	}
	return &call.Reply{Code: http.StatusOK, Body: map[string]string{"status": r.Status}}, nil
}

// refreshOf is the refresh of a target that the caller's key names.
func (h *Handlers) refreshOf(c *call.Call, kind string, target int64) (*store.Refresh, error) {
	// Keys count on within a target, so one of another target is not found.
	key, err := strconv.ParseInt(c.R.URL.Query().Get("refresh_key"), 10, 64)
	if err != nil {
		return nil, problem.InvalidField("refresh_key", "must be the key that the refresh answered")
	}
	r, err := view(c, func(c *call.Call, tx *store.Tx) (*store.Refresh, error) { return tx.Refresh(kind, target, key) })
	return r, err
}

// Columns are read again for a dataset, for a model (which is a dataset with
// another address) and for a table by its three names.

// datasetOfModel finds the dataset of the model of the path.
func datasetOfModel(c *call.Call, tx *store.Tx) (*store.Dataset, error) {
	m, err := ownModel(c, tx)
	if err != nil {
		return nil, err
	}
	return store.Datasets.Read(tx, c.Who.WorkspaceID, m.DatasetID)
}

// refreshDataset reads the columns of a dataset's query from the source again.
func (h *Handlers) refreshDataset(find finder[*store.Dataset]) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		var d *store.Dataset
		var a sources.Access
		err := c.View(func(tx *store.Tx) (err error) {
			if d, err = find(c, tx); err == nil {
				a, err = h.accessByID(c, tx, d.SourceID)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return h.startRefresh(c, store.RefreshDataset, d.ID, func(ctx context.Context) error { return h.reread(ctx, a, d) })
	}
}

// reread stores the source's description of a dataset's query, for its model
// too. A query that was changed meanwhile has been checked by whoever did it.
func (h *Handlers) reread(ctx context.Context, a sources.Access, d *store.Dataset) error {
	checked, err := h.Sources.CheckQuery(ctx, a, d.Query)
	if err != nil {
		return err
	}
	return h.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		stored, err := store.Datasets.Read(tx, d.WorkspaceID, d.ID)
		if err != nil || stored.Query != d.Query {
			return err
		}
		checked.Set(tx, stored)
		if err := store.Datasets.Save(tx, stored); err != nil {
			return err
		}
		m, err := tx.ModelOfDataset(d.ID)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		follow(m, stored)
		return store.Models.Save(tx, m)
	})
}

// fetchDatasetRefresh reports the status of such a refresh.
func (h *Handlers) fetchDatasetRefresh(find finder[*store.Dataset]) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		d, err := view(c, find)
		if err != nil {
			return nil, err
		}
		return h.columnsStatus(c, store.RefreshDataset, d.ID)
	}
}

// columnsStatus is refreshStatus where a refresh that failed is a 400 with the
// reason.
func (h *Handlers) columnsStatus(c *call.Call, kind string, target int64) (*call.Reply, error) {
	r, err := h.refreshOf(c, kind, target)
	if err != nil {
		return nil, err
	}
	if r.Status == store.RefreshFailed {
		return nil, problem.Refuse(http.StatusBadRequest, "the refresh failed: %s", r.Error)
	}
	return &call.Reply{Code: http.StatusOK, Body: map[string]string{"status": r.Status}}, nil
}

// namedTable finds the table that a query names.
func namedTable(c *call.Call, tx *store.Tx) (*store.Source, *store.SourceTable, error) {
	src, err := ownSource(c, tx)
	if err != nil {
		return nil, nil, err
	}
	query := c.R.URL.Query()
	t, err := sources.FindTable(tx, src, query.Get("table_catalog"), query.Get("table_schema"), query.Get("table_name"))
	if err == nil && t == nil {
		err = problem.Refuse(http.StatusNotFound, "source %d has no such table; see its objects, or refresh its tables", src.ID)
	}
	return src, t, err
}

// fetchNamedTableRefresh reports its status.
func (h *Handlers) fetchNamedTableRefresh(c *call.Call) (*call.Reply, error) {
	t, err := view(c, func(c *call.Call, tx *store.Tx) (*store.SourceTable, error) {
		_, t, err := namedTable(c, tx)
		return t, err
	})
	if err != nil {
		return nil, err
	}
	return h.columnsStatus(c, store.RefreshColumns, t.ID)
}

// columnList is a page of columns with the time of the reading.
type columnList struct {
	api.List
	LastRefreshedAt api.Time `json:"last_refreshed_at"`
}

// fetchTableColumns lists the columns of a table as the last reading saw them, in
// their order.
func (h *Handlers) fetchTableColumns(c *call.Call) (*call.Reply, error) {
	var t *store.SourceTable
	var at time.Time
	err := c.View(func(tx *store.Tx) (err error) {
		var src *store.Source
		if src, t, err = namedTable(c, tx); err == nil {
			at, err = lastReading(tx, src, t)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	page := c.Page()
	page.Ascending = true // columns have a separate order
	shown := []api.DatasetColumn{}
	for _, column := range call.SlicePage(t.Columns, page) {
		shown = append(shown, api.DatasetColumn{Name: column.Name, DataType: column.Type})
	}
	list := columnList{
		api.List{Status: api.StatusSuccess, Pagination: call.Paginate(page, int64(len(t.Columns))), Data: shown}, api.Time{Time: at},
	}
	if !h.Shared.Dialect.NextInEveryList {
		return &call.Reply{Code: http.StatusOK, Body: list}, nil
	}
	return &call.Reply{Code: http.StatusOK, Body: struct {
		columnList
		Next *string `json:"next"`
	}{list, c.Next(page, list.Pagination)}}, nil
}

// lastReading is when a table's columns were last read from the source: by a
// refresh, by the test of its connection, or when they were found to have
// changed.
func lastReading(tx *store.Tx, src *store.Source, t *store.SourceTable) (time.Time, error) {
	last := t.UpdatedAt
	if src.TestSucceeded != nil && *src.TestSucceeded && src.TestedAt.After(last) {
		last = src.TestedAt
	}
	for kind, target := range map[string]int64{store.RefreshColumns: t.ID, store.RefreshTables: src.ID} {
		at, err := tx.LastRefresh(kind, target)
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}
