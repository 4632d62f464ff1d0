package rest

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// modelBody is the body of POST and PATCH below /sources/{id}/models, which are
// deprecated (spec 4.1.9). Nil fields of a PATCH keep the stored value.
type modelBody struct {
	Name        *string `json:"name"`
	Query       *string `json:"query"`
	Description *string `json:"description"`
}

// modelOf shows a model (spec 2.11). Queries are not templates here, so there is
// nothing compiled to show.
func modelOf(m *store.Model) api.Model {
	columns := m.Columns
	if columns == nil {
		columns = []api.Column{}
	}
	return api.Model{
		Type: api.ObjectModel, ID: m.ID, Name: m.Name, Description: m.Description, Query: m.Query,
		CreatedAt: api.Time{Time: m.CreatedAt}, UpdatedAt: api.Time{Time: m.UpdatedAt},
		DatasetID: m.DatasetID, DatasetIDAgain: m.DatasetID, SourceObjectID: m.SourceObjectID,
		Columns: columns,
	}
}

// ownModel finds the model of the path below the source of the path.
var ownModel = one(sourceOfPath, "model_id", store.Models.Read)

// follow copies the dataset behind a model into the model. The dataset also
// represents the query among the objects of the source.
func follow(m *store.Model, d *store.Dataset) {
	m.DatasetID, m.SourceObjectID = d.ID, d.ID
	m.Name, m.Description, m.Query, m.Columns = d.Name, d.Description, d.Query, d.Columns
}

// createModel makes a model and the dataset behind it, both or none. Name and query are
// required, and the answer is 201: the specification defines neither.
func (h *Handlers) createModel(c *call.Call, body modelBody) (*call.Reply, error) {
	var src *store.Source
	var a sources.Access
	err := c.View(func(tx *store.Tx) (err error) {
		if src, err = ownSource(c, tx); err == nil {
			a, err = h.Sources.Access(tx, src)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// Before the body: nothing in it could be right here.
	if err := h.Sources.CheckSQL(src); err != nil {
		return nil, err
	}
	d := &store.Dataset{WorkspaceID: src.WorkspaceID, SourceID: src.ID}
	problems := append(body.dataset().apply(c, d), sources.CheckQueryText("query", body.Query)...)
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	checked, err := h.Sources.CheckQuery(c.Ctx, a, d.Query)
	if err != nil {
		return nil, err
	}
	m := &store.Model{SourceID: src.ID}
	err = c.Update(func(tx *store.Tx) error {
		// The name is not checked: models may share one.
		if err := createDatasetOf(tx, d, checked); err != nil {
			return err
		}
		follow(m, d)
		return store.Models.Create(tx, m)
	})
	if err != nil {
		return nil, err
	}
	return call.Created(modelOf(m))
}

// dataset is the body as the dataset behind the model takes it.
func (b modelBody) dataset() datasetBody {
	return datasetBody{Name: b.Name, Query: b.Query, Description: b.Description}
}

// updateModel changes a model through the dataset behind it.
func (h *Handlers) updateModel(c *call.Call, body modelBody) (*call.Reply, error) {
	var m *store.Model
	var d *store.Dataset
	var a sources.Access
	err := c.View(func(tx *store.Tx) (err error) {
		if m, err = ownModel(c, tx); err != nil {
			return err
		}
		if d, err = store.Datasets.Read(tx, c.Who.WorkspaceID, m.DatasetID); err != nil {
			return err
		}
		a, err = h.accessByID(c, tx, m.SourceID)
		return err
	})
	if err != nil {
		return nil, err
	}
	problems := body.dataset().apply(c, d)
	if body.Query != nil {
		problems = append(problems, sources.CheckQueryText("query", body.Query)...)
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	if m, err = h.saveDataset(c, a, d, body.dataset()); err != nil {
		return nil, err
	}
	return call.Updated(modelOf(m))
}
