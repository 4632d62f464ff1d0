package rest

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// segmentBody is the body of POST and PATCH below /sources/{id}/filter_segments.
// Nil fields of a PATCH keep the stored value.
type segmentBody struct {
	Name        *string `json:"name"`
	Description *string `json:"description"`
	DatasetID   *int64  `json:"dataset_id"`
	Query       *string `json:"query"`
}

// apply sets the fields of the body and returns their problems.
func (b segmentBody) apply(c *call.Call, g *store.Segment) []api.Problem {
	if b.Name != nil {
		g.Name = strings.TrimSpace(*b.Name)
	}
	problems := organizations.CheckName("name", g.Name)
	if c.Has("description") { // null takes it away
		g.Description = b.Description
	}
	if b.Query != nil {
		g.Query = strings.TrimSpace(*b.Query)
	}
	if g.Query == "" {
		problems = append(problems, api.Problem{Field: "query", Message: "is required: a condition in SQL over the columns of the dataset, such as age > 17"})
	}
	return problems
}

// segmentOf shows a segment.
func segmentOf(g *store.Segment) api.FilterSegment {
	return api.FilterSegment{
		ID: g.ID, Name: g.Name, Description: g.Description, SourceID: g.SourceID, DatasetID: g.DatasetID, Query: g.Query,
		CachedRecordCount: g.CachedRecordCount, CreatedAt: api.Time{Time: g.CreatedAt}, UpdatedAt: api.Time{Time: g.UpdatedAt},
	}
}

// ownSegment finds the segment of the path below the source of the path.
var ownSegment = one(sourceOfPath, "segment_id", store.Segments.Read)

// createFilterSegment stores a condition that the source has tried on its dataset.
func (h *Handlers) createFilterSegment(c *call.Call, body segmentBody) (*call.Reply, error) {
	g := &store.Segment{}
	problems := body.apply(c, g)
	var d *store.Dataset
	var a sources.Access
	err := c.View(func(tx *store.Tx) error {
		src, err := ownSource(c, tx)
		if err != nil {
			return err
		}
		g.SourceID = src.ID
		var more []api.Problem
		if d, more, err = datasetFor(tx, src, body.DatasetID); err != nil {
			return err
		}
		problems = append(problems, more...)
		a, err = h.Sources.Access(tx, src)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	g.DatasetID = d.ID
	if g.CachedRecordCount, err = h.Sources.CheckSegment(c.Ctx, a, d.Query, g.Query); err != nil {
		return nil, err
	}
	err = c.Update(func(tx *store.Tx) error {
		// Both may have been deleted during the check.
		src, err := ownSource(c, tx)
		if err != nil {
			return err
		}
		if _, more, err := datasetFor(tx, src, &g.DatasetID); err != nil || len(more) > 0 {
			return cmp.Or(err, error(problem.Invalid(more)))
		}
		return store.Segments.Create(tx, g)
	})
	if err != nil {
		return nil, err
	}
	return call.Created(segmentOf(g))
}

// datasetFor finds the dataset of a source that a body names.
func datasetFor(tx *store.Tx, src *store.Source, id *int64) (*store.Dataset, []api.Problem, error) {
	problem := func(format string, args ...any) []api.Problem {
		return []api.Problem{{Field: "dataset_id", Message: fmt.Sprintf(format, args...)}}
	}
	if id == nil {
		return nil, problem("is required: the id of a dataset of the source"), nil
	}
	d, err := store.Datasets.Read(tx, src.WorkspaceID, *id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem("there is no dataset %d in this workspace", *id), nil
	case err != nil:
		return nil, nil, err
	case d.SourceID != src.ID:
		return nil, problem("dataset %d belongs to source %d, not to source %d", d.ID, d.SourceID, src.ID), nil
	}
	return d, nil, nil
}

// updateFilterSegment changes a segment. The next runs of its syncs send its new
// rows, and take rows that left it as gone.
func (h *Handlers) updateFilterSegment(c *call.Call, body segmentBody) (*call.Reply, error) {
	var g *store.Segment
	var d *store.Dataset
	var a sources.Access
	err := c.View(func(tx *store.Tx) (err error) {
		if g, err = ownSegment(c, tx); err != nil {
			return err
		}
		if d, err = store.Datasets.Read(tx, c.Who.WorkspaceID, g.DatasetID); err != nil {
			return err
		}
		a, err = h.accessByID(c, tx, g.SourceID)
		return err
	})
	if err != nil {
		return nil, err
	}
	problems := body.apply(c, g)
	if body.DatasetID != nil && *body.DatasetID != g.DatasetID {
		problems = append(problems, api.Problem{Field: "dataset_id", Message: fmt.Sprintf("cannot be changed from %d; create another segment", g.DatasetID)})
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	if body.Query != nil {
		if g.CachedRecordCount, err = h.Sources.CheckSegment(c.Ctx, a, d.Query, g.Query); err != nil {
			return nil, err
		}
	}
	if err := c.Update(func(tx *store.Tx) error { return store.Segments.Save(tx, g) }); err != nil {
		return nil, err
	}
	return call.Updated(segmentOf(g))
}
