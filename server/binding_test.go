package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// inPlace is a service in a directory that can be closed, harmed, and opened again.
type inPlace struct {
	*syncWorld
	dir string
	id  int64 // of a mirror with three rows that has run twice
}

func newInPlace(t testing.TB) *inPlace {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	w := &inPlace{newSyncWorld(t, func(c *Config) { c.Dir, c.MasterKey = dir, bytes.Repeat([]byte{7}, 32) }), dir, 0}
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace'), (3, 'alan@example.com', 'Alan')`)
	w.id = w.kept(map[string]any{"operation": "mirror"}).id("data.id")
	require.EqualValues(t, 3, w.oneRun(w.id).id("data.records_updated"))
	w.changeSource(`UPDATE customers SET name = 'Ada Lovelace' WHERE id = 1`)
	require.EqualValues(t, 1, w.oneRun(w.id).id("data.records_updated"))
	return w
}

func (w *inPlace) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

// start opens the directory again.
func (w *inPlace) start(change ...func(*Config)) error {
	config := Config{AllowFiles: everyFolder, Dir: w.dir, MasterKey: bytes.Repeat([]byte{7}, 32), Development: true}
	for _, f := range change {
		f(&config)
	}
	s, err := New(w.t.Context(), config)
	if err != nil {
		return err
	}
	w.s = s
	w.t.Cleanup(func() { _ = s.Close() })
	return nil
}

func (w *inPlace) stop() { w.t.Helper(); require.NoError(w.t, w.s.Close()) }

func (w *inPlace) restart() { w.t.Helper(); w.stop(); require.NoError(w.t, w.start()) }

// move gives a file or a folder of the directory another place.
func (w *inPlace) move(from, to string) {
	w.t.Helper()
	require.NoError(w.t, os.Rename(w.path(from), w.path(to)))
}

// files are the names and bytes of a folder, but for those of the lock.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "owner") {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}))
	return all
}

