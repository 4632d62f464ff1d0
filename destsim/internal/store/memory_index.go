package store

// memoryIndex finds rows by the hash of a key: open addressing over words
// without pointers, which a garbage collector passes by. A word is the upper
// half of the hash and a reference; the row itself reports whether it is the one.
// Several rows may have the same key.
type memoryIndex struct {
	words []uint64 // a power of two of them
	used  int      // words that are not free, removed ones too
	live  int
}

// The lower half of a word that is no reference.
const (
	wordFree    = 0
	wordRemoved = 1
	wordFirst   = 2 // of the reference 0
)

// probe walks over the rows that may have the hash.
func (x *memoryIndex) probe(hash uint64) prober {
	return prober{words: x.words, tag: hash >> 32, i: hash >> 32}
}

type prober struct {
	words  []uint64
	tag, i uint64
}

// next gives a row, or false when there are no more.
func (p *prober) next() (rowRef, bool) {
	mask := uint64(len(p.words) - 1)
	if len(p.words) == 0 {
		return 0, false
	}
	for {
		w := p.words[p.i&mask]
		p.i++
		switch {
		case w == wordFree:
			return 0, false
		case w>>32 == p.tag && uint32(w) >= wordFirst:
			return rowRef(uint32(w) - wordFirst), true
		}
	}
}

// look gives the first of the rows that may have the hash, and how many there
// are. It is one loop over words, for who looks for thousands.
func (x *memoryIndex) look(hash uint64) (ref rowRef, rows int32) {
	words := x.words
	if len(words) == 0 {
		return 0, 0
	}
	mask, tag := uint64(len(words)-1), hash>>32
	for i := tag; ; i++ {
		w := words[i&mask]
		if w == wordFree {
			return ref, rows
		}
		if w>>32 == tag && uint32(w) >= wordFirst {
			if rows++; rows == 1 {
				ref = rowRef(uint32(w) - wordFirst)
			}
		}
	}
}

// add enters a row; whoever removes it needs the same hash.
func (x *memoryIndex) add(hash uint64, ref rowRef) {
	if 4*(x.used+1) > 3*len(x.words) {
		x.grow()
	}
	x.put(hash>>32<<32 | uint64(ref) + wordFirst)
	x.used++
	x.live++
}

func (x *memoryIndex) put(word uint64) {
	mask := uint64(len(x.words) - 1)
	i := word >> 32
	for x.words[i&mask] != wordFree {
		i++
	}
	x.words[i&mask] = word
}

// grow makes room, or only sweeps when most words were removed.
func (x *memoryIndex) grow() {
	old := x.words
	size := 8
	for 2*(x.live+1) > size {
		size *= 2
	}
	x.words, x.used = make([]uint64, size), x.live
	for _, w := range old {
		if uint32(w) >= wordFirst {
			x.put(w)
		}
	}
}

// remove takes a row out.
func (x *memoryIndex) remove(hash uint64, ref rowRef) {
	word := hash>>32<<32 | uint64(ref) + wordFirst
	mask := uint64(len(x.words) - 1)
	for i := hash >> 32; len(x.words) > 0; i++ {
		switch x.words[i&mask] {
		case wordFree:
			return
		case word:
			x.words[i&mask] = hash>>32<<32 | wordRemoved
			x.live--
			return
		}
	}
}
