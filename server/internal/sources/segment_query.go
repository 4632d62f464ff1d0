package sources

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// asTable is a query as the table of another one. The line break ends a comment at
// its end.
func asTable(query string) string {
	return "FROM (\n" + strings.TrimRight(query, "; \t\r\n") + "\n) AS dataset"
}

// whereSegment is the part of a query that meets a condition. before is the text
// before the condition.
func whereSegment(query, condition string) (before, whole string) {
	before = "SELECT * " + asTable(query) + " WHERE ("
	return before, before + condition + "\n)"
}

// markSegments is the expression of the column that names the segments of a row.
func markSegments(segments []*store.Segment) string {
	marks := make([]string, len(segments))
	for i, g := range segments {
		marks[i] = fmt.Sprintf("CASE WHEN (%s\n) THEN '%s%d' ELSE '' END", g.Query, mapping.SegmentMark, g.ID)
	}
	return strings.Join(marks, " || ") + ` AS "` + mapping.SegmentColumn + `"`
}

// RowsOf is what a run reads: of a dataset the rows of the segment that the sync
// names, and the segments of each row where a mapping uses them.
func RowsOf(sh *Shape) source.Object {
	o := Readable(*sh)
	if o.Query == "" || sh.Segment == nil && len(sh.Segments) == 0 {
		return o
	}
	text := "SELECT *"
	if len(sh.Segments) > 0 {
		text += ", " + markSegments(sh.Segments)
	}
	text += "\n" + asTable(o.Query)
	if sh.Segment != nil {
		text += "\nWHERE (" + sh.Segment.Query + "\n)"
	}
	return source.Object{Query: text}
}

// CheckSegment checks with the source whether a condition holds on a dataset, and
// how many rows meet it; nil where that is not known.
func (k *Sources) CheckSegment(ctx context.Context, a Access, query, condition string) (*int64, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	src, err := a.Open(ctx)
	if err != nil {
		return nil, problem.InvalidField("query", "cannot be checked, because the source does not answer: %s", a.Clean(err.Error()))
	}
	defer src.Close()
	before, part := whereSegment(query, condition)
	// Both places of the condition: an aggregate is good for one of them, and
	// several expressions for the other.
	const beforeCase = "SELECT CASE WHEN ("
	for _, text := range []struct{ before, whole string }{
		{before, part}, {beforeCase, beforeCase + condition + "\n) THEN 1 ELSE 0 END AS met " + asTable(query)},
	} {
		_, err := src.Columns(ctx, source.Object{Query: text.whole})
		var refused *source.QueryError
		switch {
		case errors.As(err, &refused):
			own := *refused
			own.Position = max(own.Position-utf8.RuneCountInString(text.before), 0)
			return nil, problem.InvalidField("query", "the source refuses the condition: %s", a.Clean(own.Error()))
		case err != nil:
			return nil, problem.InvalidField("query", "cannot be checked: %s", a.Clean(err.Error()))
		}
	}
	return countRows(ctx, src, part), nil
}

// FitSegments checks with the source that the segments of a dataset work with
// its new query: the runs of their syncs would fail otherwise.
func (k *Sources) FitSegments(c *call.Call, a Access, d *store.Dataset) error {
	var segments []*store.Segment
	err := c.View(func(tx *store.Tx) (err error) {
		segments, err = tx.SegmentsOfDataset(d.ID)
		return err
	})
	if err != nil {
		return err
	}
	for _, g := range segments {
		if _, err := k.CheckSegment(c.Ctx, a, d.Query, g.Query); err != nil {
			var f *problem.Failure
			if errors.As(err, &f) && len(f.Problems) > 0 {
				return problem.InvalidField("query", "segment %d (%s) would not hold on it: %s", g.ID, foreign.Clip(g.Name, 64), f.Problems[0].Message)
			}
			return err
		}
	}
	return nil
}

// Readable is the source object as readers name it.
func Readable(sh Shape) source.Object {
	o := sh.Object
	if o.Query != nil && *o.Query != "" {
		return source.Object{Query: *o.Query}
	}
	if sh.Streaming {
		return source.Object{Name: api.Value(o.Name)}
	}
	return source.Object{Catalog: api.Value(o.TableCatalog), Schema: api.Value(o.TableSchema), Name: api.Value(o.TableName)}
}
