package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// diskHarm makes of the bytes of a file those that a disk gives back; nil: it is gone.
type diskHarm struct {
	name string
	does func(now, earlier []byte) []byte
}

// flipped is one bit at a part of the file, of which there are 16.
func flipped(sixteenth int) diskHarm {
	name := fmt.Sprintf("a bit flipped at %d/16", sixteenth)
	return diskHarm{name, func(now, _ []byte) []byte { return flippedAt(now, min(len(now)*sixteenth/16, len(now)-1)) }}
}

func flippedAt(text []byte, at int) []byte {
	text = bytes.Clone(text)
	text[at] ^= 1 << (at % 8)
	return text
}

func cutAt(name string, at func(size int) int) diskHarm {
	return diskHarm{"cut " + name, func(now, _ []byte) []byte { return now[:at(len(now))] }}
}

// damagedCopy are harms after which a file is neither that of this day nor of another.
func damagedCopy() []diskHarm {
	harms := []diskHarm{
		cutAt("in its header", func(int) int { return 60 }),
		cutAt("after a page", func(int) int { return 4096 }),
		cutAt("at half", func(size int) int { return size / 2 }),
		cutAt("by one byte", func(size int) int { return size - 1 }),
		{"of two days, half and half", func(now, earlier []byte) []byte {
			return append(bytes.Clone(earlier[:min(len(earlier), len(now)/2)]), now[min(len(earlier), len(now)/2):]...)
		}},
		{"something else", func([]byte, []byte) []byte { return []byte("id,name\n1,a table of another program\n") }},
	}
	for _, sixteenth := range []int{0, 2, 5, 8, 11, 14, 16} {
		harms = append(harms, flipped(sixteenth))
	}
	return harms
}

// earlierDatabase is the error of a start whose database is older than the ledger.
const earlierDatabase = "which the database does not know: the database is gone, of another installation or of an earlier day; put back the destkit.db that goes with it"

// refusedWith is the outcome of a start that fails with this text.
func refusedWith(says string) string {
	if says == earlierDatabase {
		return "refused: the ledger has a run, " + says
	}
	return "refused: " + says
}

// onePageOf puts a page of the earlier day into the database: one that differs, and that
// does not say which day it is.
func onePageOf(now, earlier []byte) []byte {
	const page = 4096
	mixed := bytes.Clone(now)
	for at := len(earlier) - page; at > 0; at -= page {
		was, is := earlier[at:at+page], now[at:at+page]
		if !bytes.Equal(was, is) && !bytes.Contains(is, []byte("session")) {
			copy(mixed[at:], was)
			break
		}
	}
	return mixed
}

var diskOperations = []string{"insert", "update", "upsert", "mirror"}

// storeCells harm the database of a service that is stopped.
func storeCells() (cells []diskCellOfService) {
	type told struct {
		diskHarm
		says string
	}
	all := []told{
		{diskHarm{"removed", func([]byte, []byte) []byte { return nil }}, "its database is gone: put destkit.db back"},
		{diskHarm{"emptied", func([]byte, []byte) []byte { return []byte{} }}, "its database is gone: put destkit.db back"},
		{diskHarm{"of an earlier day", func(_, earlier []byte) []byte { return earlier }}, earlierDatabase},
		{diskHarm{"one page of an earlier day", onePageOf}, "the database is damaged"},
	}
	for _, harm := range damagedCopy() {
		all = append(all, told{harm, "the database is damaged"})
	}
	for _, operation := range diskOperations {
		for _, harm := range all {
			if harm.name == "of two days, half and half" { // its settings are those of the earlier day
				harm.says = earlierDatabase
			}
			cells = append(cells, diskCellOfService{"destkit.db", harm.name, "start, " + operation, refusedWith(harm.says), func(t *testing.T) {
				w := newDiskWorld(t, operation)
				w.stop()
				w.harm("destkit.db", harm.diskHarm, func() { w.refusedStart(harm.says) })
				w.starts()
			}})
		}
	}
	for _, harm := range append(damagedCopy()[2:4], flipped(0), flipped(8), diskHarm{"removed", func([]byte, []byte) []byte { return nil }}) {
		cells = append(cells, diskCellOfService{"destkit.db-sum", harm.name, "start, mirror", "recovered: SQLite is asked instead; nothing lost", func(t *testing.T) {
			w := newDiskWorld(t, "mirror")
			w.stop()
			w.put("destkit.db-sum", harm.does(contentOf(t, w.path("destkit.db-sum")), nil))
			w.starts()
		}})
	}
	return append(cells, diskCellOfService{"destkit.db", "a bit flipped at 8/16", "backup", "refused: the database is damaged; the backup before is whole", func(t *testing.T) {
		w := newDiskWorld(t, "mirror")
		backup := filepath.Join(t.TempDir(), "backup.db")
		require.NoError(t, Backup(t.Context(), w.dir, backup))
		w.stop()
		kept := files(t, filepath.Dir(backup))
		w.harm("destkit.db", flipped(8), func() {
			err := Backup(t.Context(), w.dir, backup)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, w.dir)
			require.Equal(t, kept, files(t, filepath.Dir(backup)))
		})
		w.starts()
	}})
}

