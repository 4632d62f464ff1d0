package ledger

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io"
	"slices"
)

// index finds the last verdict of each key of a run, and gives them in key
// order, in constant memory: so many keys in a table, the others in sorted
// scratch files, newer before older. It can always be made again from the log.
//
// A run sends in key order, so the ranges of the files hardly overlap and most
// keys are looked for in none of them; those that are sent again come in order
// too, and read each file once.
type index struct {
	files    *folder
	most     int // items in memory
	fan      int // segments of a level become one of the next
	items    []indexed
	blind    bool // some items are not in the table
	keys     []byte
	rows     int      // bytes of rows in memory, at most
	table    []uint32 // by hash: 1 + place in items; 0 is free
	seed     maphash.Seed
	segments [][]*segment // level 0 is the newest; in a level the last
	last     []byte       // the greatest key of all segments

	generation uint32 // of the part in memory
}

type indexed struct {
	at, size int
	item     // without its key, which moves
}

const (
	indexItems = 16 << 10
	indexKeys  = 4 << 20 // bytes of keys and rows after which a segment is written too
	indexFan   = 64
	segmentCut = 16 << 10
)

func newIndex(files *folder, o *Options) *index {
	most := cmp.Or(o.indexItems, indexItems)
	slots := 1
	for slots < 2*most {
		slots *= 2
	}
	return &index{
		files: files, most: most, fan: cmp.Or(o.indexFan, indexFan), table: make([]uint32, slots), seed: maphash.MakeSeed(), generation: 1,
	}
}

// slot finds the key's place in the table, or the free one where it belongs.
func (x *index) slot(key []byte) int {
	mask := len(x.table) - 1
	i := int(maphash.Bytes(x.seed, key)) & mask
	for x.table[i] != 0 {
		if it := &x.items[x.table[i]-1]; bytes.Equal(x.keys[it.at:it.at+it.size], key) {
			return i
		}
		i = (i + 1) & mask
	}
	return i
}

// get finds what the run knows of a key: an item without marks when that is
// nothing. Its key may be anything.
func (x *index) get(key []byte) (item, error) {
	if err := x.see(); err != nil {
		return item{}, err
	}
	if place := x.table[x.slot(key)]; place != 0 {
		return x.items[place-1].item, nil
	}
	return x.older(key)
}

// older looks for a key in the segments.
func (x *index) older(key []byte) (item, error) {
	if bytes.Compare(key, x.last) > 0 {
		return item{}, nil
	}
	for _, level := range x.segments {
		for i := len(level) - 1; i >= 0; i-- {
			if it, ok, err := level[i].get(key); ok || err != nil {
				return it, err
			}
		}
	}
	return item{}, nil
}

// at is what the run knows of a key, to be changed in place before the next
// call: an item without marks when it is new. The item has no key.
func (x *index) at(key []byte) (*item, error) {
	if err := x.see(); err != nil {
		return nil, err
	}
	i := x.slot(key)
	if place := x.table[i]; place != 0 {
		return &x.items[place-1].item, nil
	}
	it, err := x.older(key)
	if err != nil {
		return nil, err
	}
	return x.enter(i, key, it)
}

// over is at for an item that is about to be replaced, whatever was known of its key:
// no segment is read for it.
func (x *index) over(key []byte) (*item, error) {
	if err := x.see(); err != nil {
		return nil, err
	}
	i := x.slot(key)
	if place := x.table[i]; place != 0 {
		return &x.items[place-1].item, nil
	}
	return x.enter(i, key, item{})
}

// enter takes an item whose key is not in the table, into its slot.
func (x *index) enter(slot int, key []byte, it item) (*item, error) {
	if x.full(key) {
		if err := x.spill(); err != nil {
			return nil, err
		}
		slot = x.slot(key)
	}
	added := x.put(key, it)
	x.table[slot] = uint32(len(x.items))
	return added, nil
}

// add takes an item whose key is not in memory, without looking for it. It goes
// over what the segments have of the key.
func (x *index) add(key []byte, it item) (*item, error) {
	if x.full(key) {
		if err := x.spill(); err != nil {
			return nil, err
		}
	}
	x.blind = true
	return x.put(key, it), nil
}

// see makes items that were added findable: in a segment.
func (x *index) see() error {
	if !x.blind {
		return nil
	}
	return x.spill()
}

func (x *index) full(key []byte) bool {
	return len(x.items) == x.most || (len(x.items) > 0 && len(x.keys)+len(key)+x.rows > indexKeys)
}

