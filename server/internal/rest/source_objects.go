package rest

import (
	"cmp"
	"slices"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
)

// sourceObject is one row of the list of a source's objects, a table
// or a model, with what the list is ordered by.
type sourceObject struct {
	at    time.Time
	id    int64
	shown any
}

// modelObject is a model as the list of objects shows it.
type modelObject struct {
	Type      string   `json:"type"` // model
	ID        int64    `json:"id"`
	Name      string   `json:"name"`
	CreatedAt api.Time `json:"created_at"`
	UpdatedAt api.Time `json:"updated_at"`
	Query     string   `json:"query"`
}

// listSourceObjects lists tables and models together by their time of creation
// (for a table: of its discovery).
func (h *Handlers) listSourceObjects(c *call.Call) (*call.Reply, error) {
	page, total := c.Page(), int64(0)
	shown := []any{}
	err := c.View(func(tx *store.Tx) error {
		src, err := ownSource(c, tx)
		if err != nil {
			return err
		}
		_, models, err := store.Models.List(tx, src.ID, store.Page{PerPage: 1})
		if err != nil {
			return err
		}
		if models == 0 { // the store pages faster than a merge, and most sources are here
			tables, n, err := tx.SourceTables(src.ID, page)
			for _, t := range tables {
				shown = append(shown, tableNameOf(t))
			}
			total = n
			return err
		}
		objects, err := objectsOf(tx, src)
		for _, o := range call.SlicePage(objects, page) {
			shown = append(shown, o.shown)
		}
		total = int64(len(objects))
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.List(page, total, shown)
}

// objectsOf gives all objects, oldest first.
func objectsOf(tx *store.Tx, src *store.Source) ([]sourceObject, error) {
	// Ids of tables and models count apart, so only the time orders them.
	var objects []sourceObject
	tables, _, err := tx.SourceTables(src.ID, store.Page{Ascending: true})
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		objects = append(objects, sourceObject{t.CreatedAt, t.ID, tableNameOf(t)})
	}
	models, _, err := store.Models.List(tx, src.ID, store.Page{Ascending: true})
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		objects = append(objects, sourceObject{m.CreatedAt, m.ID, modelObject{
			Type: api.ObjectModel, ID: m.ID, Name: m.Name, Query: m.Query,
			CreatedAt: api.Time{Time: m.CreatedAt}, UpdatedAt: api.Time{Time: m.UpdatedAt},
		}})
	}
	// By the time and then by the id, as the store orders a list of one kind.
	slices.SortStableFunc(objects, func(a, b sourceObject) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id))
	})
	return objects, nil
}
