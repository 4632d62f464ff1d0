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

// smallDisk is a folder of its own with so many bytes, where the test may mount one.
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

// TestSmallDisk: a real disk without room is told by readiness and by every change,
// nothing that was acknowledged is lost, and with room everything goes on.
func TestSmallDisk(t *testing.T) {
	disk := smallDisk(t, "size=8m")
	w := newSyncWorld(t, func(c *Config) { c.Dir, c.MasterKey = filepath.Join(disk, "data"), bytes.Repeat([]byte{7}, 32) })
	ready := func() (int, string) {
		a := httptest.NewRecorder()
		w.s.ServeHTTP(a, httptest.NewRequest(http.MethodGet, "/readyz", nil))
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
	left, err := filepath.Glob(filepath.Join(disk, "data", "ready-*"))
	require.NoError(t, err)
	require.Empty(t, left)

	free()
	code, _ = ready()
	require.Equal(t, http.StatusOK, code)
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace')`)
	require.Equal(t, [7]int64{2, 1, 0, 0, 1, 1, 0}, w.oneRun(id).counts())
}

// TestReadOnlyDisk: a disk that became read-only, as after an error of its own, is told.
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
