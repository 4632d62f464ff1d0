package liquid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// tagAction prints a tag, blockAction a block with its inner bodies.
type (
	tagAction   func(r *run) error
	blockAction func(r *run, inner innerBodies) error
)

// innerBodies prints one of the bodies of a block.
type innerBodies func(n int) error

// render prints the pieces of a body in their order.
func (b *body) render(r *run) error {
	for _, p := range b.pieces {
		if err := p.render(r); err != nil {
			return p.locate(err)
		}
	}
	return nil
}

// render prints one piece within the limits.
func (p *piece) render(r *run) error {
	if err := r.step(); err != nil {
		return err
	}
	switch {
	case p.isText:
		return r.print(p.text)
	case p.block == nil:
		return p.tag(r)
	}
	return p.block(r, func(n int) error { return p.bodies[n].render(r) })
}

// locate notes the line of an error, of the innermost piece that failed.
func (p *piece) locate(err error) error {
	var ours *Error
	if errors.As(err, &ours) && ours.Line == 0 {
		ours.Line = p.line
	}
	return err
}

// published is an error in the published words of the language, which clients
// compare; publishedf fills a value in.
type published string

func (p published) Error() string { return string(p) }

func publishedf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Error is a mistake of a template, found when it is parsed or rendered. Its text
// is the published one, which names no line, and which clients compare.
type Error struct {
	Line   int // of the template, from 1
	prefix string
	err    error
}

// Error gives the published text.
func (e *Error) Error() string { return e.prefix + e.err.Error() }

// Unwrap gives the error behind it.
func (e *Error) Unwrap() error { return e.err }

// failed wraps what went wrong in a tag while it was rendered.
func failed(err error) error {
	var already *Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	return &Error{prefix: "Liquid error: ", err: err}
}

// print adds to the output, up to its limit.
func (r *run) print(text string) error {
	if r.out.Len()+len(text) > r.limits.Output {
		return failed(fmt.Errorf("%w: an output of more than %d bytes", errLimit, r.limits.Output))
	}
	// What grows is copied as it grows.
	if err := r.make(len(text)); err != nil {
		return failed(err)
	}
	r.out.WriteString(text)
	return nil
}

// captured is what a block prints, kept apart from the output around it.
func (r *run) captured(inner innerBodies) (string, error) {
	around := r.out
	r.out = &strings.Builder{}
	defer func() { r.out = around }()
	err := inner(0)
	return r.out.String(), err
}

// printText prints a text as it stands.
func printText(text string) tagAction { return func(r *run) error { return r.print(text) } }

// printValue prints the value of an output.
func printValue(value *filtered) tagAction {
	return func(r *run) error {
		v, err := value.value(r)
		if err != nil {
			return failed(err)
		}
		if err := r.makeOutput(v); err != nil {
			return failed(err)
		}
		text := outputText(v)
		if _, isRaw := v.(rawText); r.escape && !isRaw {
			text = escapeJSON(text)
		}
		return r.print(text)
	}
}

// makeOutput accounts for the text of a value before it is there. Texts are there
// already.
func (r *run) makeOutput(value any) error {
	if text, ok := value.(string); ok && !r.escape {
		return nil
	} else if ok {
		return r.make(quotedSize(text, r.limits.Text))
	}
	return r.make(textSize(value, r.limits.Text))
}

// escapeJSON writes a text as it stands between the quotes of a JSON string.
func escapeJSON(text string) string {
	quoted, err := marshalPlain(text)
	if err != nil {
		return text
	}
	return string(quoted[1 : len(quoted)-1])
}

// marshalPlain writes JSON without escaping HTML.
func marshalPlain(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
