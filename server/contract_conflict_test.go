package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store"
)

// contractConflicts provokes every 409.
func contractConflicts(w *world) {
	id := w.newSync()
	sync := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200)
	source, destination := sync.id("data.source_attributes.connection_id"), sync.id("data.destination_attributes.connection_id")
	conflict := func(method, path, token string, body any) {
		w.t.Helper()
		require.NotEmpty(w.t, w.do(method, path, token, body).want(http.StatusConflict).at("message"))
	}
	conflict("DELETE", fmt.Sprintf("/sources/%d", source), w.key, nil)
	conflict("DELETE", fmt.Sprintf("/destinations/%d", destination), w.key, nil)
	run, release := w.held(id)
	conflict("DELETE", fmt.Sprintf("/syncs/%d", id), w.key, nil)
	w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", run), w.key, nil).want(200)
	release()
	w.control("POST", "/settle", nil).want(200)
	conflict("POST", fmt.Sprintf("/sync_runs/%d/cancel", run), w.key, nil)
	conflictOfUpdates(w, id, conflict)
	conflictOfSources(w, conflict)
	conflictsOfUse(w, source, destination, conflict)
	conflictsOfNames(w, source, conflict)
	conflictsOfInvitations(w, conflict)
}

// conflictOfUpdates changes a sync while an update of it fetches the destination's objects, and
// deletes a destination that a new sync is checked against.
func conflictOfUpdates(w *world, id int64, conflict conflicting) {
	shown := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200)
	source, destination := shown.id("data.source_attributes.connection_id"), shown.id("data.destination_attributes.connection_id")
	w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200) // the cache is old
	meanwhile := func() {
		w.onCall.Store(nil)
		w.change(func(tx *store.Tx) error { return store.Syncs.Save(tx, must(syncByID(tx, id))(w.t)) })
	}
	w.onCall.Store(&meanwhile)
	conflict("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, syncBody(source, destination))

	deleted := w.newDestination()
	w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
	meanwhile = func() {
		w.onCall.Store(nil)
		w.do("DELETE", fmt.Sprintf("/destinations/%d", deleted), w.key, nil).want(200)
	}
	w.onCall.Store(&meanwhile)
	conflict("POST", "/syncs", w.key, syncBody(source, deleted))
}

type conflicting func(method, path, token string, body any)

func conflictsOfNames(w *world, source int64, conflict conflicting) {
	dataset := map[string]any{"name": "Twice", "type": "sql", "source_id": source, "query": "SELECT 1 AS one"}
	w.do("POST", "/datasets", w.key, dataset).want(201)
	conflict("POST", "/datasets", w.key, dataset)
	dataset["name"] = "Once"
	once := w.do("POST", "/datasets", w.key, dataset).want(201).id("data.id")
	conflict("PATCH", fmt.Sprintf("/datasets/%d", once), w.key, map[string]any{"name": "Twice"})

	stream := w.sourceOf("topic_log", map[string]any{}).id("data.id")
	topics := fmt.Sprintf("/sources/%d/topics", stream)
	topic := func(name string) map[string]any {
		return map[string]any{"name": name, "sample_message": map[string]any{"id": 1}}
	}
	w.do("POST", topics, w.key, topic("Twice")).want(201)
	conflict("POST", topics, w.key, topic("Twice"))
	once = w.do("POST", topics, w.key, topic("Once")).want(201).id("data.id")
	conflict("PATCH", fmt.Sprintf("%s/%d", topics, once), w.key, map[string]any{"name": "Twice"})

	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Twice"}).want(201)
	conflict("POST", "/workspaces", w.pat, map[string]any{"name": "Twice"})
	once = w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Once"}).want(201).id("data.id")
	conflict("PATCH", fmt.Sprintf("/workspaces/%d", once), w.pat, map[string]any{"name": "Twice"})
}

func conflictsOfInvitations(w *world, conflict conflicting) {
	body := map[string]any{"email": "claims@example.com", "role": "member", "workspaces": []any{}}
	id := w.do("POST", "/invitations", w.pat, body).want(200).id("data.id")
	conflict("POST", "/invitations", w.pat, body)
	w.control("POST", fmt.Sprintf("/invitations/%d/claim", id), map[string]any{}).want(200)
	conflict("PATCH", fmt.Sprintf("/invitations/%d", id), w.pat, map[string]any{"role": "admin"})

	workspace := w.do("GET", "/workspaces?order=asc", w.pat, nil).want(200).id("data.0.id")
	path := fmt.Sprintf("/workspaces/%d/invitations", workspace)
	body = map[string]any{"emails": []string{"open@example.com"}, "role": "viewer"}
	invited := w.do("POST", path, w.pat, body).want(200).id("data.id")
	conflict("POST", path, w.pat, body)
	w.control("POST", fmt.Sprintf("/workspace_invitations/%d/claim", invited), map[string]any{}).want(200)
	conflict("PUT", fmt.Sprintf("%s/%d", path, invited), w.pat, map[string]any{"role": "editor"})
}

