package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// TestDeletedWhileAsked: a destination is deleted while it is asked for its objects.
// That is no failure of the destination, nor of the service.
func TestDeletedWhileAsked(t *testing.T) {
	w := newWorld(t)
	source, kept := w.newSource(), w.newDestination()
	sync := w.do("POST", "/syncs", w.key, syncBody(source, kept)).want(200).id("data.sync_id")
	for name, tc := range map[string]struct {
		code         int
		method, path string
		body         func(destination int64) any
	}{
		"sync created":    {409, "POST", "/syncs", func(id int64) any { return syncBody(source, id) }},
		"sync changed":    {409, "PATCH", fmt.Sprintf("/syncs/%d", sync), func(id int64) any { return syncBody(source, id) }},
		"objects listed":  {404, "GET", "/destinations/%d/objects", nil},
		"object read":     {404, "GET", "/destinations/%d/objects/person", nil},
		"itself read":     {404, "GET", "/destinations/%d", nil},
		"refresh started": {200, "POST", "/destinations/%d/refresh_objects", nil},
	} {
		id := w.newDestination()
		w.control("POST", "/clock", map[string]any{"advance": "2h"}).want(200) // what is known of it is old
		path, body := tc.path, any(nil)
		if tc.body != nil {
			body = tc.body(id)
		} else {
			path = fmt.Sprintf(tc.path, id)
		}
		remove := func() {
			w.onCall.Store(nil)
			w.do("DELETE", fmt.Sprintf("/destinations/%d", id), w.key, nil).want(200)
		}
		w.onCall.Store(&remove)
		a := w.do(tc.method, path, w.key, body)
		require.Equal(t, tc.code, a.code, "%s: %s", name, a.text)
		w.control("POST", "/settle", nil).want(200)
		w.do("GET", fmt.Sprintf("/destinations/%d", id), w.key, nil).want(404)
	}
}

// TestReplacedWhileAsked: a restore waits for the call that asks a destination. Where the
// destination takes too long, the call is told to come again.
func TestReplacedWhileAsked(t *testing.T) {
	w := newWorld(t)
	path := fmt.Sprintf("/destinations/%d/objects", w.newDestination())
	w.control("POST", "/clock", map[string]any{"advance": "2h"}).want(200) // what is known of it is old
	var before bytes.Buffer
	require.NoError(t, w.s.Snapshot(t.Context(), &before))
	restoring := func(answer func(restored <-chan error)) (restored chan error) {
		restored = make(chan error, 1)
		hook := func() {
			w.onCall.Store(nil)
			done := make(chan error)
			go func() {
				err := w.s.Restore(t.Context(), bytes.NewReader(before.Bytes()))
				restored <- err
				close(done)
			}()
			w.untilHeld()
			answer(done)
		}
		w.onCall.Store(&hook)
		return restored
	}
	restored := restoring(func(<-chan error) {})
	w.do("GET", path, w.key, nil).want(200)
	require.NoError(t, <-restored)

	w.s.lock.Grace = time.Millisecond
	restored = restoring(func(done <-chan error) { <-done })
	ended := w.do("GET", path, w.key, nil).want(503)
	require.Equal(t, "1", ended.header.Get("Retry-After"))
	require.NoError(t, <-restored)
	w.do("GET", path, w.key, nil).want(200)
}

// TestGoneIsAConflict: what the store says of a reference to nothing is no failure of
// the service.
func TestGoneIsAConflict(t *testing.T) {
	w := newWorld(t)
	err := w.s.store.Update(t.Context(), func(tx *store.Tx) error {
		broken := map[string]error{
			"sync":         store.Syncs.Create(tx, &store.Sync{WorkspaceID: 1, DestinationID: 99, SourceID: 99}),
			"destination":  tx.CreateDestination(&store.Destination{WorkspaceID: 99}, nil),
			"source":       tx.CreateSource(&store.Source{WorkspaceID: 99}, nil),
			"dataset":      store.Datasets.Create(tx, &store.Dataset{WorkspaceID: 1, SourceID: 99}),
			"model":        store.Models.Create(tx, &store.Model{SourceID: 99, DatasetID: 99}),
			"segment":      store.Segments.Create(tx, &store.Segment{SourceID: 99, DatasetID: 99}),
			"topic":        store.Topics.Create(tx, &store.Topic{SourceID: 99}),
			"refresh":      store.Refreshes.Create(tx, &store.Refresh{WorkspaceID: 99}),
			"run":          store.SyncRuns.Create(tx, &store.SyncRun{WorkspaceID: 1, SyncID: 99}),
			"object cache": tx.PutObjectCache(99, &store.ObjectCache{FetchedAt: w.s.Clock().Now()}),
		}
		for what, err := range broken {
			require.ErrorIs(t, err, store.ErrGone, what)
			require.Equal(t, http.StatusConflict, problem.Of(err).Code, what)
		}
		return errors.New("undone")
	})
	require.EqualError(t, err, "undone")
}
