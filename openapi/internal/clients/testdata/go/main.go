// Command roundtrip uses the service through the client that oapi-codegen makes,
// and prints what it saw as one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"clients/client"
)

type counts struct {
	Sources      int64 `json:"sources"`
	Destinations int64 `json:"destinations"`
	Syncs        int64 `json:"syncs"`
}

type sync struct {
	Status   client.SyncStatus `json:"status"`
	Mappings int               `json:"mappings"`
	Unset    []any             `json:"unset"`
}

type run struct {
	Status         client.SyncRunStatus `json:"status"`
	RecordsUpdated *client.Counter      `json:"records_updated"`
	ErrorCode      *string              `json:"error_code"`
}

type failure struct {
	HTTP    int                 `json:"http"`
	Status  client.Error_Status `json:"status"`
	Message *string             `json:"message,omitempty"`
	Errors  *[]client.Problem   `json:"errors,omitempty"`
}

type seen struct {
	Before  counts   `json:"before"`
	Known   bool     `json:"known"`
	Tables  []string `json:"tables"`
	Objects bool     `json:"objects"`
	Created sync     `json:"created"`
	Run     run      `json:"run"`
	Records int      `json:"records"`
	After   counts   `json:"after"`
	Synced  string   `json:"synced"`
	Missing failure  `json:"missing"`
	Refused failure  `json:"refused"`
}

func main() {
	if err := play(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(ctx context.Context) error {
	token := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("CLIENT_TOKEN"))
		return nil
	}
	api, err := client.NewClientWithResponses(os.Getenv("CLIENT_BASE"), client.WithRequestEditorFn(token))
	if err != nil {
		return err
	}
	t := &trip{ctx: ctx, api: api}
	var s seen
	t.counts(&s.Before)
	t.sourceTypes(&s)
	source := t.source(&s)
	destination := t.destination(&s)
	body := t.body(source, destination)
	id := t.createSync(body)
	s.Created = t.sync(id)
	t.pauseAndResume(id, body)
	runID := t.trigger(id)
	t.settle()
	t.run(&s, runID)
	t.counts(&s.After)
	s.Synced = string(t.sync(id).Status)
	t.failures(&s, body)
	if t.err != nil {
		return t.err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}
