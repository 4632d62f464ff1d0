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
	tagAction   func(r *run, w io.Writer) error
	blockAction func(r *run, w io.Writer, inner innerBodies) error
)

// innerBodies prints one of the bodies of a block.
type innerBodies func(n int, w io.Writer) error

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
		if p.isText {
			return func(w io.Writer, _ render.Context) error {
				_, err := io.WriteString(w, p.text)
				return err
			}, nil
		}
		return func(w io.Writer, c render.Context) error { return p.tag(c.Get(runName).(*run), w) }, nil
	})
	config.AddBlock(blockName).Clause(nextName).Compiler(func(node render.BlockNode) (func(io.Writer, render.Context) error, error) {
		n, err := strconv.Atoi(node.Args)
		if err != nil || n < 0 || n >= len(pieces) {
			return nil, fmt.Errorf("compile template: no piece %q", node.Args)
		}
		p := pieces[n]
		return func(w io.Writer, c render.Context) error {
			return p.block(c.Get(runName).(*run), w, func(n int, w io.Writer) error {
				return c.RenderBlock(w, node.Clauses[n])
			})
		}, nil
	})
	root, err := config.Compile(source.String(), parser.SourceLoc{Pathname: "template", LineNo: 1})
	if err != nil {
		return nil, fmt.Errorf("compile template: %w", err)
	}
	return &compiled{config, root}, nil
}

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

// render prints the template. The library wraps every error in the place of
// its structure, which means nothing to anybody: what we said is dug out.
func (c *compiled) render(r *run, w io.Writer) error {
	err := render.Render(c.root, w, map[string]any{runName: r}, c.config)
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

// output collects what a template prints, up to a limit.
type output struct {
	strings.Builder
	most int
}

func (o *output) Write(p []byte) (int, error) {
	if o.Len()+len(p) > o.most {
		return 0, &renderError{fmt.Errorf("%w: an output of more than %d bytes", errLimit, o.most)}
	}
	return o.Builder.Write(p)
}

// WriteString keeps the limit on the short way too.
func (o *output) WriteString(s string) (int, error) {
	if o.Len()+len(s) > o.most {
		return 0, &renderError{fmt.Errorf("%w: an output of more than %d bytes", errLimit, o.most)}
	}
	return o.Builder.WriteString(s)
}

// printValue prints the value of an output.
func printValue(value *filtered) tagAction {
	return func(r *run, w io.Writer) error {
		v, err := value.value(r)
		if err != nil {
			return failed(err)
		}
		text := outputText(v)
		if _, isRaw := v.(rawText); r.escape && !isRaw {
			text = escapeJSON(text)
		}
		_, err = io.WriteString(w, text)
		return err
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
