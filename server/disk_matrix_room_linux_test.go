package server

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// roomCells take the room of the disk away, but for so much, or the right to write.
func roomCells() (cells []diskCellOfService) {
	room := []struct {
		harm string
		left int
	}{{"no room", 0}, {"short write after 16 KiB", 16 << 10}, {"short write after 96 KiB", 96 << 10}}
	for _, r := range room {
		add := func(file, operation, outcome string, run func(t *testing.T, w *diskWorld, disk string)) {
			cells = append(cells, diskCellOfService{file, r.harm, operation, outcome, func(t *testing.T) {
				disk := smallDisk(t, "size=16m")
				run(t, newDiskWorldIn(t, "mirror", disk), disk)
			}})
		}
		full := func(t *testing.T, disk string) (free func()) {
			free = fill(t, disk)
			info := must(os.Stat(filepath.Join(disk, "ballast")))(t)
			require.NoError(t, os.Truncate(filepath.Join(disk, "ballast"), info.Size()-int64(r.left)))
			return free
		}
		add("snapshot", "snapshot", "refused: 507, the service's disk is full; nothing changed", func(t *testing.T, w *diskWorld, disk string) {
			free := full(t, disk)
			w.refusedFor(w.control("GET", "/snapshot", nil))
			free()
			w.whole()
		})
		for _, kind := range []string{"backup", "snapshot"} {
			add(kind, "restore", "refused: 507, the service's disk is full; nothing changed", func(t *testing.T, w *diskWorld, disk string) {
				c, _ := w.takeCopies(kind)
				free := full(t, disk)
				w.refusedFor(w.control("POST", "/restore", c.now))
				free()
				w.whole()
			})
		}
		add("backup", "backup", "refused: the disk is full; the backup before is whole", func(t *testing.T, w *diskWorld, _ string) {
			other := smallDisk(t, "size=4m")
			to := filepath.Join(other, "backup.db")
			require.NoError(t, Backup(t.Context(), w.dir, to))
			was := contentOf(t, to)
			free := full(t, other)
			err := Backup(t.Context(), w.dir, to)
			require.Error(t, err)
			require.ErrorContains(t, err, to)
			require.Regexp(t, "no space left|disk is full", err.Error())
			free()
			require.Equal(t, map[string]string{to: string(was)}, files(t, other))
			w.whole()
		})
		add("destkit.db", "a write of the API", "refused: 507, the service's disk is full; nothing acknowledged lost", func(t *testing.T, w *diskWorld, disk string) {
			free := full(t, disk)
			for made := 0; ; made++ { // the log of the database may still have room
				require.Less(t, made, 2000)
				a := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "One more " + string(rune('a'+made%26)) + http.StatusText(200+made%8) + filepath.Join("x", string(rune('0'+made/26)))})
				if a.code != http.StatusCreated {
					require.Equal(t, http.StatusInsufficientStorage, a.code, string(a.text))
					break
				}
				w.look = worldOf(w.world)
			}
			free()
			w.whole()
		})
		for _, kind := range []string{"backup", "snapshot"} {
			add(kind, "start from it", "refused: the disk is full; the directory holds nothing", func(t *testing.T, w *diskWorld, _ string) {
				c, _ := w.takeCopies(kind)
				other := smallDisk(t, "size=1m")
				free := full(t, other)
				was, server := w.dir, w.s
				w.dir = filepath.Join(other, "new")
				err := w.start(func(config *Config) { config.Restore = bytes.NewReader(c.now) })
				require.Error(t, err)
				require.Regexp(t, "no space left|disk is full|disk I/O", err.Error())
				left, globErr := filepath.Glob(filepath.Join(w.dir, "destkit.db*"))
				require.NoError(t, globErr)
				require.Empty(t, left)
				free()
				w.dir, w.s = was, server
				w.whole()
			})
		}
	}
	return append(cells, readOnlyCells()...)
}

// refusedFor asserts that there was no room, and that nothing half made is left.
func (w *diskWorld) refusedFor(a *answer) {
	w.t.Helper()
	require.Equal(w.t, http.StatusInsufficientStorage, a.code, string(a.text))
	require.Contains(w.t, string(a.text), "the service's disk is full")
	nothing(w.t, w.dir, "*.tmp", "*.unfinished*")
}

