package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Scan reads the state as this part sees it: the keys of its range, with what
// its log has already over them when it is resumed. Close the cursor.
func (r *Run) Scan() (*Cursor, error) {
	c, err := r.scan()
	if err != nil {
		return nil, fmt.Errorf("scan part %d of run %d of sync %d: %w", r.part, r.id, r.s.id, err)
	}
	return c, nil
}

func (r *Run) scan() (_ *Cursor, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return nil, r.failed
	}
	state, err := r.s.readItems()
	if err != nil {
		return nil, err
	}
	c := &Cursor{s: r.s, items: &ranged{state, r.from, r.to}, close: state.Close}
	if err = state.seek(r.from); err == nil && !r.index.empty() {
		// A copy, since the log goes on.
		var was *segment
		if was, err = r.index.write(r.index.sorted()); err == nil {
			c.items = &overlay{run: was.items(), state: c.items}
			c.close = func() error { return errors.Join(was.f.Close(), state.Close()) }
		}
	}
	if err != nil {
		return nil, errors.Join(err, state.Close())
	}
	return c, nil
}

// ranged leaves out what is not in a range.
type ranged struct {
	items
	from, to []byte
}

func (r *ranged) next(it *item) error {
	for {
		if err := r.items.next(it); err != nil {
			return err
		}
		if r.to != nil && bytes.Compare(it.key, r.to) >= 0 {
			return io.EOF
		}
		if bytes.Compare(it.key, r.from) >= 0 {
			return nil
		}
	}
}

// Leave keeps bytes beside the log of a part, in place of what was left before:
// whoever goes on with the part finds them, until the run is finished.
func (r *Run) Leave(from io.Reader) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.leave(from); err != nil {
		return fmt.Errorf("leave records of part %d of run %d of sync %d: %w", r.part, r.id, r.s.id, err)
	}
	return nil
}

func (r *Run) leave(from io.Reader) (err error) {
	if r.failed != nil {
		return r.failed
	}
	name := partName(r.id, r.part, restSuffix)
	f, err := r.s.files.create(name + newSuffix)
	if err != nil {
		return err
	}
	at, block := int64(0), make([]byte, blockHead+blockSize)
	for place := uint32(0); err == nil; place++ {
		var n int
		n, err = io.ReadFull(from, block[blockHead:])
		if n == 0 {
			break
		}
		seal(block[:blockHead+n], place)
		if _, failed := f.WriteAt(block[:blockHead+n], at); failed != nil {
			err = failed
		}
		at += int64(blockHead + n)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = f.sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, r.s.files.remove(name+newSuffix))
	}
	return r.s.files.rename(name+newSuffix, name)
}

// Left reads what Leave has kept; nothing is left where it was never called.
// Close it.
func (r *Run) Left() (io.ReadCloser, error) {
	f, err := r.s.files.open(partName(r.id, r.part, restSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	size := int64(0)
	if err == nil {
		size, err = f.size()
	}
	if err != nil {
		return nil, fmt.Errorf("read what part %d of run %d of sync %d has left: %w", r.part, r.id, r.s.id, err)
	}
	return &left{sortedReader{f: f, end: size}}, nil
}

// left reads blocks of plain bytes.
type left struct{ from sortedReader }

func (l *left) Read(p []byte) (int, error) {
	if len(l.from.rest) == 0 {
		if err := l.from.load(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.from.rest)
	l.from.rest = l.from.rest[n:]
	return n, nil
}

func (l *left) Close() error { return l.from.f.Close() }
