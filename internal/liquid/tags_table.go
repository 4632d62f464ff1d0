package liquid

import (
	"errors"
	"fmt"
	"regexp"
)

// tableLoop is the object tablerowloop.
type tableLoop struct {
	length, index, columns, row, column int64
}

// property implements drop.
func (l *tableLoop) property(name string) (any, bool) {
	switch name {
	case "col":
		return l.column, true
	case "col0":
		return l.column - 1, true
	case "row":
		return l.row, true
	case "col_first":
		return l.column == 1, true
	case "col_last":
		return l.column == l.columns, true
	}
	return loopProperty(name, l.index, l.length)
}

var (
	// This tag is still read by patterns, so slips in attributes pass unseen,
	// as in the published language.
	tableSyntax   = regexp.MustCompile(`(\w+)\s+in\s+((?:` + fragmentPattern + `)+)`)
	attributeList = regexp.MustCompile(`(\w[\w-]*)\s*:\s*(` + fragmentPattern + `)`)
)

// tableTag is a tablerow as it was parsed.
type tableTag struct {
	variable             string
	over                 expression
	limit, offset, width expression
}

// parseTableRow reads the block; unknown attributes are ignored.
func parseTableRow(p *sourceParser, name, markup string, t *tokens, b *body) error {
	m := tableSyntax.FindStringSubmatch(markup)
	if m == nil {
		return published("Syntax Error in 'table_row loop' - Valid syntax: table_row [item] in [collection] cols=3")
	}
	tag := &tableTag{variable: m[1]}
	var err error
	if tag.over, err = p.parseFragment(m[2]); err != nil {
		return err
	}
	for _, attribute := range attributeList.FindAllStringSubmatch(markup, -1) {
		value, err := p.parseFragment(attribute[2])
		if err != nil {
			return err
		}
		switch attribute[1] {
		case "limit":
			tag.limit = value
		case "offset":
			tag.offset = value
		case "cols":
			tag.width = value
		}
	}
	p.reads.define(tag.variable)
	p.reads.define("tablerowloop")
	inside := newBody()
	_, err = p.parseBlock(name, t, inside, noInnerTags)
	b.add(&piece{bodies: []*body{inside}, block: tag.print}, false)
	return err
}

// cutInteger reads any value as an integer, 0 for what is none.
func cutInteger(r *run, e expression) (n int64, given bool, err error) {
	if e == nil {
		return 0, false, nil
	}
	value, err := e.value(r)
	n, ok := toNumber(value).integer()
	if !ok {
		return 0, true, errors.Join(err, fmt.Errorf("integer %s too big", shown(value)))
	}
	return n, true, err
}

// advance goes to the next cell. Without cols all cells stand in one row, as
// column never equals 0.
func (l *tableLoop) advance() {
	l.index++
	if l.column == l.columns {
		l.column, l.row = 1, l.row+1
		return
	}
	l.column++
}

// print writes the cells in rows of HTML, byte for byte as the published
// language does.
func (t *tableTag) print(r *run, inner innerBodies) error {
	over, err := t.over.value(r)
	// Nothing to go through prints no table at all.
	if err != nil || !truthy(over) {
		return failed(err)
	}
	// All three are evaluated before any is judged.
	from, _, errFrom := cutInteger(r, t.offset)
	limit, limited, errLimit := cutInteger(r, t.limit)
	width, _, errWidth := cutInteger(r, t.width)
	segment, err := r.part(over, from, limit, limited)
	if err := errors.Join(errFrom, errLimit, errWidth, err); err != nil {
		return failed(err)
	}
	loop := &tableLoop{length: int64(len(segment)), columns: width, row: 1, column: 1}
	r.openScope(map[string]any{"tablerowloop": loop})
	defer r.closeScope()
	out := "<tr class=\"row1\">\n"
	for _, item := range segment {
		if err := r.iterate(1); err != nil {
			return failed(err)
		}
		r.scopes[len(r.scopes)-1][t.variable] = liquidValue(item)
		if err := r.print(fmt.Sprintf("%s<td class=\"col%d\">", out, loop.column)); err != nil {
			return err
		}
		if err := inner(0); err != nil {
			return err
		}
		out = "</td>"
		// The last row is closed behind the loop.
		if loop.column == loop.columns && loop.index != loop.length-1 {
			out += fmt.Sprintf("</tr>\n<tr class=\"row%d\">", loop.row+1)
		}
		loop.advance()
	}
	return r.print(out + "</tr>\n")
}
