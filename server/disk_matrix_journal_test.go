package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit/diskfault"
	"github.com/destkit/destkit/server/api"
)

// journalCells damage the journal of a file that rows are appended to: two slots next
// to the file, one of which records the last batch.
func journalCells() (cells []diskCellOfService) {
	harms := append(damagedCopy()[2:4], flipped(0), flipped(8),
		diskHarm{"emptied", func([]byte, []byte) []byte { return []byte{} }},
		diskHarm{"removed", func([]byte, []byte) []byte { return nil }},
		diskHarm{"of an earlier day", func(_, earlier []byte) []byte { return earlier }})
	for _, format := range []string{"csv", "jsonl"} {
		for _, newest := range []bool{true, false} {
			file := "journal of the batch before, " + format
			if newest {
				file = "journal of the last batch, " + format
			}
			for _, harm := range harms {
				refused := newest && harm.name != "removed" && harm.name != "of an earlier day"
				outcome := "recovered: each row once"
				if refused {
					outcome = "refused: the journal is damaged; see that the file ends with a whole row, then remove the journal"
				}
				cells = append(cells, diskCellOfService{file, harm.name, "append", outcome, func(t *testing.T) { appendsBeside(t, format, newest, harm, refused) }})
			}
		}
	}
	return cells
}

// oneRunAhead is oneRun for a run that waits between its attempts: time is advanced until
// it has ended.
func (w *world) oneRunAhead(id int64) (ended *answer) {
	w.t.Helper()
	run := w.trigger(id)
	for range 100 {
		w.control("POST", "/clock", `{"advance":"1m"}`).want(http.StatusOK)
		ended = w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(http.StatusOK)
		if status := ended.at("data.status"); status != api.RunQueued && status != api.RunWorking {
			break
		}
	}
	return ended
}

// appendsBeside has a sync append to a file in two runs, harms a slot of its journal, and
// has it append again.
func appendsBeside(t *testing.T, format string, newest bool, harm diskHarm, refused bool) {
	w := newSyncWorld(t)
	dir := t.TempDir()
	made := w.destinationOf("local_files", map[string]any{"path": dir, "format": format})
	id := w.kept(map[string]any{
		"destination_attributes": map[string]any{"connection_id": made.id("data.id"), "object": "records"}, "operation": "append",
		"mappings": []any{column("name", "name", false)},
	}).id("data.id")
	add := func(name string) { w.changeSource("INSERT INTO customers (name) VALUES ('" + name + "')") }
	appends := func(name string) *answer {
		add(name)
		return w.oneRun(id)
	}
	require.Equal(t, "completed", w.oneRun(id).at("data.status"))
	slots := [2]string{} // by the batch modulo 2
	for i := range slots {
		slots[i] = filepath.Join(dir, ".records."+format+".destkit-journal-"+string(rune('0'+i)))
	}
	require.Equal(t, "completed", appends("Second").at("data.status"))
	earlier := [2][]byte{}
	for i, slot := range slots {
		earlier[i] = contentOf(t, slot)
	}
	for _, name := range []string{"Third", "Fourth"} {
		require.Equal(t, "completed", appends(name).at("data.status"))
	}
	slot := 1 // the fourth batch is in 0
	if newest {
		slot = 0
	}
	now := contentOf(t, slots[slot])
	if text := harm.does(now, earlier[slot]); text == nil {
		require.NoError(t, os.Remove(slots[slot]))
	} else {
		require.NoError(t, os.WriteFile(slots[slot], text, 0o600))
	}
	file := filepath.Join(dir, "records."+format)
	before := contentOf(t, file)
	add("Fifth")
	ended := w.oneRunAhead(id)
	if refused {
		require.NotEqual(t, "completed", ended.at("data.status"), string(ended.text))
		require.Contains(t, string(ended.text), "the journal "+filepath.Base(slots[slot])+" of records."+format+" is damaged")
		require.Contains(t, string(ended.text), "then remove the journal")
		require.Equal(t, string(before), string(contentOf(t, file)))
		require.NoError(t, os.Remove(slots[slot]))
		ended = w.oneRun(id)
	}
	require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
	text := contentOf(t, file)
	for _, name := range []string{"Second", "Third", "Fourth", "Fifth"} {
		require.Equal(t, 1, strings.Count(string(text), name), "%s in %s", name, text)
	}
	flawless(t, w.ownAudit(id))
}

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
		refused := func(t *testing.T, met int, a *answer) {
			require.Positive(t, met)
			require.Equal(t, c.code, a.code, string(a.text))
			require.Contains(t, string(a.text), c.answer[len("500, "):])
		}
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
			refused(t, disk.Heal(), a)
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
			refused(t, disk.Heal(), a)
			w.whole()
		})
		add("a sync run, as it begins", "refused: "+c.answer+"; not there after a kill, the next one sends all", func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			w.changeSource(oneMore)
			before := string(w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", w.id), w.key, nil).want(200).text)
			disk.Fail(c.fault)
			a := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", w.id), w.key, nil)
			refused(t, disk.Heal(), a)
			require.Equal(t, before, string(w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", w.id), w.key, nil).want(200).text))
			w.kill()
			w.starts()
		})
		add("a sync run, at work", "recovered: it waits for the disk and ends as it would have; after a kill each record is there once", func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			w.changeSource(oneMore)
			run, release := w.held(w.id)
			disk.Fail(c.fault)
			release()
			w.control("POST", "/settle", nil).want(200)
			shown := func() *answer { return w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200) }
			require.Equal(t, "working", shown().at("data.status"))
			killed := filepath.Join(t.TempDir(), "killed")
			copyTree(t, w.dir, killed)
			require.Positive(t, disk.Heal())
			w.control("POST", "/clock", map[string]any{"advance": "5m"}).want(200)
			ended := shown().ended("completed")
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
				refused(t, met, a)
			}
			w.whole()
		})
		add("stop", "recovered: the log is kept; nothing lost", func(t *testing.T, w *diskWorld, disk *diskfault.Disk) {
			disk.Fail(c.fault)
			_ = w.s.Close()
			require.Positive(t, disk.Heal())
			require.NoFileExists(t, w.path("destkit.db-sum"))
			w.starts()
		})
		add("start", "refused: "+c.start+"; the next one finds everything", func(t *testing.T, w *diskWorld, _ *diskfault.Disk) {
			w.kill()
			disk := diskfault.Under(t, w.dir)
			disk.Fail(c.fault)
			err := w.start()
			require.Positive(t, disk.Heal())
			require.ErrorContains(t, err, c.start)
			require.ErrorContains(t, err, w.dir)
			w.starts()
		})
	}
	return cells
}
