package server

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit/diskfault"
)

// oneMore is a row that the next run has to send.
const oneMore = `INSERT INTO customers (id, email, name) VALUES (5, 'edsger@example.com', 'Edsger')`

// beneathCells let the disk fail beneath the database of the service.
func beneathCells() (cells []diskCellOfService) {
	const failing = "500, the disk of the service's database fails"
	for _, c := range []struct {
		harm   string
		fault  diskfault.Fault
		code   int
		answer string
		start  string
	}{
		{"a failed fsync", diskfault.Fault{Op: diskfault.Sync, Code: diskfault.SyncFails}, http.StatusInternalServerError, failing, "the disk of the database fails"},
		{"a failed write", diskfault.Fault{Op: diskfault.Write, Code: diskfault.WriteFails}, http.StatusInternalServerError, failing, "the disk of the database fails"},
		{"half a write", diskfault.Fault{Op: diskfault.Write, Code: diskfault.NoRoom, Short: true}, http.StatusInsufficientStorage, "507, the service's disk is full", "no space left for the database"},
	} {
		add := func(operation, outcome string, run func(t *testing.T, w *diskWorld, disk *diskfault.Disk)) {
			cells = append(cells, diskCellOfService{"beneath SQLite", c.harm, operation, outcome, func(t *testing.T) {
				folder := t.TempDir()
				disk := diskfault.Under(t, folder)
				run(t, newDiskWorldIn(t, "mirror", folder), disk)
			}})
		}
		add("a write of the API", "refused: "+c.answer+"; not there after a kill or a loss of power, nothing acknowledged lost", func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			disk.Fail(c.fault)
			a := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Refused"})
			require.Positive(t, disk.Heal())
			require.Equal(t, c.code, a.code, string(a.text))
			require.Contains(t, string(a.text), c.answer[len("500, "):])
			killed, lost := filepath.Join(t.TempDir(), "killed"), filepath.Join(t.TempDir(), "lost")
			copyTree(t, w.dir, killed)
			require.NoError(t, disk.PowerLost(lost))
			present, server := w.dir, w.s
			for _, dir := range []string{killed, filepath.Join(lost, "data")} {
				w.dir = dir
				require.NoError(t, w.start())
				same(t, w.look, worldOf(w.world))
				w.stop()
			}
			w.dir, w.s = present, server
			w.whole()
		})
		add("restore", "refused: "+c.answer+"; nothing changed", func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			copied, _ := w.takeCopies("snapshot")
			disk.Fail(c.fault)
			a := w.control("POST", "/restore", copied.earlier)
			require.Positive(t, disk.Heal())
			require.Equal(t, c.code, a.code, string(a.text))
			require.Contains(t, string(a.text), c.answer[len("500, "):])
			w.whole()
		})
		add("a sync run, as it begins", "refused: "+c.answer+"; not there after a kill, the next one sends all", func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			w.changeSource(oneMore)
			before := string(w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", w.id), w.key, nil).want(200).text)
			disk.Fail(c.fault)
			a := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", w.id), w.key, nil)
			require.Positive(t, disk.Heal())
			require.Equal(t, c.code, a.code, string(a.text))
			require.Contains(t, string(a.text), c.answer[len("500, "):])
			require.Equal(t, before, string(w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", w.id), w.key, nil).want(200).text))
			w.kill()
			require.NoError(t, w.start())
			w.whole()
		})
		add("a sync run, at work", "recovered: it waits for the disk and ends as it would have; after a kill each record is there once", func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			w.changeSource(oneMore)
			reached, release := w.hold()
			run := w.trigger(w.id)
			<-reached
			disk.Fail(c.fault)
			release()
			w.control("POST", "/settle", nil).want(200)
			shown := func() *answer { return w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200) }
			require.Equal(t, "working", shown().at("data.status"))
			killed := filepath.Join(t.TempDir(), "killed")
			copyTree(t, w.dir, killed)
			require.Positive(t, disk.Heal())
			w.control("POST", "/clock", map[string]any{"advance": "5m"}).want(200)
			ended := shown()
			require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
			require.EqualValues(t, 1, ended.id("data.records_updated"), string(ended.text))
			w.look = worldOf(w.world)
			w.stop()
			w.dir = killed
			require.NoError(t, w.start())
			w.control("POST", "/settle", nil).want(200)
			require.Equal(t, "completed", shown().at("data.status"), string(shown().text))
			w.whole()
		})
		outcome := "refused: " + c.answer + "; no copy is left, nothing changed"
		if c.fault.Op == diskfault.Sync {
			outcome = "made: a copy is synced by who keeps it; nothing changed"
		}
		add("snapshot", outcome, func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			disk.Fail(c.fault)
			a := w.control("GET", "/snapshot", nil)
			met := disk.Heal()
			if c.fault.Op == diskfault.Sync {
				require.Less(t, a.code, 300, string(a.text))
			} else {
				require.Positive(t, met)
				require.Equal(t, c.code, a.code, string(a.text))
				require.Contains(t, string(a.text), c.answer[len("500, "):])
			}
			w.whole()
		})
		add("stop", "recovered: the log is kept; nothing lost", func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			disk.Fail(c.fault)
			_ = w.s.Close()
			require.Positive(t, disk.Heal())
			require.NoFileExists(t, w.path("destkit.db-sum"))
			require.NoError(t, w.start())
			w.whole()
		})
		add("start", "refused: "+c.start+"; the next one finds everything", func(t *testing.T, w *diskWorld, _ *diskfault.Disk) {
			w.kill()
			disk := diskfault.Under(t, w.dir)
			disk.Fail(c.fault)
			err := w.start()
			require.Positive(t, disk.Heal())
			require.ErrorContains(t, err, c.start)
			require.ErrorContains(t, err, w.dir)
			require.NoError(t, w.start())
			w.whole()
		})
	}
	return cells
}
