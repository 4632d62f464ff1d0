package rest

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// datasetSQL is the one type of a dataset here (published facts name others).
const datasetSQL = "sql"

// datasetBody is the body of POST and PATCH /datasets. Nil fields of
// a PATCH keep the stored value.
type datasetBody struct {
	Name        *string `json:"name"`
	Type        *string `json:"type"`
	Description *string `json:"description"`
	Query       *string `json:"query"`
	SourceID    *int64  `json:"source_id"`
}

// datasetOf shows a dataset.
func datasetOf(d *store.Dataset) api.Dataset {
	columns := make([]api.DatasetColumn, len(d.Columns))
	for i, column := range d.Columns {
		columns[i] = api.DatasetColumn{Name: column.Name, DataType: column.Type}
	}
	return api.Dataset{
		ID: d.ID, Name: d.Name, Type: datasetSQL, Description: d.Description, Query: d.Query, SourceID: d.SourceID,
		ResourceIdentifier: "dataset:" + d.Slug, CachedRecordCount: d.CachedRecordCount, Columns: columns,
		CreatedAt: api.Time{Time: d.CreatedAt}, UpdatedAt: api.Time{Time: d.UpdatedAt},
	}
}

// ownDataset finds the dataset of the path.
var ownDataset = one(callersWorkspace, "dataset_id", store.Datasets.Read)

// listDatasets lists the datasets of the workspace, those behind models too.
func (h *Handlers) listDatasets(c *call.Call) (*call.Reply, error) {
	if wanted := c.R.URL.Query().Get("type"); wanted != "" && wanted != datasetSQL {
		return nil, problem.InvalidField("type", "must be %s: there are no datasets of another type", datasetSQL)
	}
	return list(callersWorkspace, store.Datasets.List, datasetOf)(c)
}

