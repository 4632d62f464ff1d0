package ledger

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// A sorted file holds items in ascending order of their keys, in blocks. A
// block is its size (4 bytes, little endian like all numbers), a checksum over
// its number in the file and its items, and the items. The state has a frame
// with its Meta as JSON behind them, and a tail by which it is found:
//
//	"dkstate1" block… meta tail: offset of meta (8), blocks (4), checksum (4), "dkstate1"
//
// So a file that was cut, extended, or had a block changed, lost or moved, is
// noticed.
const (
	stateMagic = "dkstate1"
	blockHead  = 8
	tailSize   = 16 + 8
	blockSize  = 64 << 10 // a block ends with the item that reaches it
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the place of a block as well as its bytes.
func checksum(place uint32, data []byte) uint32 {
	var p [4]byte
	binary.LittleEndian.PutUint32(p[:], place)
	return crc32.Update(crc32.Checksum(p[:], castagnoli), castagnoli, data)
}

// sortedWriter writes a sorted file; its caller gives the items in order.
type sortedWriter struct {
	f      *file
	limit  int
	block  []byte
	at     int64
	blocks uint32
	rows   int64
	opened func(first []byte, at int64) // called for each block; may be nil
}

func (w *sortedWriter) add(it *item) error {
	if len(w.block) == 0 {
		w.block = append(w.block, make([]byte, blockHead)...)
		if w.opened != nil {
			w.opened(it.key, w.at)
		}
	}
	w.block = appendItem(w.block, it)
	w.rows++
	if len(w.block) < w.limit {
		return nil
	}
	return w.flush()
}

// flush writes the block.
func (w *sortedWriter) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	seal(w.block, w.blocks)
	if _, err := w.f.WriteAt(w.block, w.at); err != nil {
		return err
	}
	w.at += int64(len(w.block))
	w.blocks++
	w.block = w.block[:0]
	return nil
}

// seal fills in the head of a block.
func seal(block []byte, place uint32) {
	binary.LittleEndian.PutUint32(block, uint32(len(block)-blockHead))
	binary.LittleEndian.PutUint32(block[4:], checksum(place, block[blockHead:]))
}

// sealed makes a block.
func sealed(data []byte, place uint32) []byte {
	block := append(make([]byte, blockHead, blockHead+len(data)+tailSize), data...)
	seal(block, place)
	return block
}

// start begins a state file.
func (w *sortedWriter) start() error {
	n, err := w.f.WriteAt([]byte(stateMagic), 0)
	w.at = int64(n)
	return err
}

// finish ends a state file; it is durable then.
func (w *sortedWriter) finish(meta storedMeta) error {
	if err := w.flush(); err != nil {
		return err
	}
	meta.Rows = w.rows
	text, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("encode meta: %w", err)
	}
	end := sealed(text, w.blocks)
	end = binary.LittleEndian.AppendUint64(end, uint64(w.at))
	end = binary.LittleEndian.AppendUint32(end, w.blocks)
	end = binary.LittleEndian.AppendUint32(end, checksum(w.blocks, end[len(end)-12:]))
	end = append(end, stateMagic...)
	if _, err := w.f.WriteAt(end, w.at); err != nil {
		return err
	}
	return w.f.sync()
}

// sortedReader reads items in order; their keys are good until the next one.
type sortedReader struct {
	f       *file
	at, end int64
	place   uint32
	block   []byte
	rest    []byte
	last    []byte // the key before, across blocks
}

// readState reads the Meta of a state file and gives a reader of its items.
func readState(f *file) (*sortedReader, storedMeta, error) {
	var meta storedMeta
	size, err := f.size()
	if err != nil {
		return nil, meta, err
	}
	if size < tailSize {
		return nil, meta, ErrDamaged
	}
	var head [len(stateMagic)]byte
	var tail [tailSize]byte
	if err := errors.Join(readFull(f, head[:], 0), readFull(f, tail[:], size-tailSize)); err != nil {
		return nil, meta, err
	}
	at := binary.LittleEndian.Uint64(tail[:])
	blocks := binary.LittleEndian.Uint32(tail[8:])
	if string(head[:]) != stateMagic || string(tail[16:]) != stateMagic ||
		binary.LittleEndian.Uint32(tail[12:]) != checksum(blocks, tail[:12]) || at > uint64(size-tailSize) {
		return nil, meta, ErrDamaged
	}
	end := &sortedReader{f: f, at: int64(at), end: size - tailSize, place: blocks}
	if err := end.load(); err != nil || end.at != end.end || json.Unmarshal(end.block, &meta) != nil {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, meta, err
		}
		return nil, storedMeta{}, ErrDamaged
	}
	return &sortedReader{f: f, at: int64(len(stateMagic)), end: int64(at)}, meta, nil
}

// readFull reads all of p; a file that is too short is damaged.
func readFull(f *file, p []byte, at int64) error {
	_, err := f.ReadAt(p, at)
	if errors.Is(err, io.EOF) {
		return ErrDamaged
	}
	return err
}

// load reads the next block; io.EOF after the last.
func (r *sortedReader) load() error {
	if r.at == r.end {
		return io.EOF
	}
	var head [blockHead]byte
	if r.end-r.at < blockHead {
		return ErrDamaged
	}
	if err := readFull(r.f, head[:], r.at); err != nil {
		return err
	}
	size := int64(binary.LittleEndian.Uint32(head[:]))
	if size > r.end-r.at-blockHead {
		return ErrDamaged
	}
	r.block = slices.Grow(r.block[:0], int(size))[:size]
	if err := readFull(r.f, r.block, r.at+blockHead); err != nil {
		return err
	}
	if checksum(r.place, r.block) != binary.LittleEndian.Uint32(head[4:]) {
		return ErrDamaged
	}
	r.at += blockHead + size
	r.place++
	r.rest = r.block
	return nil
}

// verify reads all blocks without looking into them.
func (r *sortedReader) verify() error {
	for {
		if err := r.load(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (r *sortedReader) next(it *item) error {
	if len(r.rest) > 0 {
		return r.cut(it, it.key)
	}
	r.last = append(r.last[:0], it.key...) // the block that it points into goes
	if err := r.load(); err != nil {
		return err
	}
	return r.cut(it, r.last)
}

// cut takes the next item of the block, which must come after the key before.
func (r *sortedReader) cut(it *item, before []byte) error {
	rest, ok := cutItem(r.rest, it)
	if !ok || bytes.Compare(before, it.key) >= 0 {
		return ErrDamaged
	}
	r.rest = rest
	return nil
}
