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

// fileWatch collects the names of files that change below some folders.
type fileWatch struct {
	watcher *fsnotify.Watcher
	own     []string // absolute names of reports
	changed chan struct{}

	mu    sync.Mutex
	names map[string]bool
	ended sync.WaitGroup
}

// watchFolders watches folders and all below them; own are files that destkit writes.
func watchFolders(folders, own []string) (*fileWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w := &fileWatch{watcher: watcher, changed: make(chan struct{}, 1), names: map[string]bool{}}
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

func (w *fileWatch) close() {
	_ = w.watcher.Close()
	w.ended.Wait()
}

// add watches a folder and those below it; one that vanishes meanwhile is no error.
func (w *fileWatch) add(root string) error {
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
func (w *fileWatch) collect() {
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

func (w *fileWatch) note(event fsnotify.Event) {
	if event.Op == fsnotify.Chmod || w.ignored(event.Name) {
		return
	}
	if event.Has(fsnotify.Create) {
		_ = w.add(event.Name) // it may be a folder; a file adds nothing
	}
	w.put(event.Name)
}

func (w *fileWatch) put(name string) {
	w.mu.Lock()
	w.names[filepath.ToSlash(filepath.Clean(name))] = true
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// settle waits until a burst has ended, and returns what has changed until then.
func (w *fileWatch) settle(ctx context.Context) []string {
	longest := time.NewTimer(longestBurst)
	defer longest.Stop()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for waiting := true; waiting; {
		select {
		case <-w.changed:
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

// An endpoint may write a file a moment after each call. Such a file would start runs
// without end, so one that changed within echoWindow of the end of echoRuns runs in a
// row, all with the same results, starts none; a later change of it counts as ever.
const (
	echoWindow = 3 * time.Second
	echoRuns   = 3
)

// duringRuns holds the files that changed while runs went on that followed each other for that
// reason. A change may be the work of the run itself: one more run takes it into
// account, and the same file starts no other. What its owner saves meanwhile is another file.
type duringRuns struct {
	names map[string]bool
	runs  int
}

// fresh returns the files whose change starts one more run; after echoRuns such runs none
// does, for an endpoint that writes a new file each time.
func (d *duringRuns) fresh(changed []string) (starting []string) {
	if d.runs++; d.runs > echoRuns {
		return nil
	}
	if d.names == nil {
		d.names = map[string]bool{}
	}
	for _, name := range changed {
		if !d.names[name] {
			starting = append(starting, name)
		}
		d.names[name] = true
	}
	return starting
}

// echoes counts, by file, the runs in a row after which it changed at once.
type echoes map[string]int

// filter returns the files whose change starts a run, and those that have just been
// found to be echoes. since is the time from the end of the last run.
func (e *echoes) filter(changed []string, since time.Duration) (starting, found []string) {
	if *e == nil {
		*e = echoes{}
	}
	if since > echoWindow {
		for _, name := range changed {
			delete(*e, name)
		}
		return changed, nil
	}
	for _, name := range changed {
		switch (*e)[name]++; {
		case (*e)[name] <= echoRuns:
			starting = append(starting, name)
		case (*e)[name] == echoRuns+1:
			found = append(found, name)
		}
	}
	return starting, found
}

// unwatchedSuffixes are those of files that programs write while they run.
var unwatchedSuffixes = []string{
	"~", ".bak", ".db", ".db-journal", ".db-shm", ".db-wal", ".log", ".ndjson", ".pid", ".pyc", ".sqlite", ".sqlite3",
	".sqlite-journal", ".sqlite-shm", ".sqlite-wal", ".swp", ".tmp",
}

// unwatchedFolder reports whether a folder holds nothing that its owner edits.
func unwatchedFolder(name string) bool {
	return strings.HasPrefix(name, ".") && name != "." && name != ".." ||
		slices.Contains([]string{"node_modules", "__pycache__", "destkit-demo"}, name)
}

// ignored reports whether a change of the file starts no run.
func (w *fileWatch) ignored(name string) bool {
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
