package mapping

import (
	"errors"
	"fmt"
)

type tableLoop struct {
	length, index, columns, row, column int64
}

type tableTag struct {
	variable             string
	over                 expression
	limit, offset, width expression
}

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

func cutInteger(r *run, e expression) (n int64, given bool, err error) {
	if e == nil {
		return 0, false, nil
	}
	value, err := e.value(r)
	n, ok := toNumber(value).integer()
	if !ok {
		return 0, true, errors.Join(err, fmt.Errorf("integer %s too big", toText(value)))
	}
	return n, true, err
}

func (l *tableLoop) advance() {
	l.index++
	if l.column == l.columns {
		l.column, l.row = 1, l.row+1
		return
	}
	l.column++
}
