package liquid

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	fragment   = regexp.MustCompile(fragmentPattern)
	whenSyntax = regexp.MustCompile(`(?s)(` + fragmentPattern + `)(?:(?:\s+or\s+|\s*,\s*)(` + fragmentPattern + `.*))?`)
	cycleNamed = regexp.MustCompile(`(?s)^(` + fragmentPattern + `)\s*:\s*(.*)`)
)

// parseFragment reads one value out of a tag that is read by patterns.
func (p *sourceParser) parseFragment(markup string) (expression, error) {
	words, err := newExpressionParser(markup, p.reads)
	if err != nil {
		return nil, inMarkup(err, markup)
	}
	e, err := words.operand()
	if err == nil {
		_, err = words.expect(wordEnd)
	}
	return e, inMarkup(err, markup)
}

// parseCase: every branch that matches is printed, else when none did.
func parseCase(p *sourceParser, name, markup string, t *tokens, b *body) error {
	found := fragment.FindString(markup)
	if found == "" {
		return published("Syntax Error in 'case' - Valid syntax: case [condition]")
	}
	// What stands behind the first value is ignored, as in the published
	// language.
	subject, err := p.parseFragment(found)
	if err != nil {
		return err
	}
	// What stands before the first when is never printed.
	before := newBody()
	bodies := []*body{before}
	var values [][]expression
	blank, err := p.parseBlock(name, t, before, func(tag, markup string) (*body, error) {
		var alternatives []expression
		switch tag {
		case "when":
			var err error
			if alternatives, err = p.parseWhen(markup); err != nil {
				return nil, err
			}
		case "else":
			if strings.Trim(markup, white) != "" {
				return nil, published("Syntax Error in tag 'case' - Valid else condition: {% else %} (no parameters) ")
			}
		default:
			return nil, nil
		}
		values, bodies = append(values, alternatives), append(bodies, newBody())
		return bodies[len(bodies)-1], nil
	})
	if blank {
		dropTexts(bodies[1:])
	}
	b.add(&piece{bodies: bodies[1:], block: func(r *run, inner innerBodies) error {
		return printCase(r, inner, subject, values)
	}}, blank)
	return err
}

// parseWhen reads values between or and commas.
func (p *sourceParser) parseWhen(markup string) ([]expression, error) {
	var values []expression
	for more := true; more; {
		m := whenSyntax.FindStringSubmatch(markup)
		if m == nil {
			return nil, published("Syntax Error in tag 'case' - Valid when condition: {% when [condition] [or condition2...] %}")
		}
		value, err := p.parseFragment(m[1])
		if err != nil {
			return nil, err
		}
		values = append(values, value)
		markup, more = m[2], m[2] != ""
	}
	return values, nil
}

// printCase prints a body once for each of its values that is equal.
func printCase(r *run, inner innerBodies, subject expression, values [][]expression) error {
	matched := false
	for i, alternatives := range values {
		// else; several may stand, also before a when.
		if alternatives == nil {
			if !matched {
				if err := inner(i); err != nil {
					return err
				}
			}
			continue
		}
		for _, alternative := range alternatives {
			// The same equality as that of ==, empty and blank included.
			is, err := (&condition{left: subject, operator: "==", right: alternative}).compare(r)
			if err != nil {
				return failed(err)
			}
			if !is {
				continue
			}
			matched = true
			if err := inner(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseCycle: the values of a name in turn. Without a name the values are it.
func parseCycle(p *sourceParser, _, markup string, _ *tokens, b *body) error {
	list := markup
	var group expression
	// A name can be computed, so it is only known when the template is
	// rendered.
	if m := cycleNamed.FindStringSubmatch(markup); m != nil {
		var err error
		if group, err = p.parseFragment(m[1]); err != nil {
			return err
		}
		list = m[2]
	}
	var values []expression
	for _, part := range strings.Split(list, ",") {
		if found := fragment.FindString(part); found != "" {
			value, err := p.parseFragment(found)
			if err != nil {
				return err
			}
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return published("Syntax Error in 'cycle' - Valid syntax: cycle [name :] var [, var2, var3 ...]")
	}
	shown := p.cycleName(values)
	b.add(&piece{tag: func(r *run) error {
		key := shown
		if group != nil {
			name, err := group.value(r)
			if err != nil {
				return failed(err)
			}
			// Apart from the names that cycleName makes.
			if err := r.make(textSize([]any{name}, r.limits.Text)); err != nil {
				return failed(err)
			}
			key = "name " + inspect(name)
		}
		turn := r.cycles[key]
		// Another cycle of the same name may have more values.
		if turn >= len(values) {
			turn = 0
		}
		value, err := values[turn].value(r)
		if err != nil {
			return failed(err)
		}
		set(&r.cycles, key, (turn+1)%len(values))
		if err := r.makeOutput(value); err != nil {
			return failed(err)
		}
		return r.print(outputText(value))
	}}, false)
	return nil
}

// cycleName is the group of a cycle without a name: cycles of the same
// constants go on together, one with variables stands for itself.
func (p *sourceParser) cycleName(values []expression) string {
	var b strings.Builder
	for _, value := range values {
		if constant, ok := value.(literal); ok {
			b.WriteString(inspect(constant.is) + ",")
			continue
		}
		p.cycles++
		fmt.Fprintf(&b, "variable %d,", p.cycles)
	}
	return b.String()
}