// createDataset stores a query whose columns its source has named.
func (h *Handlers) createDataset(c *call.Call, body datasetBody) (*call.Reply, error) {
	d := &store.Dataset{WorkspaceID: c.Who.WorkspaceID}
	problems := body.apply(c, d)
	problems = append(problems, sources.CheckQueryText("query", body.Query)...)
	var a sources.Access
	more, err := h.sourceFor(c, body.SourceID, &a)
	if err != nil {
		return nil, err
	}
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	// Only a payload that is right so far is worth a question to the source.
	checked, err := h.Sources.CheckQuery(c.Ctx, a, *body.Query)
	if err != nil {
		return nil, err
	}
	d.SourceID = a.ID
	err = c.Update(func(tx *store.Tx) error {
		if err := nameIsFree(tx, d); err != nil {
			return err
		}
		return createDatasetOf(tx, d, checked)
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, problem.Invalid(noSource(d.SourceID))
	}
	if err != nil {
		return nil, err
	}
	return call.Created(datasetOf(d))
}

// sourceFor finds the source that a body names, and how to open it.
func (h *Handlers) sourceFor(c *call.Call, id *int64, a *sources.Access) ([]api.Problem, error) {
	if id == nil {
		return []api.Problem{{Field: "source_id", Message: "is required: the id of a source with SQL"}}, nil
	}
	var src *store.Source
	err := c.View(func(tx *store.Tx) (err error) {
		if src, err = store.Sources.Read(tx, c.Who.WorkspaceID, *id); err == nil {
			*a, err = h.Sources.Access(tx, src)
		}
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noSource(*id), nil
	case err != nil:
		return nil, err
	}
	if err := h.Sources.CheckSQL(src); err != nil {
		return []api.Problem{{Field: "source_id", Message: err.Error()}}, nil
	}
	return nil, nil
}

// noSource is a 400: the id is in the payload, not in the path.
func noSource(id int64) []api.Problem {
	return []api.Problem{{Field: "source_id", Message: fmt.Sprintf("there is no source %d in this workspace", id)}}
}

// createDatasetOf stores a dataset with what its query gives. The source is
// looked up again: it may have been deleted during the check.
func createDatasetOf(tx *store.Tx, d *store.Dataset, checked sources.CheckedQuery) error {
	if _, err := store.Sources.Read(tx, d.WorkspaceID, d.SourceID); err != nil {
		return err
	}
	slug, err := freeSlug(tx, d)
	if err != nil {
		return err
	}
	d.Slug = slug
	checked.Set(tx, d)
	return store.Datasets.Create(tx, d)
}

// apply sets name, description and query, and returns their problems.
func (b datasetBody) apply(c *call.Call, d *store.Dataset) []api.Problem {
	var problems []api.Problem
	if b.Name != nil {
		d.Name = strings.TrimSpace(*b.Name)
	}
	problems = append(problems, organizations.CheckName("name", d.Name)...)
	if b.Type != nil && *b.Type != datasetSQL {
		problems = append(problems, api.Problem{Field: "type", Message: fmt.Sprintf("unknown type %q: must be %s", foreign.Clip(*b.Type, 64), datasetSQL)})
	}
	if c.Has("description") { // null takes it away
		d.Description = b.Description
	}
	if b.Query != nil {
		d.Query = *b.Query
	}
	return problems
}

// updateDataset changes a dataset and, when it belongs to a model, the model
// with it.
func (h *Handlers) updateDataset(c *call.Call, body datasetBody) (*call.Reply, error) {
	var d *store.Dataset
	var a sources.Access
	err := c.View(func(tx *store.Tx) (err error) {
		if d, err = ownDataset(c, tx); err != nil {
			return err
		}
		a, err = h.accessByID(c, tx, d.SourceID)
		return err
	})
	if err != nil {
		return nil, err
	}
	problems := body.apply(c, d)
	if body.Query != nil {
		problems = append(problems, sources.CheckQueryText("query", body.Query)...)
	}
	if body.SourceID != nil && *body.SourceID != d.SourceID {
		problems = append(problems, api.Problem{Field: "source_id", Message: fmt.Sprintf("cannot be changed from %d; create another dataset", d.SourceID)})
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	if _, err := h.saveDataset(c, a, d, body); err != nil {
		return nil, err
	}
	return call.Updated(datasetOf(d))
}

// accessByID is how to open a source of the caller's workspace.
func (h *Handlers) accessByID(c *call.Call, tx *store.Tx, id int64) (sources.Access, error) {
	src, err := store.Sources.Read(tx, c.Who.WorkspaceID, id)
	if err != nil {
		return sources.Access{}, err
	}
	return h.Sources.Access(tx, src)
}

// saveDataset checks a new query against the source, and stores a checked body in
// the dataset, together with the model that it belongs to, which it returns; nil
// for none.
func (h *Handlers) saveDataset(c *call.Call, a sources.Access, d *store.Dataset, body datasetBody) (model *store.Model, err error) {
	var checked sources.CheckedQuery
	if body.Query != nil {
		if checked, err = h.Sources.CheckQuery(c.Ctx, a, d.Query); err != nil {
			return nil, err
		}
		if err := h.Sources.FitSegments(c, a, d); err != nil {
			return nil, err
		}
	}
	err = c.Update(func(tx *store.Tx) error {
		// Another client may have changed it during the check. The body is laid over
		// the present row, so updates that come together follow one another and each
		// keeps the other's changes.
		stored, err := store.Datasets.Read(tx, d.WorkspaceID, d.ID)
		if err != nil {
			return err
		}
		*d = *stored
		body.apply(c, d)
		if body.Query != nil {
			checked.Set(tx, d)
		}
		if err := store.Datasets.Save(tx, d); err != nil {
			return err
		}
		m, err := tx.ModelOfDataset(d.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nameIsFree(tx, d)
		case err != nil:
			return err
		}
		model = m
		follow(m, d)
		return store.Models.Save(tx, m)
	})
	return model, err
}

// SlugOf makes the permanent part of a resource identifier from a name: letters and
// digits of any script in lower case, everything else a "_".
func SlugOf(name string) string {
	var slug strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			gap = slug.Len() > 0
			continue
		}
		if gap {
			slug.WriteByte('_')
			gap = false
		}
		slug.WriteRune(r)
	}
	if slug.Len() == 0 {
		return "dataset"
	}
	return slug.String()
}

// nameIsFree refuses a name that another dataset of the workspace has. The
// dataset behind a model has the model's name, which may be used again.
func nameIsFree(tx *store.Tx, d *store.Dataset) error {
	all, _, err := store.Datasets.List(tx, d.WorkspaceID, store.Page{})
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.Name != d.Name || other.ID == d.ID {
			continue
		}
		// Only now, since few names are equal and this is a separate query.
		_, err := tx.ModelOfDataset(other.ID)
		if errors.Is(err, store.ErrNotFound) {
			return &store.DuplicateError{Kind: "dataset", Field: "name", Value: d.Name}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// freeSlug numbers slugs of names that differ in nothing that a slug shows.
func freeSlug(tx *store.Tx, d *store.Dataset) (string, error) {
	all, _, err := store.Datasets.List(tx, d.WorkspaceID, store.Page{})
	if err != nil {
		return "", err
	}
	// Slugs stay when names change, so they are compared and not computed.
	taken := map[string]bool{}
	for _, other := range all {
		taken[other.Slug] = true
	}
	slug := SlugOf(d.Name)
	for i := 2; taken[slug]; i++ {
		slug = fmt.Sprintf("%s_%d", SlugOf(d.Name), i)
	}
	return slug, nil
}
