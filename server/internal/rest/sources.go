package rest

import (
	"slices"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// sourceOf shows a source. A basic engine keeps its state in the service and
// only ever reads; an advanced one writes its own schema.
func (h *Handlers) sourceOf(src *store.Source) api.Source {
	details := src.Details
	if details == nil {
		details = map[string]any{}
	}
	return api.Source{
		ID: src.ID, Name: src.Name, Label: src.Name, Type: h.Sources.TypeName(src.Type), SyncEngine: src.Engine,
		CreatedAt: api.Time{Time: src.CreatedAt}, LastTestSucceeded: src.TestSucceeded, LastTestedAt: api.At(src.TestedAt),
		ConnectionDetails: details, ReadOnlyConnection: h.worksAs(src) == api.EngineBasic,
		WritebackRetention: h.Shared.Dialect.Retention(src.WritebackRetention),
	}
}

// worksAs is the engine that a source works with. The live dialect shows the one
// that was sent, also where the type has none but basic.
func (h *Handlers) worksAs(src *store.Source) string {
	described, known := h.Sources.Types().Type(src.Type)
	if known && !slices.Contains(described.SupportedSyncEngines, src.Engine) {
		return api.EngineBasic
	}
	return src.Engine
}

// ownSource finds the source of the path in the caller's workspace.
var ownSource = one(callersWorkspace, "source_id", store.Sources.Read)

// createSource stores a connection even if its test fails, so that a source can
// be set up before its network is; the reply has the test's result.
func (h *Handlers) createSource(c *call.Call) (*call.Reply, error) {
	connection, err := connectionIn(c)
	if err != nil {
		return nil, err
	}
	src := &store.Source{WorkspaceID: c.Who.WorkspaceID}
	// An emulated warehouse is tried in memory: its own file comes with its id.
	a, forget := h.Sources.Trial()
	defer forget()
	if err := h.applySource(c, connection, src, &a); err != nil {
		return nil, err
	}
	// Outside of any transaction: a slow network must not stop other writers.
	tables, why := a.Probe(c.Ctx)
	if err := c.Ctx.Err(); err != nil {
		return nil, err // no client waits for the answer: leave nothing behind
	}
	err = c.Update(func(tx *store.Tx) error {
		src.TestSucceeded, src.TestedAt = api.Ptr(why == ""), tx.Now()
		if err := tx.CreateSource(src, a.Credentials); err != nil {
			return err
		}
		// A world that was replaced may have left a warehouse under this id.
		if err := (sources.Access{Options: h.Sources.Options(src.ID)}).Forget(); err != nil {
			return err
		}
		return tx.PutSourceTables(src.ID, tables)
	})
	if err != nil {
		return nil, err
	}
	warnTest(c, why)
	got, err := call.Created(h.sourceOf(src))
	got.Deprecated = connection.Label != nil
	return got, err
}

// updateSource changes a connection and tests it again. The tables of a source
// that does not answer stay as they were.
func (h *Handlers) updateSource(c *call.Call) (*call.Reply, error) {
	connection, err := connectionIn(c)
	if err != nil {
		return nil, err
	}
	var src *store.Source
	var a sources.Access
	err = c.View(func(tx *store.Tx) (err error) {
		if src, err = ownSource(c, tx); err == nil {
			a, err = h.Sources.Access(tx, src)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := h.applySource(c, connection, src, &a); err != nil {
		return nil, err
	}
	tables, why := a.Probe(c.Ctx)
	if err := c.Ctx.Err(); err != nil {
		return nil, err
	}
	err = c.Update(func(tx *store.Tx) error {
		// The version of src is the one that was read above: of two updates at
		// the same time the second is a conflict, whatever its test took.
		src.TestSucceeded, src.TestedAt = api.Ptr(why == ""), tx.Now()
		if err := tx.SaveSource(src, a.Credentials); err != nil || why != "" {
			return err
		}
		return tx.PutSourceTables(src.ID, tables)
	})
	if err != nil {
		return nil, err
	}
	warnTest(c, why)
	got, err := call.Updated(h.sourceOf(src))
	got.Deprecated = connection.Label != nil
	return got, err
}

// deleteSource refuses while syncs, datasets or models use the source. Tables
// and topics without a sync go with it.
func (h *Handlers) deleteSource(c *call.Call) (*call.Reply, error) {
	var a sources.Access
	err := c.Update(func(tx *store.Tx) error {
		src, err := ownSource(c, tx)
		if err != nil {
			return err
		}
		// The store would take models along; a client should decide about them.
		_, models, err := store.Models.List(tx, src.ID, store.Page{PerPage: 1})
		if err != nil {
			return err
		}
		if models > 0 {
			return &store.InUseError{Kind: "source", ID: src.ID, By: "model", Count: int(models)}
		}
		a = sources.Access{ID: src.ID, Type: src.Type, Options: h.Sources.Options(src.ID)}
		return store.Sources.Delete(tx, src.WorkspaceID, src.ID)
	})
	if err != nil {
		return nil, err
	}
	if err := a.Forget(); err != nil { // the source is gone all the same
		h.Log.Warn("tables of a deleted source are left over", "source", a.ID, "error", err)
	}
	return call.Deleted()
}

// listSourceTypes lists the kinds of sources that can be created (spec 2.10).
// They have no time of creation; the order of the catalogue is used.
func (h *Handlers) listSourceTypes(c *call.Call) (*call.Reply, error) {
	page, types := c.Page(), h.Sources.Types().Types()
	shown := []api.SourceType{}
	for _, t := range call.SlicePage(types, page) {
		t.ConfigurationFields = api.ConfigFields{Fields: h.Shared.Dialect.Fields(t.ConfigurationFields.Fields)}
		t.CreatableViaConnectLink = t.ConfigurationFields.Linkable()
		shown = append(shown, t)
	}
	return c.List(page, int64(len(types)), shown)
}
