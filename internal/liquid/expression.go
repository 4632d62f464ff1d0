package liquid

import (
	"fmt"
	"math/big"
	"strconv"
)

// expression is something that has a value while a template is rendered.
type expression interface {
	value(*run) (any, error)
}

// literal is a value that stands in the template.
type literal struct{ is any }

func (l literal) value(*run) (any, error) { return l.is, nil }

// lookup is a variable and the way into it. root is the variable's name, given
// or computed.
type lookup struct {
	root expression
	path []step
}

// step is one way into a value. A command such as .size also works on values
// that have no such key.
type step struct {
	key     expression
	command bool
}

// rangeExpression is (from..to), computed at both ends.
type rangeExpression struct{ from, to expression }

// expressionParser reads words as the strict parser of Liquid 5.4 does.
type expressionParser struct {
	words []word
	at    int
	depth int
	reads *reads
}

// newExpressionParser cuts the markup into words; what the expressions read is
// noted in reads.
func newExpressionParser(markup string, reads *reads) (*expressionParser, error) {
	words, err := lexExpression(markup)
	return &expressionParser{words: words, reads: reads}, err
}

// look tells the kind of a word without taking it.
func (p *expressionParser) look(kind string, ahead int) bool {
	return p.at+ahead < len(p.words) && p.words[p.at+ahead].kind == kind
}

// accept takes the next word if it is of a kind.
func (p *expressionParser) accept(kind string) bool {
	if !p.look(kind, 0) {
		return false
	}
	p.at++
	return true
}

// acceptID takes the next word if it is this name.
func (p *expressionParser) acceptID(name string) bool {
	return p.words[p.at].text == name && p.accept(wordID)
}

// expect takes a word of a kind; the error is the published one.
func (p *expressionParser) expect(kind string) (string, error) {
	w := p.words[p.at]
	if w.kind != kind {
		return "", publishedf("Expected %s but found %s", kind, w.kind)
	}
	p.at++
	return w.text, nil
}

// The parser calls itself; a template must not be able to exhaust the stack.
const deepestExpression = 100

// expression reads one value: a literal, a variable with its path, or a range.
func (p *expressionParser) expression() (expression, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > deepestExpression {
		return nil, published("Nesting too deep")
	}
	w := p.words[p.at]
	switch w.kind {
	case wordID:
		p.at++
		path, err := p.steps()
		if err != nil {
			return nil, err
		}
		// Only alone: nil.size is a variable that happens to be called nil.
		if value, ok := namedLiterals[w.text]; ok && len(path) == 0 {
			return literal{value}, nil
		}
		return p.variable(literal{w.text}, path), nil
	// ["name"] at the start is a variable whose name is computed.
	case "open_square":
		p.at++
		root, err := p.expression()
		if err != nil {
			return nil, err
		}
		if _, err = p.expect("close_square"); err != nil {
			return nil, err
		}
		path, err := p.steps()
		return p.variable(root, path), err
	case wordString:
		p.at++
		return literal{w.text}, nil
	case wordNumber:
		p.at++
		return literal{numberLiteral(w.text)}, nil
	case "open_round":
		p.at++
		return p.rangeOf()
	}
	return nil, fmt.Errorf("%s is not a valid expression", quoteWord(w))
}

// quoteWord shows a word in the notation of the published errors.
func quoteWord(w word) string {
	if w.kind == wordEnd {
		return "[:end_of_string]"
	}
	return fmt.Sprintf("[:%s, %q]", w.kind, w.text)
}

// rangeOf reads what follows the opening bracket.
func (p *expressionParser) rangeOf() (expression, error) {
	from, err := p.expression()
	if err != nil {
		return nil, err
	}
	if _, err = p.expect(wordDotDot); err != nil {
		return nil, err
	}
	to, err := p.expression()
	if err != nil {
		return nil, err
	}
	_, err = p.expect("close_round")
	return rangeExpression{from, to}, err
}

// steps reads .name and [expression] as often as they come.
func (p *expressionParser) steps() ([]step, error) {
	var path []step
	for {
		switch {
		case p.accept("open_square"):
			key, err := p.expression()
			if err != nil {
				return nil, err
			}
			if _, err = p.expect("close_square"); err != nil {
				return nil, err
			}
			path = append(path, step{key: key})
		case p.accept("dot"):
			name, err := p.expect(wordID)
			if err != nil {
				return nil, err
			}
			// Only written with a dot: ["size"] is always a key.
			path = append(path, step{literal{name}, name == "size" || name == "first" || name == "last"})
		default:
			return path, nil
		}
	}
}

// variable notes what the template reads on the way.
func (p *expressionParser) variable(root expression, path []step) expression {
	v := lookup{root, path}
	p.reads.note(v)
	return v
}

// The words that are values, where no step follows. blank and empty are more
// than the empty text in comparisons only: see operand.
var namedLiterals = map[string]any{
	"nil": nil, "null": nil, "true": true, "false": false, "blank": "", "empty": "",
}

// numberLiteral keeps integers of any size, and reads what has a point as a
// float.
func numberLiteral(digits string) any {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n
	}
	if n, ok := new(big.Int).SetString(digits, 10); ok {
		return n
	}
	f, _ := strconv.ParseFloat(digits, 64)
	return f
}