func copyTree(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

// TestLedgerOfAnotherDatabase: a start whose ledger and database do not fit is refused
// with the way out, changes nothing, and the way out works.
func TestLedgerOfAnotherDatabase(t *testing.T) {
	matrixtest.Long(t)
	aside := func(w *inPlace) { w.stop(); w.move("destkit.db", "../kept.db") }
	back := func(w *inPlace) { w.move("../kept.db", "destkit.db") }
	for name, c := range map[string]struct {
		harm func(w *inPlace) []func(*Config)
		says string
		way  func(w *inPlace)
	}{
		"the database removed": {func(w *inPlace) []func(*Config) {
			aside(w)
			return nil
		}, "its database is gone: put destkit.db back", back},
		"the database emptied": {func(w *inPlace) []func(*Config) {
			aside(w)
			require.NoError(w.t, os.WriteFile(w.path("destkit.db"), nil, 0o600))
			return nil
		}, "its database is gone", back},
		"a backup restored over it": {func(w *inPlace) []func(*Config) {
			backup := w.path("..", "backup.db")
			require.NoError(w.t, store.Backup(w.t.Context(), w.dir, backup))
			aside(w)
			text := contentOf(w.t, backup)
			return []func(*Config){func(c *Config) { c.Restore = bytes.NewReader(text) }}
		}, "name a new directory", back},
		"a backup put in its place": {func(w *inPlace) []func(*Config) {
			require.NoError(w.t, store.Backup(w.t.Context(), w.dir, w.path("..", "backup.db")))
			aside(w)
			w.move("../backup.db", "destkit.db")
			return nil
		}, "the database is a backup that was put beside it", back},
		"the database of an earlier start": {func(w *inPlace) []func(*Config) {
			w.stop()
			copyTree(w.t, w.dir, w.path("..", "earlier"))
			require.NoError(w.t, w.start())
			aside(w)
			w.move("../earlier/destkit.db", "destkit.db")
			return nil
		}, "which is of an earlier day", back},
		"the ledger of another installation": {func(w *inPlace) []func(*Config) {
			other := newInPlace(w.t)
			other.stop()
			w.stop()
			w.move("ledger", "../kept")
			copyTree(w.t, other.path("ledger"), w.path("ledger"))
			return nil
		}, "it belongs to another database", func(w *inPlace) {
			require.NoError(w.t, os.RemoveAll(w.path("ledger")))
			w.move("../kept", "ledger")
		}},
		"no binding": {func(w *inPlace) []func(*Config) {
			w.stop()
			w.move("ledger/binding", "../binding")
			return nil
		}, "it has no file binding", func(w *inPlace) { w.move("../binding", "ledger/binding") }},
		"a damaged binding": {func(w *inPlace) []func(*Config) {
			w.stop()
			copyTree(w.t, w.path("ledger"), w.path("..", "kept"))
			require.NoError(w.t, os.WriteFile(w.path("ledger", "binding"), []byte("{}"), 0o600))
			return nil
		}, "its file binding is damaged", func(w *inPlace) { w.move("../kept/binding", "ledger/binding") }},
	} {
		for _, way := range []string{"as it said", "the ledger moved away"} {
			t.Run(name+", "+way, func(t *testing.T) {
				w := newInPlace(t)
				change := c.harm(w)
				before := files(t, w.dir)
				err := w.start(change...)
				require.ErrorIs(t, err, ErrLedger)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, w.path("ledger"))
				after := files(t, w.dir)
				for path, text := range before {
					require.Equal(t, text == "", after[path] == "", path)
					if strings.Contains(path, "ledger") {
						require.Equal(t, text, after[path], path)
					}
				}
				w.changeSource(`DELETE FROM customers WHERE id = 3`)
				if way == "as it said" {
					c.way(w)
					require.NoError(t, w.start())
					ended := w.oneRun(w.id)
					require.Equal(t, [7]int64{2, 0, 1, 0, 1, 1, 0}, ended.counts(), string(ended.text))
					return
				}
				w.move("ledger", "../moved")
				require.NoError(t, w.start(change...))
				if w.s.FirstTokens() != nil { // nothing is left of the one before
					return
				}
				ended := w.oneRun(w.id)
				require.Equal(t, [7]int64{2, 2, 0, 0, 2, 2, 0}, ended.counts(), string(ended.text))
				require.Equal(t, true, ended.at("data.full_sync"))
				require.Contains(t, ended.at("data.sync_trigger_reason.ui_detail"), ledger.UnknownDeletes)
			})
		}
	}
}

// TestDatabaseThatKnowsLessRuns: a copy of the database that was made while the service
// ran has the same number of starts, but not the runs.
func TestDatabaseThatKnowsLessRuns(t *testing.T) {
	w := newInPlace(t)
	var text bytes.Buffer
	require.NoError(t, w.s.store.Copy(t.Context(), &text))
	w.oneRun(w.id)
	w.stop()
	require.NoError(t, os.WriteFile(w.path("destkit.db"), text.Bytes(), 0o600))
	require.ErrorIs(t, w.start(), ErrDamaged, "it is not what the stop has left")
	require.NoError(t, os.Remove(w.path("destkit.db-sum")))
	unmark(t, w.path("destkit.db"))
	require.ErrorContains(t, w.start(), "it has run 3 of sync 1, which the database does not know")
}

// TestDataOfAnEarlierProgram: a folder without ids is adopted once, also by a start
// that was killed on the way; without its database it is not.
func TestDataOfAnEarlierProgram(t *testing.T) {
	for moving := range 3 { // killed before the database has an id, and before the ledger has it
		w := newInPlace(t)
		w.change(func(tx *store.Tx) error {
			if moving < 2 {
				return errors.Join(tx.DeleteSetting(binding.Setting), tx.DeleteSetting(fmt.Sprintf("merged of sync %d", w.id)))
			}
			text, err := json.Marshal(binding.Bound{Binding: ledger.Binding{ID: "X", Generation: 1}, Moving: true})
			return errors.Join(err, tx.SetSetting(binding.Setting, string(text)))
		})
		w.stop()
		require.NoError(t, os.Remove(w.path("ledger", "binding")))
		if moving == 0 {
			w.move("destkit.db", "../kept.db")
			require.ErrorIs(t, w.start(), ErrLedger)
			w.move("../kept.db", "destkit.db")
		}
		require.NoError(t, w.start())
		require.Equal(t, [7]int64{3, 0, 0, 0, 0, 0, 0}, w.oneRun(w.id).counts())
		w.stop()
		found := must(ledger.Look(w.path("ledger")))(t)
		require.True(t, found.Bound)
		require.NoError(t, w.start())
		require.Equal(t, [7]int64{3, 0, 0, 0, 0, 0, 0}, w.oneRun(w.id).counts())
	}
}

