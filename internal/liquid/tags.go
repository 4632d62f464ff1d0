package liquid

import (
	"fmt"
	"regexp"
	"strings"
)

// tagParser reads one tag, with all of its block, into a body.
type tagParser func(p *sourceParser, name, markup string, t *tokens, b *body) error

// tags are those of Liquid 5.4 without include and render.
var tags map[string]tagParser

// In init, since the parsers of blocks come back to this map.
func init() {
	tags = map[string]tagParser{
		"#": parseInlineComment, "comment": parseComment, "raw": parseRaw,
		"echo": parseEcho, "assign": parseAssign, "capture": parseCapture,
		"increment": parseCounter, "decrement": parseCounter,
		"if": parseIf, "unless": parseIf, "case": parseCase, "ifchanged": parseIfChanged,
		"for": parseFor, "tablerow": parseTableRow, "cycle": parseCycle,
		"break": parseInterrupt(errBreak), "continue": parseInterrupt(errContinue),
	}
}

// The published language reads these tags by patterns, not by words.
const (
	quotedPattern   = `"[^"]*"|'[^']*'`
	fragmentPattern = `(?:` + quotedPattern + `|(?:[^\s,|'"]|` + quotedPattern + `)+)`
	variablePattern = `\(?[\w\-.\[\]]\)?`
)

var (
	assignSyntax  = regexp.MustCompile(`(?s)((?:` + variablePattern + `)+)\s*=\s*(.*)\s*`)
	captureSyntax = regexp.MustCompile(`((?:` + variablePattern + `)+)`)
	inlineComment = regexp.MustCompile(`\n\s*[^#\s]`)
)

// parseInlineComment: every line of such a comment begins with a #.
func parseInlineComment(_ *sourceParser, _, markup string, _ *tokens, _ *body) error {
	if inlineComment.MatchString(markup) {
		return published("Syntax error in tag '#' - Each line of comments must be prefixed by the '#' character")
	}
	return nil
}

// parseComment: what is inside must still be Liquid, but reads and defines
// nothing.
func parseComment(p *sourceParser, name, _ string, t *tokens, b *body) error {
	inside, outer := newBody(), p.reads
	p.reads = newReads()
	defer func() { p.reads = outer }()
	_, err := p.parseBlock(name, t, inside, func(string, string) (*body, error) { return inside, nil })
	b.add(&piece{tag: func(*run) error { return nil }}, true)
	return err
}

// parseRaw takes tokens as text up to its end, whatever they hold.
func parseRaw(_ *sourceParser, name, markup string, t *tokens, b *body) error {
	if strings.Trim(markup, white) != "" {
		return published("Syntax Error in 'raw' - Valid syntax: raw")
	}
	var text strings.Builder
	for token, ok := t.next(); ok; token, ok = t.next() {
		if m := endOfRaw.FindStringSubmatch(token); m != nil && m[2] == "end"+name {
			text.WriteString(m[1])
			// Not a text piece: whitespace control leaves raw text alone.
			b.add(&piece{tag: printText(text.String())}, text.Len() == 0)
			return nil
		}
		text.WriteString(token)
	}
	return fmt.Errorf("'%s' tag was never closed", name)
}

// parseEcho is an output in the form of a tag, for liquid tags.
func parseEcho(p *sourceParser, _, markup string, _ *tokens, b *body) error {
	value, err := p.filtered(markup)
	if err == nil {
		b.add(&piece{tag: printValue(value)}, false)
	}
	return err
}

// parseAssign sets a variable for the rest of the template, also out of a loop.
func parseAssign(p *sourceParser, _, markup string, _ *tokens, b *body) error {
	m := assignSyntax.FindStringSubmatch(markup)
	if m == nil {
		return published("Syntax Error in 'assign' - Valid syntax: assign [var] = [source]")
	}
	name := m[1]
	value, err := p.filtered(m[2])
	if err != nil {
		return err
	}
	p.reads.define(name)
	b.add(&piece{tag: func(r *run) error {
		v, err := value.value(r)
		r.assign(name, v)
		return failed(err)
	}}, true)
	return nil
}

// parseCapture keeps what its block prints.
func parseCapture(p *sourceParser, name, markup string, t *tokens, b *body) error {
	m := captureSyntax.FindStringSubmatch(markup)
	if m == nil {
		return published("Syntax Error in 'capture' - Valid syntax: capture [var]")
	}
	inside := newBody()
	if _, err := p.parseBlock(name, t, inside, noInnerTags); err != nil {
		return err
	}
	to := m[1]
	p.reads.define(to)
	b.add(&piece{bodies: []*body{inside}, block: func(r *run, inner innerBodies) error {
		text, err := r.captured(inner)
		// A break within keeps what was printed so far.
		if err == nil || r.interrupt != nil {
			r.assign(to, text)
		}
		if err == nil {
			err = failed(r.spendOn(text))
		}
		return err
	}}, true)
	return nil
}

