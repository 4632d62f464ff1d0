package server

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRecordsOfARun: each record once with what became of it, chosen by
// identifier, status and operation, and gone after 14 days.
func TestRecordsOfARun(t *testing.T) {
	proves(t, "F-4-34", "F-4-35")
	w := newSyncWorld(t)
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES
		(2, 'grace@example.com', 'Grace'), (3, NULL, 'Nobody'), (4, 'twin@example.com', 'A'), (5, 'twin@example.com', 'B')`)
	id := w.kept(map[string]any{"operation": "mirror"}).id("data.id")
	run := w.runs(id)
	path := fmt.Sprintf("/sync_runs/%d/records", run.id("data.id"))
	list := func(query string) *answer { return w.do("GET", path+query, w.key, nil).want(200) }

	all := list("")
	require.EqualValues(t, 4, all.id("pagination.total_records"))
	status := map[string]string{}
	for _, row := range all.objects("data") {
		status[fmt.Sprint(row["identifier"])] = row["status"].(string)
	}
	require.Equal(t, map[string]string{
		"ada@example.com": "succeeded", "grace@example.com": "succeeded", "<nil>": "NULL", "twin@example.com": "DUPLICATE",
	}, status)
	ada := list("?primary_identifier=ada@example.com")
	ada.is("pagination.total_records", 1, "data.0.record_payload.last_name", "Ada", "data.0.operation", "upsert")
	ada.is("data.0.status_message", nil)
	require.NotEmpty(t, ada.at("data.0.batch_completed_at"))
	require.Len(t, list("?primary_identifier="+url.QueryEscape(`"grace@example.com"`)).at("data"), 1, "as JSON text")
	require.Len(t, list("?status=invalid").at("data"), 2)
	require.Len(t, list("?status=succeeded&per_page=1&page=2").at("data"), 1)
	require.Empty(t, list("?status=rejected").at("data"))
	require.Empty(t, list("?page=9223372036854775807&per_page=100").at("data"))
	w.do("GET", path+"?status=sent", w.key, nil).want(400)

	w.changeSource(`DELETE FROM customers WHERE id = 2`)
	second := fmt.Sprintf("/sync_runs/%d/records", w.runs(id).id("data.id"))
	gone := w.do("GET", second+"?operation=delete", w.key, nil).want(200)
	require.Equal(t, "grace@example.com", gone.at("data.0.identifier"))
	require.Len(t, gone.at("data.0.record_payload"), 1, "a delete carries the identifier only")

	w.control("POST", "/clock", map[string]any{"advance": "335h"}).want(200)
	list("")
	w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
	w.do("GET", path, w.key, nil).want(410)
	w.do("GET", second, w.key, nil).want(410)
	runs := must(w.s.ledger.Sync(id).Runs())(t)
	require.Empty(t, runs, "the logs are dropped")
	require.EqualValues(t, 0, w.runs(id).id("data.records_updated"), "and nothing is sent again")
}

// TestRecordsOfARunWithout: a run that ended before anything was sent has none.
func TestRecordsOfARunWithout(t *testing.T) {
	w, id := newKept(t, nil)
	w.changeSource(`DROP TABLE customers`)
	run := w.runs(id).ended("failed")
	require.Empty(t, w.do("GET", fmt.Sprintf("/sync_runs/%d/records", run.id("data.id")), w.key, nil).want(200).at("data"))
}

// TestRecordsOnTheirWay: what was sent and not answered is in no list of a run that
// works, whatever it is looked for by, and the pages and the total go without it. A
// run that ends without the answer lists it as rejected.
func TestRecordsOnTheirWay(t *testing.T) {
	h, hold, release := newHeldBatches(t, 1)
	h.rows(3000) // three batches of 1,000, so that it is the same which of them passes
	id := h.kept(nil).id("data.id")
	h.armed.Store(true)
	run := h.trigger(id)
	<-hold.reached
	path := fmt.Sprintf("/sync_runs/%d", run)
	list := func(query string) *answer { return h.do("GET", path+"/records"+query, h.key, nil).want(200) }
	total := func(query string) int64 { return list(query).id("pagination.total_records") }
	require.Eventually(t, func() bool {
		return fmt.Sprint(h.do("GET", path, h.key, nil).want(200).at("data.records_processed")) == "1000"
	}, time.Minute, time.Millisecond, "one batch has its answer, the others are held back")

	require.EqualValues(t, 1000, total(""))
	require.Zero(t, total("?status=rejected"))
	require.EqualValues(t, 1000, total("?status=succeeded"))
	require.EqualValues(t, 1000, total("?operation=upsert"))
	last := list("?per_page=100&page=10")
	last.is("pagination.last_page", 10, "pagination.next_page", nil)
	require.Len(t, last.at("data"), 100)
	require.Empty(t, list("?per_page=100&page=11").at("data"))
	sent := map[string]bool{}
	for page := 1; page <= 10; page++ {
		for _, row := range list(fmt.Sprintf("?per_page=100&page=%d", page)).objects("data") {
			require.Equal(t, "succeeded", row["status"])
			sent[row["identifier"].(string)] = true
		}
	}
	require.Len(t, sent, 1000)
	var waits string
	for i := 4; waits == ""; i++ {
		if key := fmt.Sprintf("user%d@example.com", i); !sent[key] {
			waits = key
		}
	}
	require.Zero(t, total("?primary_identifier="+waits))

	release()
	h.control("POST", "/settle", nil).want(200)
	require.EqualValues(t, 3000, total(""))
	require.EqualValues(t, 3000, total("?status=succeeded"))
	require.EqualValues(t, 1, total("?primary_identifier="+waits))
}

// TestRecordsWithoutAnswer: a run that ended before the answer came lists what it had
// sent as rejected.
func TestRecordsWithoutAnswer(t *testing.T) {
	h, hold, _ := newHeldBatches(t, 0, func(c *Config) { c.grace = time.Millisecond })
	id := h.kept(nil).id("data.id")
	h.armed.Store(true)
	run := h.trigger(id)
	<-hold.reached
	path := fmt.Sprintf("/sync_runs/%d", run)
	require.Zero(t, h.do("GET", path+"/records", h.key, nil).want(200).id("pagination.total_records"))
	h.do("POST", path+"/cancel", h.key, nil).want(200)
	h.control("POST", "/settle", nil).want(200)

	list := h.do("GET", path+"/records?status=rejected", h.key, nil).want(200)
	list.is("pagination.total_records", 3, "data.0.status_message", "sent, and not answered")
}

// TestAppendOfEqualRows: in a sync without an identifier every row is sent once
// for the life of the sync, however many equal ones there are (spec 2.6), into an
// emulated type as into files.
func TestAppendOfEqualRows(t *testing.T) {
	w := newSyncWorld(t)
	body := w.spreadsheet(nil)
	stored := func() int {
		return len(w.keptRecords(body["destination_attributes"].(map[string]any)["connection_id"].(int64), "Sheet1"))
	}
	id := w.kept(body).id("data.id")
	add := func(from, n int, name string) {
		w.changeSource(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO customers (id, name) SELECT i, '%s' FROM n`, from, from+n-1, name))
	}
	add(10, 25, "Ada") // 26 with the one that is there
	add(100, 3, "Grace")
	require.Equal(t, [7]int64{29, 29, 0, 0, 29, 29, 0}, w.runs(id).counts())
	require.Equal(t, 29, stored())
	require.Equal(t, [7]int64{29, 0, 0, 0, 0, 0, 0}, w.runs(id).counts(), "each row once")
	add(200, 4, "Ada")
	add(300, 1, "Alan")
	require.Equal(t, [7]int64{34, 5, 0, 0, 5, 5, 0}, w.runs(id).counts(), "more equal ones, later")
	require.Equal(t, 34, stored())
}
