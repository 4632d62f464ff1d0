package foreign

import (
	"bytes"
	"slices"
)

// view is a text with some encodings undone. Secrets are looked for in it, since
// undoing finds every way to write them: any character may be escaped or not, in
// either case.
type view struct {
	text  []byte
	under *view // the text that the layer was applied to, nil for the original
	layer *layer
	from  []int32 // of each byte, where it came from in the view under it;
	to    []int32 // built on demand
	least int     // argument of the layer
}

// layer undoes one encoding.
type layer struct {
	marks string // a text without any of them stays as it is; "": any text may change
	apply func(text []byte, out *plain)
}

// plain collects what a layer makes of a text.
type plain struct {
	text     []byte
	from, to []int32
	wanted   bool // from and to are
	least    int  // shorter runs cannot hold a secret
}

// add appends text that represents the bytes from..to.
func (p *plain) add(text []byte, from, to int) {
	p.text = append(p.text, text...)
	p.mapped(len(text), from, to)
}

// copied appends what the layer leaves as it is.
func (p *plain) copied(text []byte, from, to int) {
	p.text = append(p.text, text[from:to]...)
	if p.wanted {
		for i := from; i < to; i++ {
			p.from, p.to = append(p.from, int32(i)), append(p.to, int32(i+1))
		}
	}
}

// mapped records where the last n bytes came from.
func (p *plain) mapped(n, from, to int) {
	if !p.wanted {
		return
	}
	for range n {
		p.from, p.to = append(p.from, int32(from)), append(p.to, int32(to))
	}
}

func (p *plain) addByte(c byte, from, to int) {
	p.text = append(p.text, c)
	if p.wanted {
		p.from, p.to = append(p.from, int32(from)), append(p.to, int32(to))
	}
}

// Depth of the search: short texts, such as messages, three encodings deep, a
// whole body two, a very long one once. Each level costs several passes.
const (
	deepText = 16 << 10
	longText = 2 << 20
)

func depth(size int) int {
	switch {
	case size <= deepText:
		return 3
	case size <= longText:
		return 2
	}
	return 1
}

// eachView calls fn with the text itself and with every reading of it.
func (r *Redactor) eachView(b []byte, fn func(*view)) {
	base := &view{text: b}
	fn(base)
	r.below(base, depth(len(b)), fn)
}

// below undoes further encodings.
func (r *Redactor) below(v *view, depth int, fn func(*view)) {
	if depth == 0 {
		return
	}
	for i := range layers {
		l := &layers[i]
		if l == plusLayer && !r.spaces {
			continue
		}
		if next := v.undo(l, r.least); next != nil {
			fn(next)
			r.below(next, depth-1, fn)
		}
	}
}

// undo gives the view with one more encoding undone, or nil when that changes
// nothing.
func (v *view) undo(l *layer, least int) *view {
	if l.marks != "" && !bytes.ContainsAny(v.text, l.marks) {
		return nil
	}
	out := plain{least: least, text: make([]byte, 0, len(v.text)+16)}
	l.apply(v.text, &out)
	if len(out.text) < ShortSecret || bytes.Equal(out.text, v.text) {
		return nil
	}
	return &view{text: out.text, under: v, layer: l, least: least}
}

// source gives the stretch of the original that from..to of the view represent.
func (v *view) source(from, to int) (int, int) {
	for ; v.under != nil; v = v.under {
		if v.from == nil {
			out := plain{wanted: true, least: v.least}
			v.layer.apply(v.under.text, &out)
			v.from, v.to = out.from, out.to
		}
		from, to = int(slices.Min(v.from[from:to])), int(slices.Max(v.to[from:to]))
	}
	return from, to
}
