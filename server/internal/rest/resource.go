package rest

import (
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
)

// finder reads what the path names, as far as the caller may see it.
type finder[Row any] func(*call.Call, *store.Tx) (Row, error)

// owner is the id of what rows belong to.
type owner = finder[int64]

func callersWorkspace(c *call.Call, _ *store.Tx) (int64, error) { return c.Who.WorkspaceID, nil }

func callersOrganization(c *call.Call, _ *store.Tx) (int64, error) { return c.Who.OrganizationID, nil }

func sourceOfPath(c *call.Call, tx *store.Tx) (int64, error) {
	src, err := ownSource(c, tx)
	if err != nil {
		return 0, err
	}
	return src.ID, nil
}

// one finds a row of an owner by the id that the path has under a name.
func one[Row any](of owner, id string, read func(*store.Tx, int64, int64) (Row, error)) finder[Row] {
	return func(c *call.Call, tx *store.Tx) (row Row, err error) {
		owner, err := of(c, tx)
		if err != nil {
			return row, err
		}
		return read(tx, owner, c.ID(id))
	}
}

// list answers one page of the rows of an owner.
func list[Row, Shown any](of owner, rows func(*store.Tx, int64, store.Page) ([]Row, int64, error), show func(Row) Shown) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		return call.PageOf(c, func(tx *store.Tx, page store.Page) ([]Row, int64, error) {
			owner, err := of(c, tx)
			if err != nil {
				return nil, 0, err
			}
			return rows(tx, owner, page)
		}, show)
	}
}

// fetch answers one row. It is shown within the view, since a row may belong to the
// transaction that has read it.
func fetch[Row, Shown any](find finder[Row], show func(Row) Shown) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		shown, err := view(c, func(c *call.Call, tx *store.Tx) (shown Shown, err error) {
			row, err := find(c, tx)
			if err == nil {
				shown = show(row)
			}
			return shown, err
		})
		if err != nil {
			return nil, err
		}
		return call.OK(shown)
	}
}

// update lays the body over the row that is stored now, saves it and answers it.
func update[Body, Row, Shown any](find finder[*Row], set func(Body, *call.Call, *Row) error, save func(*store.Tx, *Row) error, show func(*Row) Shown) call.Handler {
	return taking(func(c *call.Call, body Body) (*call.Reply, error) {
		var shown Shown
		err := c.Update(func(tx *store.Tx) error {
			row, err := find(c, tx)
			if err != nil {
				return err
			}
			if err := set(body, c, row); err != nil {
				return err
			}
			if err := save(tx, row); err != nil {
				return err
			}
			shown = show(row)
			return nil
		})
		if err != nil {
			return nil, err
		}
		return call.Updated(shown)
	})
}

// remove deletes the row of an owner whose id the path has under a name.
func remove(of owner, id string, remove func(*store.Tx, int64, int64) error) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		err := c.Update(func(tx *store.Tx) error {
			owner, err := of(c, tx)
			if err != nil {
				return err
			}
			return remove(tx, owner, c.ID(id))
		})
		if err != nil {
			return nil, err
		}
		return call.Deleted()
	}
}

// taking hands a handler the body.
func taking[Body any](handle func(*call.Call, Body) (*call.Reply, error)) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		var body Body
		if err := c.Decode(&body); err != nil {
			return nil, err
		}
		return handle(c, body)
	}
}

// admins refuses all others.
func admins(handle call.Handler) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		if err := call.RequireAdmin(c); err != nil {
			return nil, err
		}
		return handle(c)
	}
}

// view reads from one state of the store.
func view[T any](c *call.Call, find finder[T]) (T, error) {
	return store.Read(c.Ctx, c.Shared.Store, func(tx *store.Tx) (T, error) { return find(c, tx) })
}
