package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/rest"
	"github.com/destkit/destkit/cmd/destkit/internal/terminal"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/api"
)

// demoObject is where the records go.
const demoObject = "contact"

// demoWorld is the service, the destination and the ids of what was made.
type demoWorld struct {
	api         *rest.Client // of the service
	destination *rest.Client // of the simulator's control API
	source      int64
	target      int64
	sync        int64
}

// syncAll runs the syncs of the demo.
func (d *demo) syncAll(ctx context.Context, dir string) (err error) {
	files := demoFiles(dir)
	// In memory, where nobody wants to look at it later.
	store := destsim.Config{}
	if d.data != "" {
		store.Store = "sqlite:" + files.destination
	}
	target, err := newDemoDestination(ctx, store)
	if err != nil {
		return err
	}
	defer func() {
		if failed := target.Stop(); err == nil {
			err = failed
		}
	}()
	port, client, err := newDemoService(ctx, files, target.certificates.CAPEM())
	if err != nil {
		return err
	}
	defer func() { // before the destination, which it may still call
		if failed := port.Stop(); err == nil {
			err = failed
		}
	}()
	w := &demoWorld{api: client, destination: controlOf(target)}
	foreign.Printf(d.out, "service at %s, destination at %s\n", port.URL, target.URL)
	began := time.Now()
	done := terminal.GoesOn(d.screen, d.quiet, "filling the table")
	err = w.make(ctx, target.URL, d.rows)
	done()
	if err != nil {
		return rest.Failure("prepare the demo", err)
	}
	foreign.Printf(d.out, "a table of %s, made in %s; a sync of it, over https, through the REST API:\n\n", quantity.Counted(d.rows, "row"), quantity.Roughly(time.Since(began)))
	foreign.Println(d.out, demoHeader)
	steps := demoSteps(d.rows)
	for _, step := range steps {
		if err := d.step(ctx, w, step); err != nil {
			return rest.Failure(step.title, err)
		}
	}
	if err := d.prove(ctx, w, steps[len(steps)-1]); err != nil {
		return rest.Failure("audit", err)
	}
	return nil
}

// controlOf is a client of a simulator.
func controlOf(p *demoPort) *rest.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs = p.roots()
	return &rest.Client{Root: p.URL, HTTP: &http.Client{Timeout: time.Minute, Transport: transport}}
}

// make creates the table, the source, the destination and the sync.
func (w *demoWorld) make(ctx context.Context, endpoint string, rows int64) error {
	var made struct {
		ID   int64 `json:"id"`
		Sync int64 `json:"sync_id"`
	}
	err := w.api.Post(ctx, "/sources", map[string]any{"connection": map[string]any{
		"name": "Warehouse", "type": "snowflake", "credentials": map[string]string{
			"account": "demo", "warehouse": "LOADING", "database": demoCatalog, "user": "demo", "password": "demo",
		}}}, &made)
	if err != nil {
		return fmt.Errorf("create the source: %w", err)
	}
	w.source = made.ID
	for _, sql := range demoTable(rows) {
		if err := w.change(ctx, sql); err != nil {
			return fmt.Errorf("fill the table: %w", err)
		}
	}
	err = w.api.Post(ctx, "/destinations", map[string]any{"service_connection": map[string]any{
		"name": "Simulated destination", "type": "custom_api", "credentials": map[string]any{
			"api_version": 1, "webhook_url": endpoint + "/", "auth_token": demoToken,
		}}}, &made)
	if err != nil {
		return fmt.Errorf("create the destination: %w", err)
	}
	w.target = made.ID
	// spec 2.6: no mode, so it runs when it is triggered.
	if err := w.api.Post(ctx, "/syncs", w.config(api.OperationUpsert), &made); err != nil {
		return fmt.Errorf("create the sync: %w", err)
	}
	w.sync = made.Sync
	return nil
}

// config is the body that creates or updates the sync (spec 2.6, 4).
func (w *demoWorld) config(operation string) map[string]any {
	var mappings []map[string]any
	for _, m := range demoMappings {
		mappings = append(mappings, map[string]any{
			"from": map[string]any{"type": api.FromColumn, "data": m.column}, "to": m.field, "is_primary_identifier": m.field == demoMappings[0].field,
		})
	}
	return map[string]any{
		"label": "Contacts", "operation": operation, "mappings": mappings,
		"source_attributes": map[string]any{"connection_id": w.source, "object": map[string]string{
			"type": api.ObjectTable, "table_catalog": demoCatalog, "table_schema": demoSchema, "table_name": demoTableName,
		}},
		"destination_attributes": map[string]any{"connection_id": w.target, "object": demoObject},
	}
}

// change runs statements in the warehouse, as its owner would.
func (w *demoWorld) change(ctx context.Context, sql string) error {
	return w.api.Control(ctx, http.MethodPost, fmt.Sprintf("/sources/%d/execute", w.source), map[string]string{"sql": sql}, nil)
}

// mirror makes the sync a mirror.
func (w *demoWorld) mirror(ctx context.Context) error {
	// spec 4.1.1: an update carries operation, mappings and both attributes.
	return w.api.Call(ctx, http.MethodPatch, fmt.Sprintf("%s/syncs/%d", server.BasePath, w.sync), w.config(api.OperationMirror), nil)
}

// held is what the destination counts: its records, and the batches that it got.
type held struct{ records, batches int64 }

func (w *demoWorld) held(ctx context.Context) (held, error) {
	var counts struct {
		Records map[string]int64 `json:"records"`
		Calls   struct {
			ByMethod map[string]int64 `json:"by_method"`
		} `json:"calls"`
	}
	err := w.destination.Control(ctx, http.MethodGet, "/counts", nil, &counts)
	return held{counts.Records[demoObject], counts.Calls.ByMethod["sync_batch"]}, err
}
