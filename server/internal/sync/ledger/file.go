package ledger

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
)

// file is an open file; content is one in memory.
type file struct {
	disk  *os.File
	mem   *content
	name  string // for faults
	fault fault
}

type content struct {
	mu   sync.RWMutex
	data []byte
}

func (f *file) ReadAt(p []byte, at int64) (int, error) {
	if err := f.fault.of(FaultRead, f.name); err != nil {
		return 0, err
	}
	if f.disk != nil {
		n, err := f.disk.ReadAt(p, at)
		return n, plain(err)
	}
	f.mem.mu.RLock()
	defer f.mem.mu.RUnlock()
	if at >= int64(len(f.mem.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.mem.data[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes what fits, as a disk does that becomes full.
func (f *file) WriteAt(p []byte, at int64) (int, error) {
	fits, bad := f.fault.some(f.name, len(p))
	n, err := fits, error(nil)
	if f.disk != nil {
		n, err = f.disk.WriteAt(p[:fits], at)
	} else {
		f.mem.mu.Lock()
		if end := at + int64(fits); end > int64(len(f.mem.data)) {
			f.mem.data = slices.Grow(f.mem.data, int(end)-len(f.mem.data))[:end]
		}
		copy(f.mem.data[at:], p[:fits])
		f.mem.mu.Unlock()
	}
	if err == nil {
		err = bad
	}
	if err == nil && fits < len(p) {
		err = syscall.ENOSPC
	}
	return n, plain(err)
}

func (f *file) truncate(size int64) error {
	if err := f.fault.of(FaultTruncate, f.name); err != nil {
		return err
	}
	if f.disk != nil {
		return plain(f.disk.Truncate(size))
	}
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if size > int64(len(f.mem.data)) {
		return fmt.Errorf("truncate to %d: the file has %d bytes", size, len(f.mem.data))
	}
	f.mem.data = f.mem.data[:size]
	return nil
}

func (f *file) size() (int64, error) {
	if f.disk != nil {
		info, err := f.disk.Stat()
		if err != nil {
			return 0, plain(err)
		}
		return info.Size(), nil
	}
	f.mem.mu.RLock()
	defer f.mem.mu.RUnlock()
	return int64(len(f.mem.data)), nil
}

func (f *file) sync() error {
	if err := f.fault.of(FaultSync, f.name); err != nil {
		return err
	}
	if f.disk != nil {
		return plain(f.disk.Sync())
	}
	return nil
}

func (f *file) Close() error {
	if f.disk != nil {
		return plain(f.disk.Close())
	}
	return nil
}
