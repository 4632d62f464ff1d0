package liquid

import (
	"fmt"
	"regexp"
	"strings"
)

// Tags and outputs, closed or not: an unclosed one must become an error and not
// a text.
var sourceTokens = regexp.MustCompile(`(?s)\{%.*?%\}|\{\{.*?\}\}?|\{%|\{\{`)

// tagToken: name, arguments. The name of a comment within a tag is #.
var (
	tagToken  = regexp.MustCompile(`(?s)^\{%-?\s*(#|\w+)\s*(.*?)-?%\}$`)
	lineToken = regexp.MustCompile(`^\s*(#|\w+)\s*(.*)$`)
	endOfRaw  = regexp.MustCompile(`(?s)^(.*)\{%\s*(\w+)\s*(.*)?%\}$`)
)

// tokens of a template, or the lines of a liquid tag.
type tokens struct {
	list  []string
	lines bool
	line  int // in which the next token begins
}

// cutSource cuts a template into texts, tags and outputs.
func cutSource(source string) *tokens {
	t := &tokens{line: 1}
	last := 0
	for _, at := range sourceTokens.FindAllStringIndex(source, -1) {
		if at[0] > last {
			t.list = append(t.list, source[last:at[0]])
		}
		t.list = append(t.list, source[at[0]:at[1]])
		last = at[1]
	}
	if last < len(source) {
		t.list = append(t.list, source[last:])
	}
	return t
}

// next takes a token. Nested bodies share the list, so each goes on where the
// inner one has ended.
func (t *tokens) next() (string, bool) {
	if len(t.list) == 0 {
		return "", false
	}
	token := t.list[0]
	t.list = t.list[1:]
	t.line += strings.Count(token, "\n")
	if t.lines {
		t.line++
	}
	return token, true
}

// piece is one part of a body: text, a tag, or a block with its inner bodies.
type piece struct {
	isText bool
	text   string
	tag    tagAction
	block  blockAction
	bodies []*body
	line   int  // of the template, from 1
	agrees bool // the library surely prints the same
}

// body is what stands between two tags. It is blank when it can print nothing
// but white space.
type body struct {
	pieces []*piece
	blank  bool
}

// newBody is blank until something is added that prints.
func newBody() *body { return &body{blank: true} }

// add appends a piece and notes whether it can print.
func (b *body) add(p *piece, blank bool) {
	b.pieces = append(b.pieces, p)
	b.blank = b.blank && blank
}

// dropText removes the white space of a body of a block that prints nothing.
func (b *body) dropText() {
	kept := b.pieces[:0]
	for _, p := range b.pieces {
		if !p.isText {
			kept = append(kept, p)
		}
	}
	b.pieces = kept
}

// sourceParser reads a template strictly, with the errors of Liquid 5.4.
type sourceParser struct {
	reads  *reads
	trim   bool // the next text loses its white space at the start
	depth  int
	cycles int // cycles with variables so far
	line   int // that is being read

	differs bool // the library may read a tag or an output in another way
}

// As deep as the published language goes.
const deepestBlock = 100

// parseBody reads up to a tag that the block around it must understand, and
// gives that tag; "" at the end of the tokens.
func (p *sourceParser) parseBody(t *tokens, b *body) (tag, markup string, err error) {
	if p.depth++; p.depth > deepestBlock {
		return "", "", published("Nesting too deep")
	}
	defer func() { p.depth-- }()
	for {
		line, had := t.line, len(b.pieces)
		token, ok := t.next()
		if !ok {
			return "", "", nil
		}
		p.line, p.reads.line = line, line
		switch {
		// A line of a liquid tag has no brackets.
		case t.lines:
			if strings.Trim(token, white) == "" {
				continue
			}
			m := lineToken.FindStringSubmatch(token)
			if m == nil {
				return token, token, nil
			}
			tag, markup = m[1], m[2]
		case strings.HasPrefix(token, "{%"):
			p.control(token, b)
			m := tagToken.FindStringSubmatch(token)
			if m == nil {
				return "", "", publishedf(`Tag '%s' was not properly terminated with regexp: /\%%\}/`, token)
			}
			tag, markup = m[1], m[2]
		case strings.HasPrefix(token, "{{"):
			p.control(token, b)
			if err := p.output(token, b); err != nil {
				return "", "", err
			}
			b.locate(had, line)
			continue
		default:
			if p.trim {
				token = strings.TrimLeft(token, white)
			}
			p.trim = false
			b.add(&piece{isText: true, text: token, agrees: true}, strings.Trim(token, white[:6]) == "")
			continue
		}
		if tag == "liquid" && !t.lines {
			err = p.liquidTag(markup, line+strings.Count(token[:strings.LastIndex(token, markup)], "\n"), b)
		} else if parse, known := tags[tag]; known {
			err = parse(p, tag, markup, t, b)
		} else {
			return tag, markup, nil
		}
		if err != nil {
			return "", "", err
		}
		b.locate(had, line)
	}
}

