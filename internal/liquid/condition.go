package liquid

import (
	"errors"
	"fmt"
	"strings"
)

// condition is a comparison, and what and or or joins to it. Chains are read
// from the right: a and b or c is a and (b or c).
type condition struct {
	left     expression
	operator string // "": only whether left is true
	right    expression
	joined   string // and, or, ""
	next     *condition
}

// emptiness is the value of empty and blank in a comparison.
type emptiness struct{ blank bool }

// parseCondition reads a chain up to the end of the markup; words left over are
// an error.
func parseCondition(markup string, reads *reads) (*condition, error) {
	p, err := newExpressionParser(markup, reads)
	if err != nil {
		return nil, err
	}
	first, err := p.comparison()
	if err != nil {
		return nil, err
	}
	for last := first; ; last = last.next {
		switch {
		case p.acceptID("and"):
			last.joined = "and"
		case p.acceptID("or"):
			last.joined = "or"
		default:
			_, err := p.expect(wordEnd)
			return first, err
		}
		if last.next, err = p.comparison(); err != nil {
			return nil, err
		}
	}
}

// comparison reads one value, or two with an operator between them.
func (p *expressionParser) comparison() (*condition, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	c := &condition{left: left}
	if p.look(wordComparison, 0) {
		c.operator = p.words[p.at].text
		p.at++
		c.right, err = p.operand()
	}
	return c, err
}

// operand knows empty and blank as what they are in comparisons.
func (p *expressionParser) operand() (expression, error) {
	w := p.words[p.at]
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	if _, isLiteral := e.(literal); isLiteral && w.kind == wordID && (w.text == "empty" || w.text == "blank") {
		return literal{emptiness{w.text == "blank"}}, nil
	}
	return e, nil
}

// holds evaluates the chain and stops as soon as the rest cannot matter.
func (c *condition) holds(r *run) (bool, error) {
	for {
		result, err := c.compare(r)
		if err != nil || c.next == nil || result == (c.joined == "or") {
			return result, err
		}
		c = c.next
	}
}

// constant gives the result of a condition that no record decides; known is false
// for one that needs a variable, or that fails.
func (c *condition) constant() (holds, known bool) {
	for ; ; c = c.next {
		_, left := c.left.(literal)
		_, right := c.right.(literal)
		if !left || c.operator != "" && !right {
			return false, false
		}
		holds, err := c.compare(newRun(nil, Limits{}))
		if err != nil {
			return false, false
		}
		if c.next == nil || holds == (c.joined == "or") {
			return holds, true
		}
	}
}

// compare evaluates one comparison without what is joined to it.
func (c *condition) compare(r *run) (bool, error) {
	left, err := c.left.value(r)
	if err != nil {
		return false, err
	}
	// A value alone: is it truthy?
	if c.operator == "" {
		return truthy(left), nil
	}
	right, err := c.right.value(r)
	if err != nil {
		return false, err
	}
	// Comparing long values in a loop is work, too.
	if err := errors.Join(r.spendOn(left), r.spendOn(right)); err != nil {
		return false, err
	}
	switch c.operator {
	case "==":
		return equalOrEmpty(left, right), nil
	case "!=", "<>":
		return !equalOrEmpty(left, right), nil
	case "contains":
		if err := r.make(textSize(right, r.limits.Text)); isList(right) && err != nil {
			return false, err
		}
		return containsValue(left, right), nil
	}
	return ordered(left, c.operator, right)
}

// equalOrEmpty is equality, with empty and blank on either side.
func equalOrEmpty(left, right any) bool {
	if e, ok := left.(emptiness); ok {
		return e.matches(right)
	}
	if e, ok := right.(emptiness); ok {
		return e.matches(left)
	}
	return equalValues(left, right)
}

// matches: empty is a text, array or map without content, and nothing else;
// blank is also nil, false and a text of white space.
func (e emptiness) matches(value any) bool {
	switch v := value.(type) {
	case string:
		return v == "" || e.blank && strings.TrimFunc(v, isUnicodeSpace) == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case nil:
		return e.blank
	case bool:
		return e.blank && !v
	}
	return false
}

// containsValue: a part of a text, an item, a key, a number within a range. nil
// and false are in nothing.
func containsValue(left, right any) bool {
	if !truthy(left) || !truthy(right) {
		return false
	}
	switch l := left.(type) {
	case string:
		return strings.Contains(l, toText(right))
	case []any:
		for _, item := range l {
			if equalValues(liquidValue(item), right) {
				return true
			}
		}
	case map[string]any:
		key, ok := right.(string)
		_, has := l[key]
		return ok && has
	case intRange:
		n, ok := exactNumber(right)
		return ok && n.Cmp(wholeNumber(l.from).rat()) >= 0 && n.Cmp(wholeNumber(l.to).rat()) <= 0
	}
	return false
}

// ordered compares numbers with numbers, texts with texts and times with times.
// nil, booleans, arrays and maps have no order, which is no error; a number and
// a text are one.
func ordered(left any, operator string, right any) (bool, error) {
	if !hasOrder(left) || !hasOrder(right) {
		return false, nil
	}
	sign, ok := compareValues(left, right)
	if !ok {
		return false, fmt.Errorf("comparison of %s with %s failed", className(left), comparedName(right))
	}
	switch operator {
	case "<":
		return sign < 0, nil
	case "<=":
		return sign <= 0, nil
	case ">":
		return sign > 0, nil
	}
	return sign >= 0, nil
}
