package liquid

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/render"
)

// newConfig has our tags and filters, for one rendering or for one template that is
// parsed. The library's own tags go through maps in any order, bound no loop and
// compare in another way.
func newConfig(r *run, parsing *reads) render.Config {
	c := render.NewConfig()
	c.StrictVariables = true
	c.AddTag("assign", compileAssign)
	c.AddTag("cycle", compileCycle)
	c.AddTag("increment", compileCounter(0, 1))
	c.AddTag("decrement", compileCounter(-1, -1))
	c.AddTag("break", compileLeave(errBreak))
	c.AddTag("continue", compileLeave(errContinue))
	c.AddBlock("raw")
	c.AddBlock("comment")
	c.AddBlock("if").Clause("elsif").Clause("else").Compiler(parsing.compileIf)
	c.AddBlock("unless").Clause("elsif").Clause("else").Compiler(parsing.compileIf)
	c.AddBlock("case").Clause("when").Clause("else").Compiler(compileCase)
	c.AddBlock("for").Clause("else").Compiler(compileLoop)
	c.AddBlock("tablerow").Compiler(compileLoop)
	c.AddBlock("capture").Renderer(func(_ io.Writer, ctx render.Context) error {
		text, err := captured(ctx)
		ctx.Set(variable(ctx.TagArgs()), boxed{text, runOf(ctx)})
		return err
	})
	// ifchanged prints what differs from the last time, anywhere in the template.
	c.AddBlock("ifchanged").Renderer(func(w io.Writer, ctx render.Context) error {
		r := runOf(ctx)
		text, err := captured(ctx)
		if err == nil && (r.changed == nil || *r.changed != text) {
			r.changed = &text
			_, err = io.WriteString(w, text)
		}
		return err
	})
	for name, f := range filters {
		c.AddFilter(name, func(input any, args ...any) (any, error) { return f.call(r, input, args) })
	}
	return c
}

// action prints a tag or a block.
type action = func(io.Writer, render.Context) error

// Both leave blocks as errors do; the loop around them takes them up.
var (
	errBreak    = errors.New("break outside a loop")
	errContinue = errors.New("continue outside a loop")
)

func compileLeave(why error) render.TagCompiler {
	return func(string) (action, error) {
		return func(_ io.Writer, ctx render.Context) error { return ctx.WrapError(why) }, nil
	}
}

// captured is what a block prints, kept apart from the output around it.
func captured(ctx render.Context) (string, error) {
	out := &output{run: runOf(ctx)}
	if err := ctx.RenderChildren(out); err != nil {
		return "", err
	}
	return out.text.String(), nil
}

// evaluate gives the value of an expression; nil for one that is not given.
func evaluate(ctx render.Context, e expressions.Expression) (any, error) {
	if e == nil {
		return nil, nil
	}
	value, err := ctx.Evaluate(e)
	if value = plain(value); err == nil {
		err = runOf(ctx).read(value)
	}
	return value, err
}

// variable is the name that a tag gives one.
func variable(markup string) string { return strings.Trim(markup, ` "'`) }

// compileAssign sets a variable for the rest of the template, also out of a loop.
func compileAssign(arguments string) (action, error) {
	name, markup, found := strings.Cut(arguments, "=")
	if name = variable(name); name == "" || !found {
		return nil, errors.New("Valid syntax: assign [var] = [source]") //nolint:staticcheck // published
	}
	value, err := expressions.Parse(markup)
	return func(_ io.Writer, ctx render.Context) error {
		v, err := evaluate(ctx, value)
		ctx.Set(name, boxed{v, runOf(ctx)})
		return err
	}, err
}

// compileCounter: increment prints and then adds, decrement subtracts and then
// prints.
func compileCounter(before, step int) render.TagCompiler {
	return func(name string) (action, error) {
		if name == recordName {
			return nil, fmt.Errorf("the variable %s cannot be counted", name)
		}
		return func(w io.Writer, ctx render.Context) error {
			r := runOf(ctx)
			now, counted := r.counters[name]
			set(&r.counters, name, now+step)
			// Unless it was assigned, the variable is the counter.
			if v, isSet := ctx.Get(name).(boxed); counted && v.v == now || !isSet || v.v == unknown(name) {
				ctx.Set(name, boxed{now + step, nil})
			}
			_, err := fmt.Fprint(w, now+before)
			return err
		}, nil
	}
}

// groupName is what a cycle may begin with.
var groupName = regexp.MustCompile(`(?s)^\s*("[^"]*"|'[^']*'|[^\s,:|'"]+)\s*:(.*)$`)

// compileCycle: the values of a name in turn. Without a name the values are it.
func compileCycle(arguments string) (action, error) {
	name, list := arguments, arguments
	if m := groupName.FindStringSubmatch(arguments); m != nil {
		name, list = m[1], m[2]
	}
	statement, err := expressions.ParseStatement(expressions.WhenStatementSelector, list)
	name = strings.ReplaceAll(name, " ", "")
	return func(w io.Writer, ctx render.Context) error {
		r := runOf(ctx)
		turn := r.turns["cycle "+name] % len(statement.Exprs)
		set(&r.turns, "cycle "+name, turn+1)
		value, err := evaluate(ctx, statement.Exprs[turn])
		if err == nil {
			_, err = io.WriteString(w, toText(value))
		}
		return err
	}, err
}

// compileIf is if and unless. Of unless only the first condition is turned round.
func (r *reads) compileIf(block render.BlockNode) (action, error) {
	branches := append([]*render.BlockNode{&block}, block.Clauses...)
	conditions := make([]expressions.Expression, len(branches))
	for i, branch := range branches {
		conditions[i] = expressions.Constant(true)
		if branch.Name != "else" {
			var err error
			if conditions[i], err = r.condition(branch.Args); err != nil {
				return nil, err
			}
		}
	}
	return func(w io.Writer, ctx render.Context) error {
		for i, branch := range branches {
			value, err := evaluate(ctx, conditions[i])
			if err != nil {
				return err
			}
			if truthy(value) != (branch.Name == "unless") {
				return ctx.RenderBlock(w, branch)
			}
		}
		return nil
	}, nil
}

// compileCase prints each body of which a value is equal.
func compileCase(block render.BlockNode) (action, error) {
	subject, err := expressions.Parse(block.Args)
	alternatives := make([][]expressions.Expression, len(block.Clauses))
	for i, clause := range block.Clauses {
		if clause.Name == "when" && err == nil {
			var statement *expressions.Statement
			if statement, err = expressions.ParseStatement(expressions.WhenStatementSelector, clause.Args); err == nil {
				alternatives[i] = statement.Exprs
			}
		}
	}
	return func(w io.Writer, ctx render.Context) error {
		value, err := evaluate(ctx, subject)
		matched := false
		for i, clause := range block.Clauses {
			is := clause.Name == "else" && !matched
			for _, alternative := range alternatives[i] {
				other, failed := evaluate(ctx, alternative)
				is, err = is || equal(value, other), errors.Join(err, failed)
			}
			if err != nil {
				return err
			}
			if matched = matched || is; is {
				if err := ctx.RenderBlock(w, clause); err != nil {
					return err
				}
			}
		}
		return err
	}, err
}
