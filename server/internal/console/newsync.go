package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
)

// mostFields is how many fields of an object the form of a sync shows.
const mostFields = 200

// newSyncPage is the form of a sync, step by step: the address holds the choices.
type newSyncPage struct {
	Workspace    int64
	Sources      []api.Source
	Destinations []api.Destination
	Source       int64
	Destination  int64
	Objects      []sourceObject
	Object       string // as in Objects
	Targets      []api.DestinationObject
	Target       *api.DestinationObject
	Columns      []api.Column
	Fields       []api.DestinationField
	Hidden       int // fields beyond those shown
}

// sourceObject is something that a sync can read, under a short name.
type sourceObject struct {
	Value, Label string
	object       map[string]any
}

// Guess is the column that probably fills a field: the one with its name.
func (p newSyncPage) Guess(field string) string {
	flat := func(s string) string {
		return strings.NewReplacer("_", "", " ", "", "-", "").Replace(strings.ToLower(s))
	}
	for _, c := range p.Columns {
		if flat(c.Name) == flat(field) {
			return c.Name
		}
	}
	return ""
}

// Key is the field that probably identifies records: the first one that may and has a
// column.
func (p newSyncPage) Key() string {
	first := ""
	for _, f := range p.Fields {
		if !f.CanBeUpsertKey && !f.CanBeUpdateKey && !f.CanBeInsertKey {
			continue
		}
		if p.Guess(f.FullName) != "" {
			return f.FullName
		}
		if first == "" {
			first = f.FullName
		}
	}
	return first
}

func (s *site) newSync(r *console.Request) (any, error) {
	return s.syncForm(r.Context(), r.ID("workspace"), r.HTTP.URL.Query())
}

func (s *site) syncForm(ctx context.Context, workspaceID int64, query url.Values) (p newSyncPage, err error) {
	p.Workspace = workspaceID
	if p.Sources, p.Destinations, err = s.ends(ctx, workspaceID); err != nil {
		return p, err
	}
	p.Source, _ = strconv.ParseInt(query.Get("source"), 10, 64)           // 0: not chosen yet
	p.Destination, _ = strconv.ParseInt(query.Get("destination"), 10, 64) // the same
	if p.Source == 0 || p.Destination == 0 {
		return p, nil
	}
	if p.Objects, err = s.sourceObjects(ctx, workspaceID, p.Source); err != nil {
		return p, err
	}
	targets, err := perform[list[api.DestinationObject]](ctx, s, workspaceID, "listDestinationObjects", map[string]int64{"destination_id": p.Destination}, url.Values{"per_page": {"100"}}, nil)
	if err != nil {
		return p, err
	}
	p.Targets, p.Object = targets.Data, query.Get("object")
	for i := range p.Targets {
		if p.Targets[i].FullName == query.Get("target") {
			p.Target = &p.Targets[i]
		}
	}
	if p.Target == nil || p.Object == "" {
		return p, nil
	}
	for _, f := range p.Target.Fields {
		if len(p.Fields) == mostFields {
			p.Hidden++
			continue
		}
		p.Fields = append(p.Fields, f)
	}
	p.Columns, err = s.columns(ctx, workspaceID, p.Source, p.Object)
	return p, err
}

