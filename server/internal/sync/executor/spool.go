package executor

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// spoolMemory is how much of a spool stays in memory before it goes to disk.
const spoolMemory = 1 << 20

// spool keeps records for later, in the order in which they came: those that
// were refused, and the deletes of a mirror, which follow its upserts. Memory
// does not grow with their number. It is safe for parallel use while it is
// filled.
type spool struct {
	scratch string

	mu    sync.Mutex
	tail  []byte
	file  *os.File
	size  int64 // of the file
	count int64
}

// add keeps a copy of an item.
func (s *spool) add(it item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = appendCell(s.tail, it.key)
	s.tail = append(append(s.tail, it.print[:]...), it.stamp[:]...)
	s.tail = appendCell(s.tail, it.record)
	s.tail = appendCell(s.tail, []byte(it.message))
	s.count++
	if len(s.tail) < spoolMemory {
		return nil
	}
	return s.flush()
}

// flush moves the tail to the file. The file has no name any more: it is gone
// with the process.
func (s *spool) flush() error {
	if s.file == nil {
		f, err := os.CreateTemp(s.scratch, "destkit-spool-*")
		if err != nil {
			return fmt.Errorf("keep records on disk: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return fmt.Errorf("keep records on disk: %w", err)
		}
	}
	n, err := s.file.WriteAt(s.tail, s.size)
	if err != nil {
		return fmt.Errorf("keep records on disk: %w", err)
	}
	s.size += int64(n)
	s.tail = s.tail[:0]
	return nil
}

// each hands every item to fn, which must not keep it. Nothing may be added
// meanwhile.
func (s *spool) each(fn func(it item) error) error {
	if s.file != nil {
		from := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, s.size), 256<<10)
		if err := eachOf(from, fn); err != nil {
			return err
		}
	}
	return eachOf(bufio.NewReader(bytes.NewReader(s.tail)), fn)
}

func eachOf(from *bufio.Reader, fn func(it item) error) error {
	var it item
	var message []byte
	for {
		var err error
		if it.key, err = readCell(from, it.key); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			_, err = io.ReadFull(from, it.print[:])
		}
		if err == nil {
			_, err = io.ReadFull(from, it.stamp[:])
		}
		if err == nil {
			it.record, err = readCell(from, it.record)
		}
		if err == nil {
			message, err = readCell(from, message)
		}
		if err != nil {
			return fmt.Errorf("read records kept on disk: %w", err)
		}
		it.message = string(message)
		if err := fn(it); err != nil {
			return err
		}
	}
}

// close frees the disk.
func (s *spool) close() error {
	s.tail, s.count, s.size = nil, 0, 0
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	if err != nil {
		return fmt.Errorf("drop records kept on disk: %w", err)
	}
	return nil
}

func appendCell(dst, cell []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(cell))), cell...)
}

// readCell reads into the memory of dst; io.EOF only where no cell begins.
func readCell(from *bufio.Reader, dst []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(from)
	if err != nil {
		return dst, err
	}
	if uint64(cap(dst)) < n {
		dst = make([]byte, n)
	}
	dst = dst[:n]
	if _, err := io.ReadFull(from, dst); err != nil {
		return dst, io.ErrUnexpectedEOF
	}
	return dst, nil
}
