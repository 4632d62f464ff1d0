//go:build unix

package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWriteback: each run writes what became of its records into the source's own
// schema of the service, and what is too old goes.
func TestWriteback(t *testing.T) {
	for _, kind := range []string{"postgres", "snowflake"} {
		t.Run(kind, func(t *testing.T) {
			w := newSyncWorld(t)
			w.control("POST", "/clock", `{"freeze":true}`).want(200)
			object := map[string]any{"type": "table", "table_catalog": "SHOP", "table_schema": "PUBLIC", "table_name": "CUSTOMERS"}
			connected := map[string]any{"name": "Warehouse", "type": "snowflake", "credentials": map[string]any{
				"account": "xy12345", "warehouse": "LOADING", "database": "SHOP", "user": "reader", "password": "s3cret",
			}}
			var change func(sql string)
			if kind == "postgres" {
				o, exec := postgresOrigin(w.world, "advanced")
				connected, object, change = o.connection, o.object, exec
			}
			connected["sync_engine"], connected["warehouse_writeback_retention_in_days"] = "advanced", 7
			made := w.do("POST", "/sources", w.key, connection(connected)).want(201)
			require.EqualValues(t, 7, made.id("data.warehouse_writeback_retention_in_days"))
			id := made.id("data.id")
			if kind == "snowflake" {
				change = func(sql string) {
					w.control("POST", fmt.Sprintf("/sources/%d/execute", id), map[string]any{"sql": sql}).want(200)
				}
				change("CREATE TABLE CUSTOMERS (email TEXT, name TEXT)")
			}
			change("INSERT INTO customers VALUES ('ada@example.com', 'Ada'), ('grace@example.com', 'Grace'), (NULL, 'Nobody')")
			tables := func() int64 {
				w.refresh(fmt.Sprintf("/sources/%d/refresh_tables", id), fmt.Sprintf("/sources/%d/refresh_tables_status", id))
				return w.do("GET", fmt.Sprintf("/sources/%d/objects", id), w.key, nil).want(200).id("pagination.total_records")
			}
			before := tables()
			y := w.kept(map[string]any{"operation": "mirror", "source_attributes": map[string]any{"connection_id": id, "object": object}}).id("data.id")
			first := w.runs(y)
			require.Equal(t, [7]int64{3, 2, 0, 1, 2, 2, 0}, first.counts())

			// The log is read as any table that is named in a query.
			logged := func(where string) int64 {
				name := fmt.Sprintf("Log %d", w.do("GET", "/datasets", w.key, nil).want(200).id("pagination.total_records"))
				query := "SELECT log_id, sync_id, sync_run_id, record_identifier, record_payload, batch_started_at, batch_completed_at, operation, status, status_message, " +
					"_census_logged_at, destination_id, destination_object_id, source_id, source_object_id FROM destkit.sync_log WHERE " + where
				a := w.do("POST", "/datasets", w.key, dataset(id, name, query)).want(201)
				return a.id("data.cached_record_count")
			}
			run := first.id("data.id")
			require.EqualValues(t, 2, logged(fmt.Sprintf("sync_run_id = %d AND sync_id = %d AND source_id = %d AND destination_id = %d", run, y, id, w.dest)))
			require.EqualValues(t, 1, logged("record_identifier = 'ada@example.com' AND operation = 'upsert' AND status = 'succeeded' AND destination_object_id = 'person'"))
			require.EqualValues(t, 2, logged("status_message IS NULL AND batch_completed_at >= batch_started_at AND record_payload IS NOT NULL"))
			require.Equal(t, before, tables(), "what the service writes is no table of the source")

			change("DELETE FROM customers WHERE name = 'Grace'")
			w.control("POST", "/clock", `{"advance":"144h"}`).want(200)
			w.runs(y)
			require.EqualValues(t, 3, logged("1 = 1"))
			require.EqualValues(t, 1, logged("operation = 'delete' AND record_identifier = 'grace@example.com'"))
			w.control("POST", "/clock", `{"advance":"48h"}`).want(200)
			w.runs(y)
			require.EqualValues(t, 1, logged("1 = 1"), "what was logged eight days ago is gone")

			path := fmt.Sprintf("/sources/%d", id)
			w.do("PATCH", path, w.key, connection(map[string]any{"warehouse_writeback_retention_in_days": nil})).want(200)
			change("UPDATE customers SET name = 'Ada L.' WHERE name = 'Ada'")
			w.runs(y)
			require.EqualValues(t, 1, logged("1 = 1"), "no log is kept any more")
			for _, days := range []int{0, 3651} {
				require.Contains(t, w.do("PATCH", path, w.key, connection(map[string]any{"warehouse_writeback_retention_in_days": days})).want(400).problems()["connection.warehouse_writeback_retention_in_days"], "1 to 3650")
			}
			delete(connected, "sync_engine")
			require.Contains(t, w.do("POST", "/sources", w.key, connection(connected)).want(400).problems()["connection.warehouse_writeback_retention_in_days"], "sync_engine advanced")
		})
	}
}
