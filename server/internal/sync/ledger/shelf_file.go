package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// shelfFile is an open file on a shelf. What is written waits for sync, and goes
// out as one change; what is read comes in windows, and where a reader reads on
// and on, the next window is fetched meanwhile.
type shelfFile struct {
	in   shelved // the folder, with the fence of the moment in which it was opened
	id   int64
	name string // it is to be made under this name; "": it is there

	mu     sync.Mutex
	kept   int64  // bytes on the shelf
	wait   []byte // behind them
	failed error  // a change failed: it is unknown what the shelf has

	window []byte
	spare  []byte // a buffer that is free
	at     int64  // of the window
	width  int    // of the next one
	ahead  *fetched
}

// fetched is a window on its way.
type fetched struct {
	at   int64
	data []byte
	err  error
	done chan struct{}
}

// Sizes in bytes. A change of one file is as large as one write, but small writes
// are gathered.
const (
	shelfWrite  = 1 << 20
	firstWindow = 4 << 10 // the end of a state with its meta
	mostWindow  = 1 << 20
	wholeFile   = 64 << 10 // a file so small is read at once
	growth      = 8        // of windows, as long as they follow each other
)

// writeAt takes p; the file ends behind it.
func (f *shelfFile) writeAt(p []byte, at int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return f.failed
	}
	if end := f.kept + int64(len(f.wait)); at > end {
		return fmt.Errorf("write at %d: the file has %d bytes", at, end)
	}
	if at < f.kept {
		if err := f.cut(at); err != nil {
			return err
		}
	}
	f.wait = append(f.wait[:at-f.kept], p...)
	if len(f.wait) < shelfWrite {
		return nil
	}
	return f.flush()
}

// flush makes durable what waits.
func (f *shelfFile) flush() error {
	var changes []Change
	if f.name != "" {
		changes = append(changes, Change{Kind: MakeFile, File: f.id, Name: f.name})
	}
	if len(f.wait) > 0 {
		changes = append(changes, Change{Kind: WriteFile, File: f.id, At: f.kept, Data: f.wait})
	}
	if len(changes) == 0 {
		return nil
	}
	if err := f.change(changes...); err != nil {
		return err
	}
	f.kept += int64(len(f.wait))
	f.name, f.wait = "", f.wait[:0]
	if cap(f.wait) > 4*shelfWrite {
		f.wait = nil
	}
	return nil
}

// change ends the file when it fails: whoever opens it anew finds what is there.
func (f *shelfFile) change(changes ...Change) error {
	f.window, f.ahead = nil, nil
	f.failed = f.in.change(changes...)
	return f.failed
}

// cut leaves the first bytes of what is on the shelf, and nothing that waits.
func (f *shelfFile) cut(size int64) error {
	if err := f.change(Change{Kind: CutFile, File: f.id, At: size}); err != nil {
		return err
	}
	f.kept, f.wait = size, f.wait[:0]
	return nil
}

func (f *shelfFile) truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := f.kept + int64(len(f.wait))
	switch {
	case f.failed != nil:
		return f.failed
	case size > end:
		return fmt.Errorf("truncate to %d: the file has %d bytes", size, end)
	case size >= f.kept:
		f.wait = f.wait[:size-f.kept]
		return nil
	}
	return f.cut(size)
}

func (f *shelfFile) size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept + int64(len(f.wait))
}

func (f *shelfFile) sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return f.failed
	}
	return f.flush()
}

// readAt sees what waits, too: it is on the shelf then.
func (f *shelfFile) readAt(p []byte, at int64) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return 0, f.failed
	}
	if len(f.wait) > 0 {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	for n < len(p) {
		from := at + int64(n)
		if from >= f.kept {
			return n, io.EOF
		}
		if from < f.at || from >= f.at+int64(len(f.window)) {
			if err := f.load(from); err != nil {
				return n, err
			}
		}
		n += copy(p[n:], f.window[from-f.at:])
	}
	return n, nil
}

// load puts a window where a reader is.
func (f *shelfFile) load(from int64) error {
	following := len(f.window) > 0 && from == f.at+int64(len(f.window))
	ahead := f.ahead
	f.ahead = nil
	switch {
	case following && ahead != nil:
		<-ahead.done
		f.spare = f.window
	case following:
		f.width = min(f.width*growth, mostWindow)
		ahead = f.fetch(from, f.window)
	case f.kept <= wholeFile:
		f.width = wholeFile
		ahead = f.fetch(0, f.window)
	default: // a few bytes at the end are not alone for long
		f.width = firstWindow
		ahead = f.fetch(min(from, f.kept-firstWindow), f.window)
	}
	if ahead.err != nil {
		f.window = nil
		return ahead.err
	}
	f.window, f.at = ahead.data, ahead.at
	if next := f.at + int64(len(f.window)); following && f.width == mostWindow && next < f.kept {
		f.ahead = &fetched{at: next, done: make(chan struct{})}
		go f.ahead.run(f.in.on, f.id, sized(f.spare, min(f.kept-next, mostWindow)))
		f.spare = nil
	}
	return nil
}

// fetch reads a window into a buffer now.
func (f *shelfFile) fetch(at int64, buffer []byte) *fetched {
	w := &fetched{at: at, done: make(chan struct{})}
	w.run(f.in.on, f.id, sized(buffer, min(f.kept-at, int64(f.width))))
	return w
}

func sized(buffer []byte, size int64) []byte {
	if int64(cap(buffer)) < size {
		return make([]byte, size)
	}
	return buffer[:size]
}

func (w *fetched) run(on Shelf, file int64, buffer []byte) {
	defer close(w.done)
	n, err := on.Read(file, buffer, w.at)
	w.data = buffer[:n]
	switch {
	case n == len(buffer):
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, io.EOF): // removed or cut since
		w.err = ErrChanged
	default:
		w.err = err
	}
}

// close lets go of what was read; what waits and was not synced is lost.
func (f *shelfFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = fs.ErrClosed
	f.wait, f.window, f.spare, f.ahead = nil, nil, nil, nil
}
