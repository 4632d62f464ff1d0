package sources

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

// CheckedQuery is a source's description of a query.
type CheckedQuery struct {
	columns []api.Column
	count   *int64 // nil: not known
}

// Set takes over what the source said.
func (q CheckedQuery) Set(tx *store.Tx, d *store.Dataset) {
	d.Columns, d.CachedRecordCount = q.columns, q.count
	if q.count != nil {
		d.RecordCountAt = tx.Now()
	}
}

// CheckQuery checks with the source that a query runs, and returns its columns. A query that
// cannot be checked is refused: its columns could not be mapped.
func (k *Sources) CheckQuery(ctx context.Context, a Access, query string) (CheckedQuery, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	src, err := a.Open(ctx)
	if err != nil {
		return CheckedQuery{}, problem.InvalidField("query", "cannot be checked, because the source does not answer: %s", a.Clean(err.Error()))
	}
	defer src.Close()
	columns, err := src.Columns(ctx, source.Object{Query: query})
	var refused *source.QueryError
	switch {
	case errors.As(err, &refused):
		return CheckedQuery{}, problem.InvalidField("query", "the source refuses it: %s", a.Clean(refused.Error()))
	case err != nil:
		return CheckedQuery{}, problem.InvalidField("query", "cannot be checked: %s", a.Clean(err.Error()))
	case len(columns) == 0:
		return CheckedQuery{}, problem.InvalidField("query", "gives no columns; select at least one")
	}
	return CheckedQuery{columns, countRows(ctx, src, query)}, nil
}

// countTimeout bounds the counting of records: a number that is only nice to
// know is not worth a long wait.
const countTimeout = 2 * time.Second

// countRows counts what a query gives; nil when that takes too long, or when
// the source does not know.
func countRows(ctx context.Context, src source.Source, query string) *int64 {
	reader, ok := src.(source.Reader)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	rows, err := reader.Rows(ctx, source.Object{Query: "SELECT count(*) AS records " + asTable(query)}, nil, nil)
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

// CheckSQL refuses sources on which no query can run.
func (k *Sources) CheckSQL(src *store.Source) error {
	if !k.Described(src.Type).SQL {
		return problem.Refuse(http.StatusBadRequest, "a source of type %s cannot run a query; its objects are used by themselves", src.Type)
	}
	return nil
}

// CheckQueryText names a query that is missing; its content is the source's
// to judge.
func CheckQueryText(field string, query *string) []api.Problem {
	if query == nil {
		return []api.Problem{{Field: field, Message: "is required: one SELECT statement"}}
	}
	if strings.TrimSpace(*query) == "" {
		return []api.Problem{{Field: field, Message: "must not be empty"}}
	}
	return nil
}
