package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// journalCells harm the journal of a file that rows are appended to: two slots beside
// it, of which one says what the last batch did.
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
		text, err := os.ReadFile(slot)
		require.NoError(t, err)
		earlier[i] = text
	}
	for _, name := range []string{"Third", "Fourth"} {
		require.Equal(t, "completed", appends(name).at("data.status"))
	}
	slot := 1 // the fourth batch is in 0
	if newest {
		slot = 0
	}
	now, err := os.ReadFile(slots[slot])
	require.NoError(t, err)
	if text := harm.does(now, earlier[slot]); text == nil {
		require.NoError(t, os.Remove(slots[slot]))
	} else {
		require.NoError(t, os.WriteFile(slots[slot], text, 0o600))
	}
	file := filepath.Join(dir, "records."+format)
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	add("Fifth")
	ended := w.oneRunAhead(id)
	if refused {
		require.NotEqual(t, "completed", ended.at("data.status"), string(ended.text))
		require.Contains(t, string(ended.text), "the journal "+filepath.Base(slots[slot])+" of records."+format+" is damaged")
		require.Contains(t, string(ended.text), "then remove the journal")
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))
		require.NoError(t, os.Remove(slots[slot]))
		ended = w.oneRun(id)
	}
	require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, name := range []string{"Second", "Third", "Fourth", "Fifth"} {
		require.Equal(t, 1, strings.Count(string(text), name), "%s in %s", name, text)
	}
	report := w.audits(id, map[string]any{"readback": nil})
	require.True(t, report.Clean, "%+v", report.Findings)
}
