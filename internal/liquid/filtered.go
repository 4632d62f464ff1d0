package liquid

import (
	"fmt"
)

// filtered is an expression behind its filters.
type filtered struct {
	start   expression // nil: an empty output
	filters []filterCall
	text    string
}

// filterCall is a filter with its arguments as they stand in the template.
type filterCall struct {
	name  string
	args  []expression
	named map[string]expression
}

// parseFiltered reads expression | filter: argument, name: argument | …
func parseFiltered(markup string, reads *reads) (*filtered, error) {
	out := &filtered{text: markup}
	p, err := newExpressionParser(markup, reads)
	if err != nil {
		return nil, err
	}
	if p.look(wordEnd, 0) {
		return out, nil
	}
	if out.start, err = p.expression(); err != nil {
		return nil, err
	}
	for p.accept("pipe") {
		call, err := p.filter()
		if err != nil {
			return nil, err
		}
		out.filters = append(out.filters, call)
	}
	_, err = p.expect(wordEnd)
	return out, err
}

// filter reads a name and its arguments. Whether it exists is checked for the
// template as a whole.
func (p *expressionParser) filter() (call filterCall, err error) {
	if call.name, err = p.expect(wordID); err != nil {
		return call, err
	}
	// Noted, so that an unknown filter is found before any record comes by.
	p.reads.filters = p.reads.mention(p.reads.filters, call.name)
	if !p.accept("colon") {
		return call, nil
	}
	for {
		name := ""
		// name: argument; a name alone is a variable.
		if p.look(wordID, 0) && p.look("colon", 1) {
			name = p.words[p.at].text
			p.at += 2
		}
		argument, err := p.expression()
		if err != nil {
			return call, err
		}
		if name == "" {
			call.args = append(call.args, argument)
		} else {
			if call.named == nil {
				call.named = map[string]expression{}
			}
			call.named[name] = argument
		}
		if !p.accept("comma") {
			return call, nil
		}
	}
}

// apply evaluates the arguments and runs the filter within the limits.
func (c *filterCall) apply(r *run, input any) (any, error) {
	definition, ok := filters[c.name]
	if !ok {
		return nil, fmt.Errorf("undefined filter %s", c.name)
	}
	args := make([]any, 0, len(c.args)+1)
	for _, expr := range c.args {
		value, err := expr.value(r)
		if err != nil {
			return nil, err
		}
		args = append(args, value)
	}
	// Named arguments come as one map at the end, as in the published language.
	if c.named != nil {
		named := make(map[string]any, len(c.named))
		for name, expr := range c.named {
			value, err := expr.value(r)
			if err != nil {
				return nil, err
			}
			named[name] = value
		}
		args = append(args, named)
	}
	if err := definition.checkCount(len(args)); err != nil {
		return nil, err
	}
	// Before and after: a filter may read much and make much of little.
	if err := r.spendOn(input); err != nil {
		return nil, err
	}
	if err := r.prepare(c.name, input, args); err != nil {
		return nil, err
	}
	value, err := definition.apply(r, input, args)
	if err != nil {
		return nil, err
	}
	// Raw means something in JSON mode only.
	if raw, ok := value.(rawText); ok && !r.escape {
		value = string(raw)
	}
	value = liquidValue(value)
	return value, r.spendOn(value)
}

// value of an output: the start through all filters.
func (f *filtered) value(r *run) (any, error) {
	if f.start == nil {
		return nil, nil
	}
	value, err := f.start.value(r)
	for i := 0; i < len(f.filters) && err == nil; i++ {
		value, err = f.filters[i].apply(r, value)
	}
	return value, err
}
