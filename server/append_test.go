package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAppendOfEqualRows: in a sync without an identifier every row is sent once
// for the life of the sync, however many equal ones there are (spec 2.6), into
// files and into emulated types.
func TestAppendOfEqualRows(t *testing.T) {
	name := column("name", "name", false)
	for _, c := range []struct {
		name string
		make func(w *syncWorld) (body map[string]any, stored func() int)
	}{
		{"local_files", func(w *syncWorld) (map[string]any, func() int) {
			dir := w.t.(*testing.T).TempDir()
			file := filepath.Join(dir, "records.csv")
			require.NoError(w.t, os.WriteFile(file, []byte("name\n"), 0o600))
			made := w.destinationOf("local_files", map[string]any{"path": dir, "format": "csv"})
			body := map[string]any{
				"destination_attributes": map[string]any{"connection_id": made.id("data.id"), "object": made.at("data.objects.0.full_name")},
				"operation":              "append", "mappings": []any{name},
			}
			return body, func() int {
				text, err := os.ReadFile(file)
				require.NoError(w.t, err)
				return strings.Count(string(text), "\n") - 1
			}
		}},
		{"google_sheets", func(w *syncWorld) (map[string]any, func() int) {
			body := w.spreadsheet(nil)
			id := body["destination_attributes"].(map[string]any)["connection_id"]
			return body, func() int {
				return len(w.control("GET", fmt.Sprintf("/destinations/%d/records?object=Sheet1&limit=1000", id), nil).want(200).at("records").([]any))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newSyncWorld(t)
			body, stored := c.make(w)
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
			require.Equal(t, [7]int64{34, 0, 0, 0, 0, 0, 0}, w.runs(id).counts())
		})
	}
}