// harm changes a file of the directory while fn runs, and puts it back.
func (w *diskWorld) harm(name string, harm diskHarm, fn func()) {
	w.t.Helper()
	now := contentOf(w.t, w.path(name))
	earlier := contentOf(w.t, filepath.Join(w.earlier, name))
	w.put(name, harm.does(now, earlier))
	fn()
	w.put(name, now)
}

// put writes a file of the directory; nil removes it.
func (w *diskWorld) put(name string, text []byte) {
	w.t.Helper()
	if text == nil {
		require.NoError(w.t, os.Remove(w.path(name)))
		return
	}
	require.NoError(w.t, os.WriteFile(w.path(name), text, 0o600))
}

// kill leaves the directory as a process leaves it that is killed now.
func (w *diskWorld) kill() {
	w.t.Helper()
	killed := filepath.Join(w.t.(*testing.T).TempDir(), "data")
	copyTree(w.t, w.dir, killed)
	w.stop()
	w.dir = killed
}

// misshape makes the first page of a table one that is none.
func (w *diskWorld) misshape(table string) {
	w.t.Helper()
	conn := must(sqlite.OpenConn("file:"+w.path("destkit.db")+"?immutable=1", sqlite.OpenReadOnly|sqlite.OpenURI))(w.t)
	defer conn.Close()
	var page, size int
	require.NoError(w.t, sqlitex.ExecuteTransient(conn, "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?", &sqlitex.ExecOptions{
		Args:       []any{table},
		ResultFunc: func(stmt *sqlite.Stmt) error { page, size = stmt.ColumnInt(0), stmt.ColumnInt(1); return nil },
	}))
	require.Greater(w.t, page, 1)
	w.writeAt(int64(page-1)*int64(size), []byte{0x70})
}

// writeAt changes the database in its place, under whoever has it open.
func (w *diskWorld) writeAt(at int64, text []byte) {
	w.t.Helper()
	f := must(os.OpenFile(w.path("destkit.db"), os.O_RDWR, 0))(w.t)
	_, err := f.WriteAt(text, at)
	require.NoError(w.t, errors.Join(err, f.Close()))
}

// logCells harm what a killed process leaves: the database, and its log, which holds all
// that was changed since the start.
func logCells() (cells []diskCellOfService) {
	for _, operation := range diskOperations {
		cells = append(cells, diskCellOfService{"destkit.db-wal", "none: killed", "start, " + operation, "recovered: nothing lost", func(t *testing.T) {
			w := newDiskWorld(t, operation)
			w.kill()
			w.starts()
		}})
		const damaged = "its log destkit.db-wal is damaged, and acknowledged changes follow the place"
		for _, harm := range []struct {
			diskHarm
			says string
		}{
			{diskHarm{"removed", func([]byte, []byte) []byte { return nil }}, earlierDatabase},
			{diskHarm{"emptied", func([]byte, []byte) []byte { return []byte{} }}, earlierDatabase},
			{diskHarm{"cut in its header", func(now, _ []byte) []byte { return now[:20] }}, earlierDatabase},
			{diskHarm{"cut after its header", func(now, _ []byte) []byte { return now[:32] }}, earlierDatabase},
			{diskHarm{"a bit flipped in its header", func(now, _ []byte) []byte { return flippedAt(now, 17) }}, damaged},
			{diskHarm{"a bit flipped in its first page", func(now, _ []byte) []byte { return flippedAt(now, 32+24+2000) }}, damaged},
			{diskHarm{"a bit flipped at half", func(now, _ []byte) []byte { return flippedAt(now, len(now)/2) }}, damaged},
		} {
			cells = append(cells, diskCellOfService{"destkit.db-wal", harm.name, "start, " + operation, refusedWith(harm.says), func(t *testing.T) {
				w := newDiskWorld(t, operation)
				w.kill()
				kept := filepath.Join(t.TempDir(), "kept")
				copyTree(t, w.dir, kept)
				w.put("destkit.db-wal", harm.does(contentOf(t, w.path("destkit.db-wal")), nil))
				err := w.start()
				require.ErrorContains(t, err, harm.says)
				require.ErrorContains(t, err, w.dir)
				w.dir = kept // the log put back, with the database that goes with it
				w.starts()
			}})
		}
		cells = append(cells, diskCellOfService{"destkit.db", "a page of no kind, killed", "start, " + operation, "refused: the database is damaged", func(t *testing.T) {
			w := newDiskWorld(t, operation)
			w.kill()
			text := contentOf(t, w.path("destkit.db"))
			w.misshape("users")
			require.ErrorIs(t, w.start(), ErrDamaged)
			w.put("destkit.db", text)
		}})
	}
	return cells
}

