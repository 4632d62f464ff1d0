package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

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
