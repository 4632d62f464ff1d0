package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// checkedQuery is what a source says about a query.
type checkedQuery struct {
	columns []api.Column
	count   *int64 // nil: not known
}

// set takes over what the source said.
func (q checkedQuery) set(tx *store.Tx, d *store.Dataset) {
	d.Columns, d.CachedRecordCount = q.columns, q.count
	if q.count != nil {
		d.RecordCountAt = tx.Now()
	}
}

// checkQuery asks the source whether it can run a query, and what comes out. A
// query that cannot be checked is refused: nobody could map its columns.
func (s *Server) checkQuery(ctx context.Context, a sourceAccess, query string) (found checkedQuery, err error) {
	err = s.latch.Aside(ctx, func(ctx context.Context) error {
		found, err = s.askForQuery(ctx, a, query)
		return err
	})
	return found, err
}

func (s *Server) askForQuery(ctx context.Context, a sourceAccess, query string) (checkedQuery, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	src, err := a.open(ctx)
	if err != nil {
		return checkedQuery{}, problem.InvalidField("query", "cannot be checked, because the source does not answer: %s", a.clean(err.Error()))
	}
	defer src.Close()
	columns, err := src.Columns(ctx, source.Object{Query: query})
	var refused *source.QueryError
	switch {
	case errors.As(err, &refused):
		return checkedQuery{}, problem.InvalidField("query", "the source refuses it: %s", a.clean(refused.Error()))
	case err != nil:
		return checkedQuery{}, problem.InvalidField("query", "cannot be checked: %s", a.clean(err.Error()))
	case len(columns) == 0:
		return checkedQuery{}, problem.InvalidField("query", "gives no columns; select at least one")
	}
	return checkedQuery{columns, countRows(ctx, src, query)}, nil
}

// countTimeout bounds the counting of records: a number that is only nice to
// know is not worth a long wait.
const countTimeout = 2 * time.Second

// countRows counts what a query gives; nil when that takes too long, or when
// the source cannot tell.
func countRows(ctx context.Context, src source.Source, query string) *int64 {
	reader, ok := src.(source.Reader)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	// The line break ends a comment at the end of the query.
	counting := "SELECT count(*) AS records FROM (\n" + strings.TrimRight(query, "; \t\r\n") + "\n) AS counted"
	rows, err := reader.Rows(ctx, source.Object{Query: counting}, nil, nil)
	if err != nil {
		return nil
	}
	defer rows.Close()
	row, err := rows.Next()
	if err != nil || len(row) != 1 {
		return nil
	}
	count, err := strconv.ParseInt(string(row[0]), 10, 64)
	if err != nil {
		return nil
	}
	return &count
}

// checkSQL refuses sources on which no query can run.
func (s *Server) checkSQL(src *store.Source) error {
	if !s.sourceType(src.Type).SQL {
		return problem.Refuse(http.StatusBadRequest, "a source of type %s cannot run a query; its objects are used by themselves", src.Type)
	}
	return nil
}

// checkQueryText names a query that is missing; what is in it is the source's
// to judge.
func checkQueryText(field string, query *string) []api.Problem {
	if query == nil {
		return []api.Problem{{Field: field, Message: "is required: one SELECT statement"}}
	}
	if strings.TrimSpace(*query) == "" {
		return []api.Problem{{Field: field, Message: "must not be empty"}}
	}
	return nil
}
