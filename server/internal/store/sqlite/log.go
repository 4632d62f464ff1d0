package sqlite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The log of SQLite (destkit.db-wal) is a header and frames, each a page with a checksum
// over all that is before it. SQLite takes a log as far as it is whole and ignores the
// rest silently, since a killed process leaves a torn end. But each change is on disk
// before the next one starts: a bad frame with whole changes after it was damaged later.

const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // or one more: then the words of checksums are big-endian
)

// logSum is the checksum of a log so far.
type logSum struct {
	order binary.ByteOrder
	a, b  uint32
}

func (s *logSum) add(text []byte) {
	for ; len(text) >= 8; text = text[8:] {
		s.a += s.order.Uint32(text) + s.b
		s.b += s.order.Uint32(text[4:]) + s.a
	}
}

// is compares with the checksum in the last bytes of a heading.
func (s *logSum) is(text []byte) bool {
	return s.a == binary.BigEndian.Uint32(text) && s.b == binary.BigEndian.Uint32(text[4:])
}

// wholeLog refuses a log that was damaged after it was written; a torn end is none.
func wholeLog(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lost, err := lostChanges(bufio.NewReaderSize(f, 64<<10))
	if err == nil && lost {
		err = fmt.Errorf("%w: its log %s is damaged, and acknowledged changes follow the place (remove that file to go on without all of them)", ErrDamaged, databaseFile+"-wal")
	}
	return err
}

// lostChanges reads a log and reports whether there are whole changes after a place at
// which SQLite ends to read it. Frames that follow each other there were written one after
// the other; the remains of a refused change that a later one did not overwrite are one
// change that nothing follows, and the next such rest starts a new sequence.
func lostChanges(r io.Reader) (bool, error) {
	head := make([]byte, logHeader)
	if _, err := io.ReadFull(r, head); err != nil {
		return false, unlessEnded(err)
	}
	magic := binary.BigEndian.Uint32(head)
	sum := logSum{order: binary.LittleEndian}
	if magic&1 == 1 {
		sum.order = binary.BigEndian
	}
	sum.add(head[:24])
	size := binary.BigEndian.Uint32(head[8:])
	if magic&^1 != logMagic || !sum.is(head[24:]) || size < 512 || size > 65536 {
		// Zeros were never on disk; anything else is one sector, which does not tear.
		one, err := io.ReadFull(r, make([]byte, frameHeader+512))
		return one == frameHeader+512 && magic != 0, unlessEnded(err)
	}
	frame := make([]byte, frameHeader+int(size))
	bad, changes := false, 0
	stored := sum // checksum of the frame before
	for {
		if _, err := io.ReadFull(r, frame); err != nil {
			return false, unlessEnded(err)
		}
		ours := string(frame[8:16]) == string(head[16:24]) // frames of an earlier round are others
		follows := sum.next(frame)
		if !follows && bad {
			follows = stored.next(frame)
			sum = stored
		}
		if bad && !follows {
			changes = 0
		}
		bad = bad || !ours || !follows
		// The first is that of the bad frame itself, which the process may not have ended.
		if bad && ours && binary.BigEndian.Uint32(frame[4:]) != 0 {
			if changes++; changes > 1 {
				return true, nil
			}
		}
		stored.a, stored.b = binary.BigEndian.Uint32(frame[16:]), binary.BigEndian.Uint32(frame[20:])
	}
}

// next adds a frame, and reports whether its checksum matches.
func (s *logSum) next(frame []byte) bool {
	s.add(frame[:8])
	s.add(frame[frameHeader:])
	return s.is(frame[16:])
}

// unlessEnded takes the end of a log for no error.
func unlessEnded(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
