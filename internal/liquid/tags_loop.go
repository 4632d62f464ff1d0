package liquid

import (
	"maps"
	"slices"
	"strings"
)

// forLoop is the object forloop.
type forLoop struct {
	name          string
	length, index int64
	parent        *forLoop
}

// property implements drop.
func (l *forLoop) property(name string) (any, bool) {
	switch name {
	case "name":
		return l.name, true
	case "parentloop":
		if l.parent == nil {
			return nil, true
		}
		return l.parent, true
	}
	return loopProperty(name, l.index, l.length)
}

// loopProperty is what both kinds of loops tell.
func loopProperty(name string, index, length int64) (any, bool) {
	switch name {
	case "length":
		return length, true
	case "index":
		return index + 1, true
	case "index0":
		return index, true
	case "rindex":
		return length - index, true
	case "rindex0":
		return length - index - 1, true
	case "first":
		return index == 0, true
	case "last":
		return index == length-1, true
	}
	return nil, false
}

// forTag is a for as it was parsed.
type forTag struct {
	variable, name        string
	over, limit, offset   expression
	goesOn, reversed, has bool // has: there is an else
}

// parseFor reads the block. The last else counts when there are several.
func parseFor(p *sourceParser, name, markup string, t *tokens, b *body) error {
	tag, err := p.forTag(markup)
	if err != nil {
		return inMarkup(err, markup)
	}
	p.reads.define(tag.variable)
	p.reads.define("forloop")
	bodies := []*body{newBody()}
	blank, err := p.parseBlock(name, t, bodies[0], func(inner, _ string) (*body, error) {
		if inner != "else" {
			return nil, nil
		}
		tag.has = true
		// A second else takes the place of the first.
		bodies = append(bodies[:1], newBody())
		return bodies[1], nil
	})
	if blank {
		dropTexts(bodies)
	}
	b.add(&piece{bodies: bodies, block: tag.print}, blank)
	return err
}

// forTag reads variable, what is gone through, and the attributes in any order.
func (p *sourceParser) forTag(markup string) (*forTag, error) {
	words, err := newExpressionParser(markup, p.reads)
	if err != nil {
		return nil, err
	}
	tag := &forTag{}
	if tag.variable, err = words.expect(wordID); err != nil {
		return nil, err
	}
	if !words.acceptID("in") {
		return nil, published("For loops require an 'in' clause")
	}
	// The name of the loop is its text, by which offset: continue finds it
	// again.
	start := words.at
	if tag.over, err = words.expression(); err != nil {
		return nil, err
	}
	tag.name = tag.variable + "-" + joinWords(words.words[start:words.at])
	// Before the attributes only.
	tag.reversed = words.acceptID("reversed")
	for words.look(wordID, 0) && words.look("colon", 1) {
		attribute := words.words[words.at].text
		if attribute != "limit" && attribute != "offset" {
			return nil, published("Invalid attribute in for loop. Valid attributes are limit and offset")
		}
		words.at += 2
		// continue is a word here only when it stands alone; continue.x is a
		// variable.
		if attribute == "offset" && words.words[words.at].text == "continue" && !words.look("dot", 1) && !words.look("open_square", 1) && words.acceptID("continue") {
			tag.goesOn = true
			continue
		}
		value, err := words.expression()
		if err != nil {
			return nil, err
		}
		if attribute == "limit" {
			tag.limit = value
		} else {
			tag.offset, tag.goesOn = value, false
		}
	}
	_, err = words.expect(wordEnd)
	return tag, err
}

// joinWords is an expression without its white space, as the name of a loop.
func joinWords(words []word) string {
	var b strings.Builder
	for _, w := range words {
		if w.kind == wordString {
			b.WriteString(`"` + w.text + `"`)
		} else {
			b.WriteString(w.text)
		}
	}
	return b.String()
}

// optionalInteger is the value of limit or offset; given is false for nil.
func optionalInteger(r *run, e expression) (n int64, given bool, err error) {
	if e == nil {
		return 0, false, nil
	}
	value, err := e.value(r)
	if err != nil || value == nil {
		return 0, false, err
	}
	n, err = toInteger(value)
	return n, true, err
}

// segment is what the loop goes through.
func (f *forTag) segment(r *run) ([]any, error) {
	from, _, err := optionalInteger(r, f.offset)
	if err != nil {
		return nil, err
	}
	// Where the last loop of the same name has stopped; 0 for the first.
	if f.goesOn {
		from = r.offsets[f.name]
	}
	over, err := f.over.value(r)
	if err != nil {
		return nil, err
	}
	limit, limited, err := optionalInteger(r, f.limit)
	if err != nil {
		return nil, err
	}
	segment, err := r.part(over, from, limit, limited)
	if err != nil {
		return nil, err
	}
	// Kept whether or not another loop asks for it.
	set(&r.offsets, f.name, from+int64(len(segment)))
	if f.reversed {
		slices.Reverse(segment)
	}
	return segment, nil
}

// part gives a copy of the items from a place on. A text is one item, a map its
// pairs in the order of the keys.
func (r *run) part(over any, from, limit int64, limited bool) ([]any, error) {
	var all []any
	switch v := over.(type) {
	case string:
		if v == "" {
			return nil, nil
		}
		return []any{v}, nil // whatever limit and offset say
	case []any:
		all = v
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, []any{key, v[key]})
		}
	case intRange:
		var err error
		if all, err = items(r, v); err != nil {
			return nil, err
		}
	}
	to := int64(len(all))
	if limited {
		to = min(to, from+limit)
	}
	from = max(0, from)
	if from >= to {
		return nil, nil
	}
	if err := r.take(16 * int(to-from)); err != nil {
		return nil, err
	}
	return slices.Clone(all[from:to]), nil
}

// print runs the body once for each item.
func (f *forTag) print(r *run, inner innerBodies) error {
	segment, err := f.segment(r)
	if err != nil {
		return failed(err)
	}
	if len(segment) == 0 {
		if f.has {
			return inner(1)
		}
		return nil
	}
	loop := &forLoop{name: f.name, length: int64(len(segment))}
	if n := len(r.loops); n > 0 {
		loop.parent = r.loops[n-1]
	}
	// The published language bounds its stack of variables as well.
	if len(r.scopes) >= deepestBlock {
		return failed(published("Nesting too deep"))
	}
	r.loops = append(r.loops, loop)
	r.openScope(map[string]any{"forloop": loop})
	defer func() { r.loops = r.loops[:len(r.loops)-1]; r.closeScope() }()
	for _, item := range segment {
		if err := r.iterate(1); err != nil {
			return failed(err)
		}
		// One scope for all rounds: what assign sets lives outside of it.
		r.scopes[len(r.scopes)-1][f.variable] = liquidValue(item)
		err := inner(0)
		// break and continue end the round by an error that is theirs.
		switch r.interrupt {
		case nil:
			if err != nil {
				return err
			}
		case errBreak:
			r.interrupt = nil
			return nil
		default:
			r.interrupt = nil
		}
		loop.index++
	}
	return nil
}