// locate notes the line of the pieces that a token has added.
func (b *body) locate(had, line int) {
	for _, p := range b.pieces[min(had, len(b.pieces)):] {
		if p.line == 0 {
			p.line = line
		}
	}
}

// control is whitespace control: a dash at the start of a token trims the text
// before it, one at its end the text after it.
func (p *sourceParser) control(token string, b *body) {
	if len(token) > 2 && token[2] == '-' && len(b.pieces) > 0 {
		if last := b.pieces[len(b.pieces)-1]; last.isText {
			last.text = strings.TrimRight(last.text, white)
		}
	}
	p.trim = len(token) > 2 && token[len(token)-3] == '-'
	p.differs = p.differs || !plainToken.MatchString(token)
}

// output reads {{ … }}, with or without dashes.
func (p *sourceParser) output(token string, b *body) error {
	inner, ok := strings.CutSuffix(token[2:], "}}")
	if !ok {
		return publishedf(`Variable '%s' was not properly terminated with regexp: /\}\}/`, token)
	}
	inner = strings.TrimSuffix(strings.TrimPrefix(inner, "-"), "-")
	value, err := p.filtered(inner)
	if err != nil {
		return err
	}
	b.add(&piece{tag: printValue(value), agrees: value.agrees()}, false)
	return nil
}

// filtered parses an output; errors show the output.
func (p *sourceParser) filtered(markup string) (*filtered, error) {
	value, err := parseFiltered(markup, p.reads)
	if err != nil {
		return nil, fmt.Errorf(`%w in "{{%s}}"`, err, markup)
	}
	return value, nil
}

// inMarkup shows the markup that an error is in.
func inMarkup(err error, markup string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(`%w in "%s"`, err, strings.Trim(markup, white))
}

// liquidTag reads one tag per line into the body around it.
func (p *sourceParser) liquidTag(markup string, line int, b *body) error {
	p.differs = true
	lines := &tokens{list: strings.Split(markup, "\n"), lines: true, line: line}
	tag, _, err := p.parseBody(lines, b)
	if err != nil || tag == "" {
		return err
	}
	return unknownTag(tag, "liquid", "%}")
}

// unknownTag is the error of a tag that a block does not expect.
func unknownTag(tag, block, end string) error {
	switch {
	case tag == "else":
		return fmt.Errorf("%s tag does not expect 'else' tag", block)
	case strings.HasPrefix(tag, "end"):
		return fmt.Errorf("'%s' is not a valid delimiter for %s tags. use %s", tag, block, end)
	}
	return publishedf("Unknown tag '%s'", tag)
}

// parseBlock reads the bodies of a block up to its end tag. inner is asked for
// the tags between them and gives the body that follows, nil for a tag that the
// block does not know.
func (p *sourceParser) parseBlock(name string, t *tokens, first *body, inner func(tag, markup string) (*body, error)) (blank bool, err error) {
	blank = true
	opened := p.line
	for current := first; ; {
		tag, markup, err := p.parseBody(t, current)
		if err != nil {
			return false, err
		}
		blank = blank && current.blank
		switch tag {
		case "end" + name:
			return blank, nil
		case "":
			p.line = opened
			return false, fmt.Errorf("'%s' tag was never closed", name)
		}
		next, err := inner(tag, markup)
		if err != nil {
			return false, err
		}
		if next == nil {
			return false, unknownTag(tag, name, "end"+name)
		}
		current = next
	}
}
