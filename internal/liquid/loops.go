package liquid

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/render"
	"github.com/osteele/liquid/values"
)

// goOn is the value of continue: the offset of a loop that goes on where the last
// one of its name has stopped.
type goOn struct{}

// compileLoop is for and tablerow, which go through a list.
func compileLoop(block render.BlockNode) (action, error) {
	statement, err := expressions.ParseStatement(expressions.LoopStatementSelector, block.Args)
	if err != nil {
		return nil, err
	}
	f := statement.Loop
	_, name, _ := strings.Cut(block.Args, " in ")
	name, _, _ = strings.Cut(f.Variable+"-"+name, " ")
	return func(w io.Writer, ctx render.Context) error {
		r := runOf(ctx)
		over, err := evaluate(ctx, f.Expr)
		offset, errOffset := evaluate(ctx, f.Offset)
		limit, errLimit := evaluate(ctx, f.Limit)
		if err := errors.Join(err, errOffset, errLimit); err != nil {
			return err
		}
		if offset == (goOn{}) {
			offset = r.turns[name]
		}
		items, from, err := r.part(over, offset, limit)
		if err != nil {
			return err
		}
		set(&r.turns, name, from+len(items))
		if f.Reversed {
			slices.Reverse(items)
		}
		if len(items) == 0 && len(block.Clauses) > 0 {
			return ctx.RenderBlock(w, block.Clauses[len(block.Clauses)-1])
		}
		l := &loop{object: "forloop", name: name, variable: f.Variable, columns: len(items) + 1, items: items}
		if block.Name == "for" {
			return l.each(ctx, func(int) error { return ctx.RenderChildren(w) })
		}
		columns, err := evaluate(ctx, f.Cols)
		if err != nil || over == nil {
			return err
		}
		l.object = "tablerowloop"
		if columns != nil {
			l.columns = max(1, toNumber(columns).cut())
		}
		return l.table(ctx, w)
	}, nil
}

// loop is one that goes on.
type loop struct {
	object, name, variable string
	columns                int
	items                  []any
}

// table writes cells in rows of HTML, byte for byte as the published language does.
func (l *loop) table(ctx render.Context, w io.Writer) error {
	start := "<tr class=\"row1\">\n"
	err := l.each(ctx, func(i int) error {
		_, err := fmt.Fprintf(w, `%s<td class="col%d">`, start, i%l.columns+1)
		if err != nil {
			return err
		}
		if start = "</td>"; (i+1)%l.columns == 0 && i+1 < len(l.items) {
			start += fmt.Sprintf("</tr>\n<tr class=\"row%d\">", (i+1)/l.columns+1)
		}
		return ctx.RenderChildren(w)
	})
	if err == nil {
		_, err = io.WriteString(w, start+"</tr>\n")
	}
	return err
}

// part gives a copy of the items that a loop goes through, and where it begins. A
// text is one item, whatever limit and offset say, a map its pairs in the order of
// the keys.
func (r *run) part(over, offset, limit any) (items []any, from int, err error) {
	switch v := over.(type) {
	case string:
		if v != "" {
			return []any{v}, 0, nil
		}
	case []any:
		items = v
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, []any{key, v[key]})
		}
	case values.Range:
		items, err = r.items(v)
	}
	to := len(items)
	if offset != nil && err == nil {
		from, err = toInteger(offset)
	}
	if limit != nil && err == nil {
		var n int
		n, err = toInteger(limit)
		to = min(to, from+n)
	}
	from = max(0, from)
	if from >= to || err != nil {
		return nil, from, err
	}
	return slices.Clone(items[from:to]), from, r.take(itemCost * (to - from))
}

// each prints the body of a loop once for each item. Variables that assign sets
// in it live on outside.
func (l *loop) each(ctx render.Context, print func(i int) error) error {
	r, n := runOf(ctx), len(l.items)
	outer := map[string]any{l.object: ctx.Get(l.object), l.variable: ctx.Get(l.variable)}
	defer func() { maps.Copy(ctx.Bindings(), outer) }()
	parent, _ := outer[l.object].(boxed)
	if _, isUnknown := parent.v.(unknown); isUnknown {
		parent.v = nil
	}
	told := object{"name": l.name, "parentloop": parent.v, "length": n}
	ctx.Set(l.object, boxed{told, nil})
	for i, item := range l.items {
		if err := r.iterate(1, r.length); err != nil {
			return err
		}
		column := i % l.columns
		told["index"], told["index0"], told["first"] = i+1, i, i == 0
		told["rindex"], told["rindex0"], told["last"] = n-i, n-i-1, i == n-1
		told["row"], told["col"], told["col0"] = i/l.columns+1, column+1, column
		told["col_first"], told["col_last"] = column == 0, column == l.columns-1
		ctx.Set(l.variable, boxed{item, r})
		if err := print(i); errors.Is(err, errBreak) {
			return nil
		} else if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}
