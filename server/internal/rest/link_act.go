package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// actOnLink does what a person has allowed, through the API as the workspace, and
// returns the parameters for the browser.
func (h *Handlers) actOnLink(ctx context.Context, l *openLink, form url.Values) (url.Values, error) {
	switch l.Kind {
	case linkSource:
		described := h.Sources.Described(l.Type)
		return h.saveConnection(ctx, l, form, described.ConfigurationFields.Fields, "source", "createSource", nil)
	case linkDestination, linkAuthorize:
		connector, err := h.connectorOf(l.Type)
		if err != nil {
			return nil, err
		}
		return h.saveConnection(ctx, l, form, connector.ConfigurationFields.Fields, "destination", "createDestination", nil)
	case linkSourceEdit:
		src, err := store.Read(ctx, h.Shared.Store, func(tx *store.Tx) (*store.Source, error) {
			return store.Sources.Read(tx, l.WorkspaceID, *l.TargetID)
		})
		if err != nil {
			return nil, err
		}
		described := h.Sources.Described(src.Type)
		return h.saveConnection(ctx, l, form, described.ConfigurationFields.Fields, "source", "updateSource", l.TargetID)
	case linkDestinationEdit:
		d, err := store.Read(ctx, h.Shared.Store, func(tx *store.Tx) (*store.Destination, error) {
			return store.Destinations.Read(tx, l.WorkspaceID, *l.TargetID)
		})
		if err != nil {
			return nil, err
		}
		connector, err := h.connectorOf(d.Type)
		if err != nil {
			return nil, err
		}
		return h.saveConnection(ctx, l, form, connector.ConfigurationFields.Fields, "destination", "updateDestination", l.TargetID)
	case linkSyncEdit:
		return h.changeSyncByForm(ctx, l, form)
	case linkSyncs:
		return h.changeSyncsByForm(ctx, l, form)
	}
	return h.changeSegmentsByForm(ctx, l, form)
}

