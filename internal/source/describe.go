package source

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/server/api"
)

// describer is a source whose columns cost one look into its catalogue, over the
// connection that has to be tried anyway. opened: the source itself is well, and
// the error is about the object.
type describer interface {
	Source
	describe(ctx context.Context, object Object) (columns []api.Column, opened bool, err error)
}

// OpenAt opens a source and reads the columns of an object, as every run does: it
// costs what Open costs and one query of the catalogue. err is why the source cannot
// be opened; missing is why the columns cannot be read, and the source is open then.
func (c *Catalogue) OpenAt(ctx context.Context, typ string, credentials map[string]json.RawMessage, o Options, object Object) (src Source, columns []api.Column, missing, err error) {
	t, ok := c.types[typ]
	if !ok || t.unopened == nil || len(c.CheckCredentials(typ, credentials)) > 0 {
		if src, err = c.Open(ctx, typ, credentials, o); err != nil {
			return nil, nil, nil, err
		}
		columns, missing = src.Columns(ctx, object)
		return src, columns, missing, nil
	}
	from := t.unopened(settings(credentials), o)
	columns, opened, err := from.describe(ctx, object)
	switch {
	case err == nil:
		return from, columns, nil, nil
	case opened:
		return from, nil, err, nil
	}
	return nil, nil, nil, clean(fmt.Errorf("open %s source: %w", typ, err), c.Secrets(typ, credentials))
}

// describe implements describer.
func (p *postgres) describe(ctx context.Context, object Object) (columns []api.Column, opened bool, err error) {
	err = p.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		opened = true
		if object.Query == "" {
			columns, _, err = p.columns(ctx, conn, object)
			return err
		}
		// Whether it is one SELECT was looked at as it was saved, and is when it is read.
		described, err := conn.Prepare(ctx, "", object.Query)
		if err != nil {
			return postgresQueryError(err)
		}
		columns, err = p.fieldColumns(ctx, conn, described.Fields)
		return err
	})
	return columns, opened, err
}

// describe implements describer.
func (s *sqliteSource) describe(ctx context.Context, object Object) (columns []api.Column, opened bool, err error) {
	err = s.with(ctx, func(conn *sqlite.Conn) error {
		if err := firstPage(conn); err != nil {
			return err
		}
		opened = true
		columns, err = s.columnsIn(conn, object)
		return err
	})
	return columns, opened, err
}
