package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A change is complete when nothing has followed for quietTime: editors and compilers
// write several files, some of them twice. A file that is written without end does
// not hold a run up for longer than longestBurst.
const (
	quietTime    = 250 * time.Millisecond
	longestBurst = 3 * time.Second
)

// Files collects the names of files that change below some folders.
type Files struct {
	watcher *fsnotify.Watcher
	own     []string      // absolute names of reports
	Changed chan struct{} // a name was added since the last Settle

	mu    sync.Mutex
	names map[string]bool
	ended sync.WaitGroup
}

// Folders watches folders and all below them; own are files that destkit writes.
func Folders(folders, own []string) (*Files, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w := &Files{watcher: watcher, Changed: make(chan struct{}, 1), names: map[string]bool{}}
	for _, name := range own {
		if absolute, err := filepath.Abs(name); err == nil {
			w.own = append(w.own, absolute)
		}
	}
	for _, folder := range folders {
		if err := w.add(folder); err != nil {
			_ = watcher.Close()
			return nil, fmt.Errorf("watch %s: %w; name fewer folders with --watch-path", folder, err)
		}
	}
	w.ended.Go(w.collect)
	return w, nil
}

// Close ends the watch.
func (w *Files) Close() {
	_ = w.watcher.Close()
	w.ended.Wait()
}

// add watches a folder and those below it; one that vanishes meanwhile is no error.
func (w *Files) add(root string) error {
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case name != root && unwatchedFolder(entry.Name()):
			return filepath.SkipDir
		}
		return w.watcher.Add(name)
	})
}

// collect notes events until the watcher is closed.
func (w *Files) collect() {
	for {
		select {
		case event, open := <-w.watcher.Events:
			if !open {
				return
			}
			w.note(event)
		case err, open := <-w.watcher.Errors:
			if !open {
				return
			}
			// Events were lost: something has changed, whatever it was.
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				w.put("many files")
			}
		}
	}
}

func (w *Files) note(event fsnotify.Event) {
	if event.Op == fsnotify.Chmod || w.ignored(event.Name) {
		return
	}
	if event.Has(fsnotify.Create) {
		_ = w.add(event.Name) // it may be a folder; a file adds nothing
	}
	w.put(event.Name)
}

func (w *Files) put(name string) {
	w.mu.Lock()
	w.names[filepath.ToSlash(filepath.Clean(name))] = true
	w.mu.Unlock()
	select {
	case w.Changed <- struct{}{}:
	default:
	}
}

// Settle waits until a burst has ended, and returns the changes until then.
func (w *Files) Settle(ctx context.Context) []string {
	longest := time.NewTimer(longestBurst)
	defer longest.Stop()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for waiting := true; waiting; {
		select {
		case <-w.Changed:
			quiet.Reset(quietTime)
		case <-quiet.C:
			waiting = false
		case <-longest.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	names := slices.Sorted(maps.Keys(w.names))
	clear(w.names)
	return names
}

// unwatchedSuffixes are those of files that programs write while they run.
var unwatchedSuffixes = []string{
	"~", ".bak", ".db", ".db-journal", ".db-shm", ".db-wal", ".log", ".ndjson", ".pid", ".pyc", ".sqlite", ".sqlite3",
	".sqlite-journal", ".sqlite-shm", ".sqlite-wal", ".swp", ".tmp",
}

// unwatchedFolder reports whether a folder holds nothing that its owner edits.
func unwatchedFolder(name string) bool {
	return strings.HasPrefix(name, ".") && name != "." && name != ".." ||
		slices.Contains([]string{"node_modules", "__pycache__", "destkit-demo", "destkit-bodies"}, name)
}

// ignored reports whether a change of the file starts no run.
func (w *Files) ignored(name string) bool {
	base := filepath.Base(name)
	if unwatchedFolder(base) || strings.HasPrefix(base, "destkit-journal-") {
		return true
	}
	if slices.ContainsFunc(unwatchedSuffixes, func(suffix string) bool { return strings.HasSuffix(base, suffix) }) {
		return true
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return false
	}
	return slices.Contains(w.own, absolute)
}