// saveConnection creates or changes a source or a destination.
func (h *Handlers) saveConnection(ctx context.Context, l *openLink, form url.Values, fields []api.ConfigField, kind, operation string, id *int64) (url.Values, error) {
	credentials, err := credentialsOf(fields, form)
	if err != nil {
		return nil, err
	}
	connection := map[string]any{"credentials": credentials}
	if name := form.Get("name"); name != "" || id == nil {
		connection["name"] = name
	}
	path := map[string]int64{}
	if id == nil {
		connection["type"] = l.Type
	} else {
		path[kind+"_id"] = *id
	}
	member := map[string]string{"source": "connection", "destination": "service_connection"}[kind]
	text, err := h.Perform(ctx, l.who, operation, path, map[string]any{member: connection})
	if err != nil {
		return nil, err
	}
	var made struct {
		Data struct {
			ID     int64 `json:"id"`
			Passed *bool `json:"last_test_succeeded"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &made); err != nil {
		return nil, fmt.Errorf("read reply of %s: %w", operation, err)
	}
	outcome := url.Values{kind + "_id": {fmt.Sprint(made.Data.ID)}}
	if made.Data.Passed != nil {
		outcome.Set("last_test_succeeded", strconv.FormatBool(*made.Data.Passed))
	}
	return outcome, nil
}

// changeSync sends a sync back as it is read, with some of it changed: each dialect
// takes that.
func (h *Handlers) changeSync(ctx context.Context, l *openLink, id int64, change map[string]any) error {
	path := map[string]int64{"sync_id": id}
	text, err := h.Perform(ctx, l.who, "fetchSync", path, nil)
	if err != nil {
		return err
	}
	var read struct {
		Data map[string]any `json:"data"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&read); err != nil {
		return fmt.Errorf("read sync %d: %w", id, err)
	}
	for key, value := range change {
		read.Data[key] = value
	}
	_, err = h.Perform(ctx, l.who, "updateSync", path, read.Data)
	return err
}

func (h *Handlers) runSync(ctx context.Context, l *openLink, id int64) (run string, err error) {
	text, err := h.Perform(ctx, l.who, "triggerSync", map[string]int64{"sync_id": id}, nil)
	if err != nil {
		return "", err
	}
	var started struct {
		Data struct {
			ID int64 `json:"sync_run_id"`
		} `json:"data"`
	}
	err = json.Unmarshal(text, &started)
	return fmt.Sprint(started.Data.ID), err
}

func (h *Handlers) changeSyncByForm(ctx context.Context, l *openLink, form url.Values) (url.Values, error) {
	outcome := url.Values{"sync_id": {fmt.Sprint(*l.TargetID)}}
	change := map[string]any{"label": form.Get("label"), "paused": form.Get("paused") == "true"}
	if err := h.changeSync(ctx, l, *l.TargetID, change); err != nil {
		return nil, err
	}
	if form.Get("run") == "true" {
		run, err := h.runSync(ctx, l, *l.TargetID)
		if err != nil {
			return nil, err
		}
		outcome.Set("sync_run_id", run)
	}
	return outcome, nil
}

// changeSyncsByForm pauses, resumes and runs syncs of the workspace, in the order of
// their ids.
func (h *Handlers) changeSyncsByForm(ctx context.Context, l *openLink, form url.Values) (url.Values, error) {
	outcome := url.Values{}
	var ids []int64
	for name := range form {
		if text, ok := strings.CutPrefix(name, "sync."); ok {
			if id, err := strconv.ParseInt(text, 10, 64); err == nil {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		var err error
		var run string
		switch form.Get(fmt.Sprintf("sync.%d", id)) {
		case syncPause:
			err = h.changeSync(ctx, l, id, map[string]any{"paused": true})
			outcome.Add("paused_sync_id", fmt.Sprint(id))
		case syncResume:
			err = h.changeSync(ctx, l, id, map[string]any{"paused": false})
			outcome.Add("resumed_sync_id", fmt.Sprint(id))
		case syncRun:
			run, err = h.runSync(ctx, l, id)
			outcome.Add("sync_run_id", run)
		}
		if err != nil {
			return nil, err
		}
	}
	return outcome, nil
}

// changeSegmentsByForm deletes segments and creates one.
func (h *Handlers) changeSegmentsByForm(ctx context.Context, l *openLink, form url.Values) (url.Values, error) {
	outcome := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		var sourceID, id int64
		if _, err := fmt.Sscanf(name, "delete.%d.%d", &sourceID, &id); err != nil || form.Get(name) != "true" {
			continue
		}
		if _, err := h.Perform(ctx, l.who, "deleteFilterSegment", map[string]int64{"source_id": sourceID, "segment_id": id}, nil); err != nil {
			return nil, err
		}
		outcome.Add("deleted_segment_id", fmt.Sprint(id))
	}
	if form.Get("dataset_id") == "" {
		return outcome, nil
	}
	id, err := strconv.ParseInt(form.Get("dataset_id"), 10, 64)
	if err != nil {
		return nil, problem.InvalidField("dataset_id", "must be one of the list")
	}
	d, err := store.Read(ctx, h.Shared.Store, func(tx *store.Tx) (*store.Dataset, error) { return store.Datasets.Read(tx, l.WorkspaceID, id) })
	if err != nil {
		return nil, err
	}
	text, err := h.Perform(ctx, l.who, "createFilterSegment", map[string]int64{"source_id": d.SourceID}, map[string]any{
		"name": form.Get("name"), "dataset_id": id, "query": form.Get("query"),
	})
	if err != nil {
		return nil, err
	}
	var made struct {
		Data api.FilterSegment `json:"data"`
	}
	if err := json.Unmarshal(text, &made); err != nil {
		return nil, fmt.Errorf("read new segment: %w", err)
	}
	outcome.Set("segment_id", fmt.Sprint(made.Data.ID))
	return outcome, nil
}
