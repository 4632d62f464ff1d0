package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server/api"
)

// Object is where the records go.
const Object = "contact"

// World is the service, the destination and the created ids.
type World struct {
	API         *syncs.Client // of the service
	Destination *syncs.Client // of the simulator's control API
	source      int64
	Target      int64
	Sync        int64
}

// syncAll runs the syncs of the demo.
func (d *Demo) syncAll(ctx context.Context, dir string) (err error) {
	files := places(dir)
	// In memory, for those who do not want to look at it later.
	store := destsim.Config{}
	if d.data != "" {
		store.Store = "sqlite:" + files.Destination
	}
	target, err := NewDestination(ctx, store)
	if err != nil {
		return err
	}
	defer target.stop(&err)
	port, client, err := NewService(ctx, files, target.Certificates.CAPEM())
	if err != nil {
		return err
	}
	defer port.stop(&err) // before the destination, which it may still call
	w := &World{API: client, Destination: ControlOf(target)}
	foreign.Printf(d.Out, "service at %s, destination at %s\n", port.URL, target.URL)
	began := time.Now()
	done := command.GoesOn(d.Screen, d.quiet, "filling the table")
	err = w.Make(ctx, target.URL, d.rows)
	done()
	if err != nil {
		return syncs.Failure("prepare the demo", err)
	}
	foreign.Printf(d.Out, "a table of %s, made in %s; a sync of it, over https, through the REST API:\n\n", quantity.Counted(d.rows, "row"), quantity.Roughly(time.Since(began)))
	foreign.Println(d.Out, header)
	steps := steps(d.rows)
	for _, step := range steps {
		if err := d.step(ctx, w, step); err != nil {
			return syncs.Failure(step.title, err)
		}
	}
	if err := d.prove(ctx, w, steps[len(steps)-1]); err != nil {
		return syncs.Failure("audit", err)
	}
	return nil
}

// ControlOf is a client of a simulator.
func ControlOf(p *Port) *syncs.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs = p.roots()
	return &syncs.Client{Root: p.URL, HTTP: &http.Client{Timeout: time.Minute, Transport: transport}}
}

// Make creates the table, the source, the destination and the sync.
func (w *World) Make(ctx context.Context, endpoint string, rows int64) error {
	var made struct {
		ID   int64 `json:"id"`
		Sync int64 `json:"sync_id"`
	}
	err := w.API.Post(ctx, "/sources", map[string]any{"connection": map[string]any{
		"name": "Warehouse", "type": "snowflake", "credentials": map[string]string{
			"account": "demo", "warehouse": "LOADING", "database": catalog, "user": "demo", "password": "demo",
		}}}, &made)
	if err != nil {
		return fmt.Errorf("create the source: %w", err)
	}
	w.source = made.ID
	for _, sql := range table(rows) {
		if err := w.Change(ctx, sql); err != nil {
			return fmt.Errorf("fill the table: %w", err)
		}
	}
	err = w.API.Post(ctx, "/destinations", map[string]any{"service_connection": map[string]any{
		"name": "Simulated destination", "type": "custom_api", "credentials": map[string]any{
			"api_version": 1, "webhook_url": endpoint + "/", "auth_token": Token,
		}}}, &made)
	if err != nil {
		return fmt.Errorf("create the destination: %w", err)
	}
	w.Target = made.ID
	// spec 2.6: no mode, so it runs when it is triggered.
	if err := w.API.Post(ctx, "/syncs", w.config(api.OperationUpsert), &made); err != nil {
		return fmt.Errorf("create the sync: %w", err)
	}
	w.Sync = made.Sync
	return nil
}

// config is the body that creates or updates the sync (spec 2.6, 4).
func (w *World) config(operation string) map[string]any {
	var mappings []map[string]any
	for _, m := range mapped {
		mappings = append(mappings, map[string]any{
			"from": map[string]any{"type": api.FromColumn, "data": m.column}, "to": m.field, "is_primary_identifier": m.field == mapped[0].field,
		})
	}
	return map[string]any{
		"label": "Contacts", "operation": operation, "mappings": mappings,
		"source_attributes": map[string]any{"connection_id": w.source, "object": map[string]string{
			"type": api.ObjectTable, "table_catalog": catalog, "table_schema": schema, "table_name": tableName,
		}},
		"destination_attributes": map[string]any{"connection_id": w.Target, "object": Object},
	}
}

// Change runs statements in the warehouse, as its owner would.
func (w *World) Change(ctx context.Context, sql string) error {
	return w.API.Control(ctx, http.MethodPost, fmt.Sprintf("/sources/%d/execute", w.source), map[string]string{"sql": sql}, nil)
}

// mirror makes the sync a mirror.
func (w *World) mirror(ctx context.Context) error {
	// spec 4.1.1: an update carries operation, mappings and both attributes.
	return w.API.Call(ctx, http.MethodPatch, fmt.Sprintf("%s/syncs/%d", api.BasePath, w.Sync), w.config(api.OperationMirror), nil)
}

// held is what the destination counts: its records, and the batches that it got.
type held struct{ records, batches int64 }

func (w *World) held(ctx context.Context) (held, error) {
	var counts struct {
		Records map[string]int64 `json:"records"`
		Calls   struct {
			ByMethod map[string]int64 `json:"by_method"`
		} `json:"calls"`
	}
	err := w.Destination.Control(ctx, http.MethodGet, "/counts", nil, &counts)
	return held{counts.Records[Object], counts.Calls.ByMethod["sync_batch"]}, err
}