// readOnly makes a disk one that cannot be written.
func readOnly(t *testing.T, disk string) (again func()) {
	t.Helper()
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("make a disk read-only: %v", err)
	}
	return func() { require.NoError(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT, "")) }
}

func readOnlyCells() []diskCellOfService {
	return []diskCellOfService{
		{"destkit.db", "read-only", "start", "refused: read-only file system", func(t *testing.T) {
			disk := smallDisk(t, "size=16m")
			w := newDiskWorldIn(t, "mirror", disk)
			w.stop()
			again := readOnly(t, disk)
			w.refusedStart("read-only")
			again()
			w.starts()
		}},
		{"backup", "read-only", "backup", "refused: read-only file system; the backup before is whole", func(t *testing.T) {
			w := newDiskWorld(t, "mirror")
			other := smallDisk(t, "size=4m")
			to := filepath.Join(other, "backup.db")
			require.NoError(t, Backup(t.Context(), w.dir, to))
			was := files(t, other)
			again := readOnly(t, other)
			err := Backup(t.Context(), w.dir, to)
			require.ErrorContains(t, err, "read-only file system")
			require.ErrorContains(t, err, to)
			require.Equal(t, was, files(t, other))
			again()
			require.NoError(t, Backup(t.Context(), w.dir, to))
			w.whole()
		}},
	}
}

// smallDisk mounts a separate folder of that many bytes, if the test may mount.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// fill takes all room of a disk; free gives it back.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	file := filepath.Join(disk, "ballast")
	f, err := os.Create(file)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(file)) }
}

// TestSmallDisk: readiness and every change report a full disk, no acknowledged
// write is lost, and work goes on once there is room.
func TestSmallDisk(t *testing.T) {
	disk := smallDisk(t, "size=8m")
	w := newSyncWorld(t, func(c *Config) { c.Dir, c.MasterKey = filepath.Join(disk, "data"), bytes.Repeat([]byte{7}, 32) })
	ready := func() (int, string) {
		a := serve(w.s, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return a.Code, a.Body.String()
	}
	id := w.kept(map[string]any{"operation": "mirror"}).id("data.id")
	require.EqualValues(t, 1, w.oneRun(id).id("data.records_updated"))
	code, _ := ready()
	require.Equal(t, http.StatusOK, code)

	free := fill(t, disk)
	code, text := ready()
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.JSONEq(t, `{"status":"unready","reason":"the disk of the data directory is full: make room; what was acknowledged is kept"}`, text)
	a := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "One more"})
	for range 100 { // the log of the database may still have room
		if a.code == http.StatusInsufficientStorage {
			break
		}
		a = w.do("POST", "/workspaces", w.pat, map[string]any{"name": "One more " + string(bytes.Repeat([]byte("x"), 200))})
	}
	require.Equal(t, http.StatusInsufficientStorage, a.code, string(a.text))
	require.Contains(t, string(a.text), "disk is full")
	nothing(t, filepath.Join(disk, "data"), "ready-*")

	free()
	code, _ = ready()
	require.Equal(t, http.StatusOK, code)
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace')`)
	require.Equal(t, [7]int64{2, 1, 0, 0, 1, 1, 0}, w.oneRun(id).counts())
}

// TestReadOnlyDisk: a disk that became read-only, as after a disk error, is reported.
func TestReadOnlyDisk(t *testing.T) {
	disk := smallDisk(t, "size=8m")
	w := newSyncWorld(t, func(c *Config) { c.Dir, c.MasterKey = filepath.Join(disk, "data"), bytes.Repeat([]byte{7}, 32) })
	require.NoError(t, w.s.Ready(t.Context()))
	// Files that are open for writing keep a mount from becoming read-only, so it is done to a view of it.
	if err := errors.Join(syscall.Mount(disk, disk, "", syscall.MS_BIND, ""), syscall.Mount("", disk, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")); err != nil {
		t.Skipf("mount a view: %v", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) }()
	require.EqualError(t, w.s.Ready(t.Context()), "the data directory cannot be written: read-only file system")
}
