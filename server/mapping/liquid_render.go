package mapping

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/osteele/liquid/parser"
	"github.com/osteele/liquid/render"
)

// tagAction prints a tag, blockAction a block with its inner bodies.
type (
	tagAction   func(r *run) error
	blockAction func(r *run, inner innerBodies) error
)

// innerBodies prints one of the bodies of a block.
type innerBodies func(n int) error

// The library is handed a template reduced to its structure: its own tags only,
// each with the number of what it stands for. It keeps the tree and walks it;
// the expressions, tags and filters of Liquid 5.4 are ours, since those of the
// library differ in strictness, numbers, nil and printing.
const (
	tagName   = "destkit"
	blockName = "destkitblock"
	nextName  = "destkitnext"
	runName   = "run"
)

// compiled is a template that the library can render.
type compiled struct {
	config render.Config
	root   render.Node
}

// compile hands the structure to the library, which checks that blocks are
// closed and calls back for every piece.
func compile(b *body) (*compiled, error) {
	var pieces []*piece
	var source strings.Builder
	writeStructure(&source, b, &pieces)

	config := render.NewConfig()
	config.AddTag(tagName, func(number string) (func(io.Writer, render.Context) error, error) {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(pieces) {
			return nil, fmt.Errorf("compile template: no piece %q", number)
		}
		p := pieces[n]
		// Only now: whitespace control may have changed the text until the end.
		if p.isText {
			p.tag = printText(p.text)
		}
		return func(_ io.Writer, c render.Context) error {
			r := c.Get(runName).(*run)
			if err := r.step(); err != nil {
				return err
			}
			return p.tag(r)
		}, nil
	})
	config.AddBlock(blockName).Clause(nextName).Compiler(func(node render.BlockNode) (func(io.Writer, render.Context) error, error) {
		n, err := strconv.Atoi(node.Args)
		if err != nil || n < 0 || n >= len(pieces) {
			return nil, fmt.Errorf("compile template: no piece %q", node.Args)
		}
		p := pieces[n]
		return func(_ io.Writer, c render.Context) error {
			r := c.Get(runName).(*run)
			if err := r.step(); err != nil {
				return err
			}
			return p.block(r, func(n int) error {
				return c.RenderBlock(io.Discard, node.Clauses[n])
			})
		}, nil
	})
	root, err := config.Compile(source.String(), parser.SourceLoc{Pathname: "template", LineNo: 1})
	if err != nil {
		return nil, fmt.Errorf("compile template: %w", err)
	}
	return &compiled{config, root}, nil
}

// writeStructure numbers the pieces in the order of the template; blocks hold
// their bodies between marks.
func writeStructure(source *strings.Builder, b *body, pieces *[]*piece) {
	for _, p := range b.pieces {
		number := len(*pieces)
		*pieces = append(*pieces, p)
		if p.block == nil {
			fmt.Fprintf(source, "{%% %s %d %%}", tagName, number)
			continue
		}
		fmt.Fprintf(source, "{%% %s %d %%}", blockName, number)
		for i, inner := range p.bodies {
			fmt.Fprintf(source, "{%% %s %d %%}", nextName, i)
			writeStructure(source, inner, pieces)
		}
		fmt.Fprintf(source, "{%% end%s %%}", blockName)
	}
}

// render prints the template into the run. The library wraps every error in the place of
// its structure, which means nothing to anybody: what we said is dug out.
func (c *compiled) render(r *run) error {
	err := render.Render(c.root, io.Discard, map[string]any{runName: r}, c.config)
	if err == nil {
		return nil
	}
	var ours *renderError
	switch {
	case errors.As(err, &ours):
		return ours
	case r.interrupt != nil:
		return nil // break and continue outside a loop end the template
	case err.Cause() != nil:
		return err.Cause()
	}
	return err
}

// published is an error in the published words of the language, which clients
// compare; publishedf fills a value in.
type published string

func (p published) Error() string { return string(p) }

func publishedf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// renderError is an error of a template while it is rendered.
type renderError struct{ err error }

func (e *renderError) Error() string { return "Liquid error: " + e.err.Error() }

func (e *renderError) Unwrap() error { return e.err }

// failed wraps what went wrong in a tag.
func failed(err error) error {
	var already *renderError
	if err == nil || errors.As(err, &already) {
		return err
	}
	return &renderError{err}
}

// print adds to the output, up to its limit. The writers of the library are
// not used: they hold text back, which an interrupted block would lose.
func (r *run) print(text string) error {
	if r.out.Len()+len(text) > r.limits.Output {
		return &renderError{fmt.Errorf("%w: an output of more than %d bytes", errLimit, r.limits.Output)}
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

// printText prints a piece of the template as it stands.
func printText(text string) tagAction { return func(r *run) error { return r.print(text) } }

// printValue prints the value of an output.
func printValue(value *filtered) tagAction {
	return func(r *run) error {
		v, err := value.value(r)
		if err != nil {
			return failed(err)
		}
		text := outputText(v)
		if _, isRaw := v.(rawText); r.escape && !isRaw {
			text = escapeJSON(text)
		}
		return r.print(text)
	}
}

// escapeJSON writes a text as it stands between the quotes of a JSON string.
func escapeJSON(text string) string {
	quoted, err := marshalPlain(text)
	if err != nil {
		return text
	}
	return string(quoted[1 : len(quoted)-1])
}