// noInnerTags is for blocks that have no other tag but their end.
func noInnerTags(string, string) (*body, error) { return nil, nil }

// parseCounter: increment prints and then adds, decrement subtracts and then
// prints. Counters are apart from assigned variables.
func parseCounter(p *sourceParser, tag, markup string, _ *tokens, b *body) error {
	name := strings.Trim(markup, white)
	p.reads.define(name)
	b.add(&piece{tag: func(r *run) error {
		if name == recordName {
			return failed(fmt.Errorf("the variable %s cannot be counted", name))
		}
		now, _ := r.counters[name].(int64)
		printed := now
		if tag == "increment" {
			now++
		} else {
			now--
			printed = now
		}
		set(&r.counters, name, any(now))
		return r.print(toText(printed))
	}}, false)
	return nil
}

// parseIfChanged prints only what differs from the last time, anywhere in the
// template.
func parseIfChanged(p *sourceParser, name, _ string, t *tokens, b *body) error {
	inside := newBody()
	blank, err := p.parseBlock(name, t, inside, noInnerTags)
	b.add(&piece{bodies: []*body{inside}, block: func(r *run, inner innerBodies) error {
		text, err := r.captured(inner)
		if r.changed == nil || *r.changed != text {
			r.changed = &text
			if full := r.print(text); full != nil {
				return full
			}
		}
		return err
	}}, blank)
	return err
}

// parseInterrupt ends a round of a loop, or the loop.
func parseInterrupt(why error) tagParser {
	return func(_ *sourceParser, _, _ string, _ *tokens, b *body) error {
		b.add(&piece{tag: func(r *run) error {
			r.interrupt = why
			return why
		}}, true)
		return nil
	}
}

// branch is one body with its condition, nil for else.
type branch struct {
	when      func(r *run) (bool, error)
	condition *condition
}

// parseIf reads if and unless. Of unless only the first condition is turned
// round.
func parseIf(p *sourceParser, name, markup string, t *tokens, b *body) error {
	var branches []branch
	var bodies []*body
	outer, decided := p.reads, false
	defer func() { p.reads = outer }()
	push := func(tag, markup string) (*body, error) {
		next, dead := branch{}, decided
		if p.reads = outer; dead { // nor does anything ask for its condition
			p.reads = newReads()
		}
		switch tag {
		case "else":
		case name, "elsif":
			c, err := parseCondition(markup, p.reads)
			if err != nil {
				return nil, inMarkup(err, markup)
			}
			next.condition = c
			// Each elsif of an unless means what it says.
			turned := tag == "unless"
			next.when = func(r *run) (bool, error) {
				is, err := c.holds(r)
				return is != turned, err
			}
			if is, known := c.constant(); known {
				decided = decided || is != turned
				dead = dead || is == turned
			}
		default:
			return nil, nil
		}
		// What no record can reach reads nothing: it need not be there.
		if dead {
			p.reads = newReads()
		}
		branches, bodies = append(branches, next), append(bodies, newBody())
		return bodies[len(bodies)-1], nil
	}
	first, err := push(name, markup)
	if err != nil {
		return err
	}
	blank, err := p.parseBlock(name, t, first, func(tag, markup string) (*body, error) {
		if tag == name {
			return nil, nil
		}
		return push(tag, markup)
	})
	// A block that can print nothing but white space prints nothing, as in the
	// published language.
	if blank {
		dropTexts(bodies)
	}
	b.add(&piece{bodies: bodies, agrees: !blank && agreeing(branches, bodies), block: func(r *run, inner innerBodies) error {
		for i, branch := range branches {
			is := true
			if branch.when != nil {
				var err error
				if is, err = branch.when(r); err != nil {
					return failed(err)
				}
			}
			if is {
				return inner(i)
			}
		}
		return nil
	}}, blank)
	return err
}

// dropTexts does so for all bodies of a block.
func dropTexts(bodies []*body) {
	for _, b := range bodies {
		b.dropText()
	}
}

// openScope opens the variables of a loop.
func (r *run) openScope(variables map[string]any) {
	r.scopes = append(r.scopes, variables)
}

// closeScope forgets them.
func (r *run) closeScope() { r.scopes = r.scopes[:len(r.scopes)-1] }
