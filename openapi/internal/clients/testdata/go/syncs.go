package main

import (
	"errors"
	"os"

	"clients/client"
)

func (t *trip) body(source, destination client.ID) (body client.SyncWrite) {
	label, yes := client.SyncLabel("Customers"), client.MappingIdentifier(true)
	catalog, schema, table := "main", "main", "generated"
	body.Label, body.Operation = &label, client.SyncOperationUpsert
	body.SourceAttributes.ConnectionId = source
	t.fail(body.SourceAttributes.Object.FromTableReference(client.TableReference{
		TableCatalog: &catalog, TableSchema: &schema, TableName: &table,
	}))
	body.DestinationAttributes.ConnectionId, body.DestinationAttributes.Object = destination, "person"
	var email, name client.MappingWrite
	email.To, email.IsPrimaryIdentifier = "email", &yes
	t.fail(email.From.FromFromColumn(client.FromColumn{Data: "email"}))
	name.To = "last_name"
	var template client.FromTemplateWrite_Data
	t.fail(template.FromFromTemplateWriteData0("{{ record['last_name'] | upcase }}"))
	t.fail(name.From.FromFromTemplateWrite(client.FromTemplateWrite{Data: template}))
	body.Mappings = []client.MappingWrite{email, name}
	return body
}

func (t *trip) createSync(body client.SyncWrite) client.ID {
	if t.err != nil {
		return 0
	}
	made, err := t.api.CreateSyncWithResponse(t.ctx, body)
	if !good(t, "createSync", made, nil, err) || !good(t, "createSync", made.JSON200, made.Body, nil) {
		return 0
	}
	created, err := made.JSON200.AsSyncCreated()
	t.fail(err)
	return created.Data.SyncId
}

func (t *trip) sync(id client.ID) (s sync) {
	if t.err != nil {
		return s
	}
	r, err := t.api.FetchSyncWithResponse(t.ctx, id)
	if !good(t, "fetchSync", r, nil, err) || !good(t, "fetchSync", r.JSON200, r.Body, nil) {
		return s
	}
	data := r.JSON200.Data
	return sync{data.Status, len(data.Mappings), []any{data.FieldOrder, data.Mappings[0].Operation}}
}

// pauseAndResume sends what changes and, in the spec dialect, what an update
// must hold besides.
func (t *trip) pauseAndResume(id client.ID, whole client.SyncWrite) {
	for _, paused := range []client.SyncPaused{true, false} {
		if t.err != nil {
			return
		}
		change := client.SyncUpdate{Paused: &paused}
		if os.Getenv("CLIENT_DIALECT") != "live" {
			change.Operation, change.Mappings = &whole.Operation, &whole.Mappings
			change.SourceAttributes, change.DestinationAttributes = &whole.SourceAttributes, &whole.DestinationAttributes
		}
		r, err := t.api.UpdateSyncWithResponse(t.ctx, id, change)
		if good(t, "updateSync", r, nil, err) && good(t, "updateSync", r.JSON200, r.Body, nil) && r.JSON200.Data.Paused != paused {
			t.fail(errors.New("paused was not kept"))
		}
	}
}

func (t *trip) trigger(id client.ID) client.ID {
	if t.err != nil {
		return 0
	}
	r, err := t.api.TriggerSyncWithResponse(t.ctx, id, nil, client.SyncTrigger{})
	if !good(t, "triggerSync", r, nil, err) || !good(t, "triggerSync", r.JSON200, r.Body, nil) {
		return 0
	}
	return r.JSON200.Data.SyncRunId
}

func (t *trip) run(s *seen, id client.ID) {
	if t.err != nil {
		return
	}
	r, err := t.api.FetchSyncRunWithResponse(t.ctx, id)
	if !good(t, "fetchSyncRun", r, nil, err) || !good(t, "fetchSyncRun", r.JSON200, r.Body, nil) {
		return
	}
	s.Run = run{r.JSON200.Data.Status, r.JSON200.Data.RecordsUpdated, r.JSON200.Data.ErrorCode}
	records, err := t.api.FetchSyncRunRecordsWithResponse(t.ctx, id, nil)
	if !good(t, "fetchSyncRunRecords", records, nil, err) || !good(t, "fetchSyncRunRecords", records.JSON200, records.Body, nil) {
		return
	}
	for _, record := range records.JSON200.Data {
		if email, err := record.Identifier.AsSyncRunRecordIdentifier0(); err == nil && email != "" {
			s.Records++
		}
	}
}

// failures decodes errors of both kinds.
func (t *trip) failures(s *seen, body client.SyncWrite) {
	if t.err != nil {
		return
	}
	missing, err := t.api.FetchSyncWithResponse(t.ctx, 999999)
	if good(t, "fetchSync", missing, nil, err) && good(t, "fetchSync", missing.JSON404, missing.Body, nil) {
		s.Missing = shown(missing.StatusCode(), client.Error(*missing.JSON404))
	}
	body.Mappings = []client.MappingWrite{}
	refused, err := t.api.CreateSyncWithResponse(t.ctx, body)
	if good(t, "createSync", refused, nil, err) && good(t, "createSync", refused.JSON400, refused.Body, nil) {
		s.Refused = shown(refused.StatusCode(), client.Error(*refused.JSON400))
	}
}

func shown(code int, e client.Error) failure {
	return failure{code, e.Status, e.Message, e.Errors}
}