func (x *index) put(key []byte, it item) *item {
	it.key, it.row = nil, bytes.Clone(it.row)
	x.items = append(x.items, indexed{len(x.keys), len(key), it})
	x.keys = append(x.keys, key...)
	return &x.items[len(x.items)-1].item
}

// follow adds a verdict to an item of at.
func (x *index) follow(it *item, r *Record, number uint64) {
	it.follow(r, number)
	x.rows += len(it.row)
}

// spill writes the part in memory as a segment.
func (x *index) spill() error {
	s, err := x.write(x.inMemory())
	if err != nil {
		return err
	}
	if x.rows > 0 {
		clear(x.items) // frees the rows
	}
	x.items, x.keys, x.rows = x.items[:0], x.keys[:0], 0
	x.blind = false
	x.generation++
	clear(x.table)
	// A key beyond all segments, which is most of them, is looked for in none.
	if bytes.Compare(s.last, x.last) > 0 {
		x.last = s.last
	}
	for level := 0; ; level++ {
		if level == len(x.segments) {
			x.segments = append(x.segments, nil)
		}
		x.segments[level] = append(x.segments[level], s)
		if len(x.segments[level]) < x.fan {
			return nil
		}
		// Deeper levels are older, so the order of ages stays right.
		var old []items
		for _, s := range slices.Backward(x.segments[level]) {
			old = append(old, s.items())
		}
		if s, err = x.write(mergeItems(old)); err != nil {
			x.segments[level] = x.segments[level][:x.fan-1]
			return err
		}
		err = closeSegments(x.segments[level])
		x.segments[level] = nil
		if err != nil {
			return err
		}
	}
}

// sorted gives all items in key order.
func (x *index) sorted() items {
	all := []items{x.inMemory()}
	for _, level := range x.segments {
		for _, s := range slices.Backward(level) {
			all = append(all, s.items())
		}
	}
	return mergeItems(all)
}

func (x *index) empty() bool { return len(x.items) == 0 && len(x.segments) == 0 }

func (x *index) close() error {
	var errs []error
	for _, level := range x.segments {
		errs = append(errs, closeSegments(level))
	}
	x.segments, x.items = nil, nil
	return errors.Join(errs...)
}

func closeSegments(all []*segment) error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.f.Close())
	}
	return errors.Join(errs...)
}

// memoryItems are the items of the table in key order.
type memoryItems struct {
	x     *index
	order []ordered
}

// ordered is a place in items; the first bytes of the key decide most
// comparisons.
type ordered struct {
	prefix uint64
	place  int
}

func (x *index) inMemory() items {
	m := &memoryItems{x: x, order: make([]ordered, len(x.items))}
	if x.inRuns(m.order) {
		return m
	}
	for i := range x.items {
		var prefix [8]byte
		copy(prefix[:], x.key(i))
		m.order[i] = ordered{binary.BigEndian.Uint64(prefix[:]), i}
	}
	slices.SortFunc(m.order, func(a, b ordered) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(x.key(a.place), x.key(b.place))
	})
	return m
}

// inRuns puts items in order that came in ascending runs which do not overlap,
// as the batches of a pass over a source do: in the order in which they ended.
// False: they came otherwise.
func (x *index) inRuns(order []ordered) bool {
	type run struct{ from, to int }
	var runs []run
	for i := range x.items {
		if i == 0 || bytes.Compare(x.key(i-1), x.key(i)) >= 0 {
			if len(runs) > len(x.items)/64 {
				return false
			}
			runs = append(runs, run{i, i})
		}
		runs[len(runs)-1].to = i + 1
	}
	slices.SortFunc(runs, func(a, b run) int { return bytes.Compare(x.key(a.from), x.key(b.from)) })
	n := 0
	for i, r := range runs {
		if i > 0 && bytes.Compare(x.key(runs[i-1].to-1), x.key(r.from)) >= 0 {
			return false
		}
		for place := r.from; place < r.to; place++ {
			order[n].place = place
			n++
		}
	}
	return true
}

func (x *index) key(place int) []byte {
	it := &x.items[place]
	return x.keys[it.at : it.at+it.size]
}

func (m *memoryItems) next(it *item) error {
	if len(m.order) == 0 {
		return io.EOF
	}
	place := m.order[0].place
	m.order = m.order[1:]
	*it = m.x.items[place].item
	it.key = m.x.key(place)
	return nil
}