// servedCells damage the database under a running service: whoever meets the damage
// gets an error, and the checksum of the stop does not vouch for it.
func servedCells() (cells []diskCellOfService) {
	for _, operation := range []string{"a read of the API", "a write of the API", "a sync run", "snapshot", "backup"} {
		cells = append(cells, diskCellOfService{"destkit.db", "overwritten while it is served", operation, "refused: 500, the service's database is damaged; start it from a backup", func(t *testing.T) {
			w := newDiskWorld(t, "mirror")
			w.restart()
			w.overwrite()
			said := 0
			tell := func(a *answer, good int) {
				if a.code == good {
					return // its data was in memory
				}
				require.Equal(t, http.StatusInternalServerError, a.code, string(a.text))
				require.Contains(t, string(a.text), "the service's database is damaged; start it from a backup")
				said++
			}
			for i := range 50 {
				if said > 0 {
					break
				}
				switch operation {
				case "a read of the API":
					w.do("POST", "/workspaces", w.pat, map[string]any{"name": fmt.Sprint("Later ", i)}) // readers look again
					for _, path := range []string{"/users", "/invitations"} {
						tell(w.do("GET", path, w.pat, nil), 200)
					}
				case "a write of the API":
					tell(w.do("POST", "/workspaces", w.pat, map[string]any{"name": fmt.Sprint("Later ", i)}), 201)
				case "a sync run":
					tell(w.do("POST", fmt.Sprintf("/syncs/%d/trigger", w.id), w.key, nil), 200)
				case "snapshot":
					tell(w.control("GET", "/snapshot", nil), 0)
				case "backup":
					to := filepath.Join(t.TempDir(), "backup.db")
					require.ErrorIs(t, Backup(t.Context(), w.dir, to), ErrDamaged)
					require.Empty(t, files(t, filepath.Dir(to)))
					said++
				}
			}
			require.Positive(t, said, "the damage was not reported")
			_ = w.s.Close()
			require.ErrorIs(t, w.start(), ErrDamaged)
		}})
	}
	for _, operation := range []string{"snapshot", "backup"} {
		cells = append(cells, diskCellOfService{"destkit.db", "a page of no kind while it is served", operation, "refused: the database is damaged; no copy is made", func(t *testing.T) {
			w := newDiskWorld(t, "mirror")
			w.restart()
			w.misshape("webhooks")
			const says = "the service's database is damaged; start it from a backup"
			switch operation {
			case "snapshot":
				require.Contains(t, string(w.control("GET", "/snapshot", nil).want(500).text), says)
			case "backup":
				to := filepath.Join(t.TempDir(), "backup.db")
				require.ErrorIs(t, Backup(t.Context(), w.dir, to), ErrDamaged)
				require.Empty(t, files(t, filepath.Dir(to)))
			}
		}})
	}
	return cells
}

// overwrite spoils all pages of the database but the first.
func (w *diskWorld) overwrite() {
	w.t.Helper()
	info := must(os.Stat(w.path("destkit.db")))(w.t)
	w.writeAt(4096, bytes.Repeat([]byte{0xff}, int(info.Size())-4096))
}