// TestLedgerThatIsLost: if ledger files are missing or from an earlier day, the next
// run is a full sync that reports this and what it does not know; it still deletes
// what the logs name.
func TestLedgerThatIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		harm    func(w *inPlace)
		says    string
		deletes int64 // of the row that has left the source
	}{
		"state":            {func(w *inPlace) { w.take("sync-1", "state") }, "the state file is missing; its keys were rebuilt from the logs of 2 runs", 1},
		"state and a log":  {func(w *inPlace) { w.take("sync-1", "state"); w.take("sync-1", "run-1.log") }, "which do not go back to the first; " + ledger.UnknownDeletes, 0},
		"folder of a sync": {func(w *inPlace) { w.take("sync-1") }, ledger.UnknownDeletes, 0},
		"the whole ledger": {func(w *inPlace) { w.take() }, ledger.UnknownDeletes, 0},
		"a damaged state": {func(w *inPlace) {
			text := contentOf(w.t, w.path("ledger", "sync-1", "state"))
			text[len(text)/2] ^= 1
			require.NoError(w.t, os.WriteFile(w.path("ledger", "sync-1", "state"), text, 0o600))
		}, "damaged", 1},
		"an earlier folder": {func(w *inPlace) { w.take("sync-1"); copyTree(w.t, w.path("..", "earlier"), w.path("ledger", "sync-1")) }, "the state file is older than the logs of its runs", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newInPlace(t)
			copyTree(t, w.path("ledger", "sync-1"), w.path("..", "later"))
			if name == "an earlier folder" {
				copyTree(t, w.path("ledger", "sync-1"), w.path("..", "earlier"))
				w.changeSource(`INSERT INTO customers (id, email, name) VALUES (4, 'mary@example.com', 'Mary')`)
				w.oneRun(w.id)
				w.changeSource(`DELETE FROM customers WHERE id = 4`)
				w.oneRun(w.id)
			}
			w.stop()
			c.harm(w)
			w.changeSource(`DELETE FROM customers WHERE id = 3`)
			require.NoError(t, w.start())
			ended := w.oneRun(w.id).ended("completed")
			require.Equal(t, true, ended.at("data.full_sync"))
			require.Contains(t, ended.at("data.sync_trigger_reason.ui_detail"), c.says)
			require.EqualValues(t, c.deletes, ended.id("data.source_record_deletes"), string(ended.text))
			require.EqualValues(t, 2, ended.id("data.source_record_updates"))
			after := w.oneRun(w.id)
			require.Equal(t, [7]int64{2, 0, 0, 0, 0, 0, 0}, after.counts(), "it is whole again")
			require.NotEqual(t, true, after.at("data.full_sync"))
		})
	}
}

func (w *inPlace) take(parts ...string) {
	w.t.Helper()
	require.NoError(w.t, os.RemoveAll(w.path(append([]string{"ledger"}, parts...)...)))
}