// sourceObjects are the tables, models, datasets and topics of a source.
func (s *site) sourceObjects(ctx context.Context, workspaceID, source int64) (all []sourceObject, err error) {
	type shown struct {
		Type    string `json:"type"`
		ID      int64  `json:"id"`
		Name    string `json:"name"`
		Catalog string `json:"table_catalog"`
		Schema  string `json:"table_schema"`
		Table   string `json:"table_name"`
		Source  int64  `json:"source_id"`
	}
	path, many := map[string]int64{"source_id": source}, url.Values{"per_page": {"100"}, "order": {"asc"}}
	objects, err := perform[list[shown]](ctx, s, workspaceID, "listSourceObjects", path, many, nil)
	if err != nil {
		return nil, err
	}
	add := func(o shown, kind string) {
		one := sourceObject{fmt.Sprintf("%s:%d", kind, o.ID), kind + " " + o.Name, map[string]any{"type": kind, "id": o.ID}}
		if kind == api.ObjectTable {
			one.Label = kind + " " + o.Table
			one.object = map[string]any{"type": kind, "table_catalog": o.Catalog, "table_schema": o.Schema, "table_name": o.Table}
		}
		all = append(all, one)
	}
	for _, o := range objects.Data {
		add(o, o.Type)
	}
	topics, err := perform[list[shown]](ctx, s, workspaceID, "listTopics", path, many, nil)
	if err == nil { // only streaming sources have topics
		for _, o := range topics.Data {
			add(o, api.ObjectTopic)
		}
	}
	datasets, err := perform[list[shown]](ctx, s, workspaceID, "listDatasets", nil, many, nil)
	if err != nil {
		return nil, err
	}
	for _, o := range datasets.Data {
		if o.Source == 0 || o.Source == source {
			add(o, api.ObjectDataset)
		}
	}
	return all, nil
}

// columns are those of a source object.
func (s *site) columns(ctx context.Context, workspaceID, source int64, object string) ([]api.Column, error) {
	kind, number, _ := strings.Cut(object, ":")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, console.Refuse(http.StatusBadRequest, "object: choose what the sync reads")
	}
	operation, path := "", map[string]int64{"source_id": source}
	switch kind {
	case api.ObjectTable:
		operation, path["table_id"] = "fetchSourceTable", id
	case api.ObjectModel:
		operation, path["model_id"] = "fetchModel", id
	case api.ObjectTopic:
		operation, path["topic_id"] = "fetchTopic", id
	case api.ObjectDataset:
		operation, path = "fetchDataset", map[string]int64{"dataset_id": id}
	default:
		return nil, console.Refuse(http.StatusBadRequest, "object: choose what the sync reads")
	}
	got, err := perform[one[struct {
		Columns []api.Column `json:"columns"`
	}]](ctx, s, workspaceID, operation, path, nil, nil)
	return got.Data.Columns, err
}

// makeSync creates a sync from the last step of the form.
func (s *site) makeSync(r *console.Request) (string, error) {
	p, err := s.syncForm(r.Context(), r.ID("workspace"), r.HTTP.PostForm)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(p.Objects, func(o sourceObject) bool { return o.Value == p.Object })
	if p.Target == nil || at < 0 {
		return "", console.Refuse(http.StatusBadRequest, "choose a source, a destination and their objects first")
	}
	mappings := []map[string]any{}
	for _, f := range p.Fields {
		column := r.Form("map." + f.FullName)
		if column == "" {
			continue
		}
		mappings = append(mappings, map[string]any{
			"from": map[string]any{"type": api.FromColumn, "data": column}, "to": f.FullName,
			"is_primary_identifier": r.Form("identifier") == f.FullName,
		})
	}
	body := map[string]any{
		"label": r.Form("label"), "operation": r.Form("operation"), "mappings": mappings,
		"source_attributes":      map[string]any{"connection_id": p.Source, "object": p.Objects[at].object},
		"destination_attributes": map[string]any{"connection_id": p.Destination, "object": p.Target.FullName},
	}
	if frequency := r.Form("schedule"); frequency != "" && frequency != api.FrequencyNever {
		schedule := map[string]any{"frequency": frequency, "hour": 0, "minute": 0}
		if frequency == api.FrequencyWeekly {
			schedule["day"] = "Monday"
		}
		body["mode"] = map[string]any{"type": api.ModeTriggered, "triggers": map[string]any{"schedule": schedule}}
	}
	made, err := perform[one[struct {
		ID int64 `json:"sync_id"`
	}]](r.Context(), s, p.Workspace, "createSync", nil, nil, body)
	if err != nil {
		return "", err
	}
	r.Done(fmt.Sprintf("Sync %d is made.", made.Data.ID))
	return fmt.Sprintf("/workspaces/%d/syncs/%d", p.Workspace, made.Data.ID), nil
}
