package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEmbeddedDemo plays the requests of an application that shows the service
// inside its own pages (client F of facts): its codes are asserted, its pages are
// read until there is no next one, and its syncs have the older form.
func TestEmbeddedDemo(t *testing.T) {
	w := newSyncWorld(t, func(c *Config) { c.Dialect = DialectLive })
	get := func(path string) *answer { return w.do("GET", path, w.key, nil).want(http.StatusOK) }
	require.NotZero(t, get("/workspace/").id("data.id"))
	all := func(path string) (found []any) {
		for page := int64(1); page != 0; {
			a := get(fmt.Sprintf("%s?page=%d&per_page=1", path, page))
			found = append(found, a.at("data").([]any)...)
			next := a.at("pagination.next_page")
			if page = 0; next != nil {
				page = a.id("pagination.next_page")
			}
		}
		return found
	}
	application := w.emulated("salesforce").id("data.id")
	require.Len(t, all("/destinations"), 2)
	require.Len(t, all("/sources"), 1)
	require.Len(t, all(fmt.Sprintf("/sources/%d/objects", w.source)), 1)

	dataset := w.do("POST", "/datasets", w.key, map[string]any{
		"name": "Shoppers", "type": "sql", "source_id": w.source, "query": "SELECT email, name FROM customers",
	}).want(http.StatusCreated).id("data.id")
	require.Len(t, get("/datasets?type=sql").at("data"), 1)

	// The identifier alone, and the schedule in its older form without a mode.
	a := w.do("POST", "/syncs", w.key, map[string]any{
		"label": "Embedded", "operation": "update", "paused": true,
		"source_attributes":      map[string]any{"connection_id": w.source, "object": map[string]any{"type": "dataset", "id": dataset}},
		"destination_attributes": map[string]any{"connection_id": application, "object": "Contact"},
		"mappings":               []any{column("email", "Email", true)},
		"schedule_frequency":     "never", "schedule_day": nil, "schedule_hour": nil, "schedule_minute": nil, "cron_expression": nil,
		"triggers": map[string]any{},
	}).want(http.StatusOK)
	require.Equal(t, "created", a.at("status"))
	path := fmt.Sprintf("/syncs/%d", a.id("data.sync_id"))
	require.Equal(t, "never", get(path).at("data.schedule_frequency"))

	// Partial updates: one property, then the mappings alone.
	for _, paused := range []bool{false, true, false} {
		require.Equal(t, paused, w.do("PATCH", path, w.key, map[string]any{"paused": paused}).want(http.StatusOK).at("data.paused"))
	}
	updated := w.do("PATCH", path, w.key, map[string]any{"mappings": []any{column("email", "Email", true), column("name", "LastName", false)}}).want(http.StatusOK)
	require.Len(t, updated.at("data.mappings"), 2)
	require.Equal(t, "Embedded", updated.at("data.label"))

	run := w.do("POST", path+"/trigger?force_full_sync=True", w.key, nil).want(http.StatusOK).id("data.sync_run_id")
	w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(http.StatusOK) // the contact is not there, so it is tried again
	require.Equal(t, true, get(fmt.Sprintf("/sync_runs/%d", run)).at("data.full_sync"))
	require.Len(t, all(path+"/sync_runs"), 1)
	require.Equal(t, "deleted", w.do("DELETE", path, w.key, nil).want(http.StatusOK).at("status"))
	require.JSONEq(t, `{"status":404}`, string(w.do("GET", path, w.key, nil).want(http.StatusNotFound).text))
}
