package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"clients/client"
)

// trip makes the calls. After the first that fails the others do nothing.
type trip struct {
	ctx context.Context
	api *client.ClientWithResponses
	err error
}

// good reports whether a call was made and answered as it must be.
func good[R any](t *trip, what string, reply *R, text []byte, err error) bool {
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("%s: %w", what, err)
	}
	if t.err == nil && reply == nil {
		t.err = fmt.Errorf("%s was answered with %s", what, text)
	}
	return t.err == nil
}

func (t *trip) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *trip) counts(into *counts) {
	if t.err != nil {
		return
	}
	size := client.PerPage(100)
	if r, err := t.api.ListSourcesWithResponse(t.ctx, &client.ListSourcesParams{PerPage: &size}); good(t, "listSources", r, nil, err) && good(t, "listSources", r.JSON200, r.Body, nil) {
		into.Sources = r.JSON200.Pagination.TotalRecords
	}
	if r, err := t.api.ListDestinationsWithResponse(t.ctx, nil); good(t, "listDestinations", r, nil, err) && good(t, "listDestinations", r.JSON200, r.Body, nil) {
		into.Destinations = r.JSON200.Pagination.TotalRecords
	}
	if r, err := t.api.ListSyncsWithResponse(t.ctx, nil); good(t, "listSyncs", r, nil, err) && good(t, "listSyncs", r.JSON200, r.Body, nil) {
		into.Syncs = r.JSON200.Pagination.TotalRecords
	}
}

// sourceTypes reads rules in the form of either dialect.
func (t *trip) sourceTypes(s *seen) {
	if t.err != nil {
		return
	}
	size := client.PerPage(100)
	r, err := t.api.ListSourceTypesWithResponse(t.ctx, &client.ListSourceTypesParams{PerPage: &size})
	if !good(t, "listSourceTypes", r, nil, err) || !good(t, "listSourceTypes", r.JSON200, r.Body, nil) {
		return
	}
	for _, kind := range r.JSON200.Data {
		for _, field := range kind.ConfigurationFields.Fields {
			_, notText := field.Rules.AsConfigurationFieldRules0()
			_, notList := field.Rules.AsConfigurationFieldRules1()
			if notText != nil && notList != nil {
				t.fail(fmt.Errorf("the rules of %s are neither a text nor a list", field.Id))
			}
			s.Known = s.Known || kind.ServiceName == "generator"
		}
	}
}

func (t *trip) source(s *seen) (id client.ID) {
	if t.err != nil {
		return 0
	}
	var body client.CreateSourceJSONRequestBody
	name := "Rows"
	body.Connection.Name, body.Connection.Type = &name, "generator"
	body.Connection.Credentials = client.SourceCredentials{"rows": 3, "seed": 7}
	made, err := t.api.CreateSourceWithResponse(t.ctx, body)
	if !good(t, "createSource", made, nil, err) || !good(t, "createSource", made.JSON201, made.Body, nil) {
		return 0
	}
	id = made.JSON201.Data.Id
	objects, err := t.api.ListSourceObjectsWithResponse(t.ctx, id, nil)
	if !good(t, "listSourceObjects", objects, nil, err) || !good(t, "listSourceObjects", objects.JSON200, objects.Body, nil) {
		return 0
	}
	for _, item := range objects.JSON200.Data {
		object, err := item.ValueByDiscriminator()
		if table, ok := object.(client.Table); ok && err == nil {
			s.Tables = append(s.Tables, table.TableName)
		} else {
			t.fail(fmt.Errorf("the object %v is no table: %w", object, err))
		}
	}
	return id
}

func (t *trip) destination(s *seen) (id client.ID) {
	if t.err != nil {
		return 0
	}
	var body client.CreateDestinationJSONRequestBody
	body.ServiceConnection.Name, body.ServiceConnection.Type = "Endpoint", "custom_api"
	body.ServiceConnection.Credentials = client.DestinationCredentials{"api_version": 1, "webhook_url": os.Getenv("CLIENT_ENDPOINT")}
	made, err := t.api.CreateDestinationWithResponse(t.ctx, body)
	if !good(t, "createDestination", made, nil, err) || !good(t, "createDestination", made.JSON201, made.Body, nil) {
		return 0
	}
	for _, object := range made.JSON201.Data.Objects {
		s.Objects = s.Objects || object.FullName == "person"
	}
	return made.JSON201.Data.Id
}

// settle waits until all runs are over.
func (t *trip) settle() {
	if t.err != nil {
		return
	}
	r, err := http.Post(os.Getenv("CLIENT_CONTROL")+"/settle", "application/json", nil)
	if err != nil {
		t.fail(err)
		return
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.fail(fmt.Errorf("settle answered %d", r.StatusCode))
	}
}