// TestRestoreCutOff: a process that is killed while it restores leaves files that no
// start takes for whole.
func TestRestoreCutOff(t *testing.T) {
	w := newInPlace(t)
	snapshot := w.control("GET", "/snapshot", nil).want(200).text
	a := must(archive.Read(bytes.NewReader(snapshot), w.s.config.Dir))(t)
	defer a.Close()
	require.NoError(t, w.s.store.Restore(t.Context(), a.Part(archive.PartStore))) // and no further
	w.stop()
	require.ErrorContains(t, w.start(), "a restore was interrupted here")
	fresh := &inPlace{w.syncWorld, w.path("..", "fresh"), w.id}
	require.NoError(t, fresh.start(func(c *Config) { c.Restore = bytes.NewReader(snapshot) }))
	require.Equal(t, [7]int64{3, 0, 0, 0, 0, 0, 0}, fresh.oneRun(w.id).counts())
	fresh.stop()
	require.NoError(t, fresh.start(), "it is bound by now")
	require.Equal(t, [7]int64{3, 0, 0, 0, 0, 0, 0}, fresh.oneRun(w.id).counts())

	// The ledger of the world before does not go with it.
	fresh.stop()
	require.NoError(t, os.RemoveAll(fresh.path("ledger")))
	copyTree(t, w.path("ledger"), fresh.path("ledger"))
	require.ErrorContains(t, fresh.start(), "it belongs to another database")
}

// TestRestoredInPlace: after a restore the directory is whole for the next start.
func TestRestoredInPlace(t *testing.T) {
	w := newInPlace(t)
	snapshot := w.control("GET", "/snapshot", nil).want(200).text
	w.changeSource(`DELETE FROM customers WHERE id = 3`)
	require.EqualValues(t, 1, w.oneRun(w.id).id("data.source_record_deletes"))
	w.control("POST", "/restore", snapshot).want(200)
	w.restart()
	require.Equal(t, [7]int64{2, 0, 1, 0, 1, 1, 0}, w.oneRun(w.id).counts(), "as the snapshot has it")
}

// unmark makes of a copy what any other program would have copied.
func unmark(t testing.TB, file string) {
	t.Helper()
	s := must(store.Open(t.Context(), store.Options{Dir: filepath.Dir(file), MasterKey: bytes.Repeat([]byte{7}, 32)}))(t)
	require.NoError(t, s.Update(t.Context(), (*store.Tx).Settled))
	require.NoError(t, s.Close())
}

// TestRecordsOfADamagedLog: a changed log file is reported as damaged to requests for
// the records of its run, for one record, and for an audit.
func TestRecordsOfADamagedLog(t *testing.T) {
	for name, spoil := range map[string]func(text []byte) []byte{
		"flipped":   func(text []byte) []byte { text[len(text)-3] ^= 1; return text },
		"heading":   func(text []byte) []byte { text[2] ^= 1; return text },
		"first":     func(text []byte) []byte { text[20] ^= 1; return text },
		"something": func([]byte) []byte { return []byte("what somebody has put there instead of the log") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newInPlace(t)
			file := w.path("ledger", "sync-1", "run-2.log")
			text := contentOf(t, file)
			require.NoError(t, os.WriteFile(file, spoil(text), 0o600))
			a := w.do("GET", "/sync_runs/2/records", w.key, nil).want(410)
			require.Contains(t, string(a.text), "the file of its log is damaged")
			w.do("GET", "/sync_runs/1/records", w.key, nil).want(200)
			told := w.control("GET", "/explain?sync_run_id=2&identifier=ada@example.com", nil)
			told.want(200)
			audit := w.control("POST", "/audit", map[string]any{"sync_id": w.id, "readback": map[string]any{"url": w.dest0()}})
			require.NotContains(t, string(audit.text), "its log has the request id")
			require.EqualValues(t, 3, w.oneRun(w.id).id("data.source_record_count"), "the state has it already")
		})
	}
}

// TestLedgerRemovedWhileServed: the run reports it, and the next start finds a ledger
// that belongs to its database.
func TestLedgerRemovedWhileServed(t *testing.T) {
	w := newInPlace(t)
	entries := must(os.ReadDir(w.path("ledger")))(t)
	for _, e := range entries {
		w.take(e.Name())
	}
	ended := w.oneRun(w.id)
	require.Equal(t, true, ended.at("data.full_sync"))
	require.Contains(t, ended.at("data.sync_trigger_reason.ui_detail"), ledger.UnknownDeletes)
	w.restart()
	require.Equal(t, [7]int64{3, 0, 0, 0, 0, 0, 0}, w.oneRun(w.id).counts())
}