// conflictsOfUse deletes what a sync reads from.
func conflictsOfUse(w *world, source, destination int64, conflict conflicting) {
	used := func(connection int64, object map[string]any, column string, change func(map[string]any)) {
		w.t.Helper()
		body := syncBody(source, destination)
		body["source_attributes"] = map[string]any{"connection_id": connection, "object": object}
		for _, m := range body["mappings"].([]any) {
			m.(map[string]any)["from"].(map[string]any)["data"] = column
		}
		change(body)
		w.do("POST", "/syncs", w.key, body).want(http.StatusOK)
	}
	nothing := func(map[string]any) {}
	query := "SELECT email FROM customers"
	dataset := w.do("POST", "/datasets", w.key, map[string]any{"name": "Used", "type": "sql", "source_id": source, "query": query}).want(201).id("data.id")
	used(source, map[string]any{"type": "dataset", "id": dataset}, "email", nothing)
	conflict("DELETE", fmt.Sprintf("/datasets/%d", dataset), w.key, nil)

	segments := fmt.Sprintf("/sources/%d/filter_segments", source)
	segment := func(name string) map[string]any {
		return map[string]any{"name": name, "dataset_id": dataset, "query": "email IS NOT NULL"}
	}
	first := w.do("POST", segments, w.key, segment("Twice")).want(201).id("data.id")
	conflict("POST", segments, w.key, segment("Twice"))
	once := w.do("POST", segments, w.key, segment("Once")).want(201).id("data.id")
	conflict("PATCH", fmt.Sprintf("%s/%d", segments, once), w.key, map[string]any{"name": "Twice"})
	used(source, map[string]any{"type": "segment", "id": first}, "email", nothing)
	conflict("DELETE", fmt.Sprintf("%s/%d", segments, first), w.key, nil)

	models := fmt.Sprintf("/sources/%d/models", source)
	model := w.do("POST", models, w.key, map[string]any{"name": "Used", "query": query}).want(201).id("data.id")
	used(source, map[string]any{"type": "model", "id": model}, "email", nothing)
	conflict("DELETE", fmt.Sprintf("%s/%d", models, model), w.key, nil)

	stream := w.sourceOf("topic_log", map[string]any{}).id("data.id")
	topics := fmt.Sprintf("/sources/%d/topics", stream)
	topic := w.do("POST", topics, w.key, map[string]any{"name": "used", "sample_message": map[string]any{"email": "a"}}).want(201).id("data.id")
	used(stream, map[string]any{"type": "topic", "id": topic}, "email", func(body map[string]any) {
		body["mode"] = map[string]any{"type": "live"}
	})
	conflict("DELETE", fmt.Sprintf("%s/%d", topics, topic), w.key, nil)
}

// conflictOfSources changes a source while an update of it tries the connection.
func conflictOfSources(w *world, conflict conflicting) {
	var meanwhile atomic.Pointer[func()] // runs at every attempt to connect
	address := accepting(w.t, func(conn net.Conn) {
		defer conn.Close()
		if change := meanwhile.Load(); change != nil {
			(*change)()
		}
	})
	_, port, _ := net.SplitHostPort(address)
	body := map[string]any{"connection": map[string]any{"name": "Postgres", "type": "postgres", "credentials": map[string]any{
		"host": "127.0.0.1", "port": json.Number(port), "database": "d", "username": "u", "password": "p", "sslmode": "disable",
	}}}
	id := w.do("POST", "/sources", w.key, body).want(201).id("data.id")
	change := func() {
		err := w.s.store.Update(context.Background(), func(tx *store.Tx) error {
			src, err := store.Sources.Read(tx, w.s.FirstTokens().WorkspaceID, id)
			if err != nil {
				return err
			}
			return tx.SaveSource(src, nil)
		})
		if err != nil {
			w.t.Error(err)
		}
	}
	meanwhile.Store(&change)
	conflict("PATCH", fmt.Sprintf("/sources/%d", id), w.key, map[string]any{"connection": map[string]any{"name": "Late"}})
}
