package liquid

import (
	"regexp"
	"sync"
	"time"

	library "github.com/osteele/liquid"
)

// A template is rendered with the library where it surely prints what the engine
// prints, and with the engine otherwise. The check is conservative: texts, outputs
// of columns through filters of ours that make texts, and conditions of one or two
// comparisons; no whitespace control, no loop, no variable. Where the library
// fails, or a value is of a kind that it prints in its own way, the engine renders
// the template again: errors are always the engine's.

// plainToken is a tag or an output that both read alike: on one line, without
// whitespace control, brackets of other tokens or escapes.
var plainToken = regexp.MustCompile(`^(?:\{\{[^-{}%\\\x00-\x1f][^{}%\\\x00-\x1f]*[^-{}%\\\x00-\x1f]\}\}|\{% *\w+(?: (?:[^{}%\\\x00-\x1f]*[^-{}%\\\x00-\x1f])?)?%\})$`)

// plainColumn is a name that is no other word to the library.
var plainColumn = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_ ]*$`)

// textFiltersOfBoth take a text or nil and make a text that is not much longer.
// They are the same functions in both, as the library has them from here.
var textFiltersOfBoth = []string{
	"append", "base64", "capitalize", "default", "downcase", "lstrip", "prepend", "remove", "remove_first",
	"rstrip", "sha256", "size", "squish", "strip", "strip_newlines", "upcase",
}

// mostFilters of one output: each may make its text longer.
const mostFilters = 4

// agrees reports whether the library prints all of a body as the engine does.
func (b *body) agrees() bool {
	for _, p := range b.pieces {
		if !p.agrees {
			return false
		}
	}
	return true
}

// agreeing reports whether an if with its branches means the same to both: one
// else at most, at the end.
func agreeing(branches []branch, bodies []*body) bool {
	for i, branch := range branches {
		if !bodies[i].agrees() || branch.condition == nil && i != len(branches)-1 {
			return false
		}
		// The library reads chains from the left, the published language from the
		// right: two comparisons are the same to both.
		for c, n := branch.condition, 1; c != nil; c, n = c.next, n+1 {
			if n > 2 || !c.agrees() {
				return false
			}
		}
	}
	return true
}

// agrees is about one comparison. Those by order differ: the library compares
// whatever it is given.
func (c *condition) agrees() bool {
	switch c.operator {
	case "":
		return isPlain(c.left)
	case "==", "!=":
		return isPlain(c.left) && isPlain(c.right)
	case "contains":
		text, ok := c.right.(literal)
		_, isText := text.is.(string)
		return isColumn(c.left) && ok && isText
	}
	return false
}

// agrees is about an output.
func (f *filtered) agrees() bool {
	if f.start == nil || !isPlain(f.start) || len(f.filters) > mostFilters {
		return false
	}
	for _, call := range f.filters {
		if !shareFilter(call) {
			return false
		}
	}
	return true
}

// shareFilter reports whether the library calls a filter as the engine does.
func shareFilter(call filterCall) bool {
	_, known := sharedFilters()[call.name]
	if !known || call.named != nil || filters[call.name].checkCount(len(call.args)) != nil {
		return false
	}
	for _, argument := range call.args {
		if !isPlain(argument) {
			return false
		}
	}
	return true
}

// isPlain is a column, or a constant that both write and read alike.
func isPlain(e expression) bool {
	constant, ok := e.(literal)
	if !ok {
		return isColumn(e)
	}
	const mostDigits = 1_000_000_000_000_000
	switch v := constant.is.(type) {
	case nil, bool, string:
		return true
	case int64:
		return -mostDigits < v && v < mostDigits
	}
	return false
}

// isColumn is record.name or record["name"].
func isColumn(e expression) bool {
	l, ok := e.(lookup)
	if !ok || l.root != (literal{recordName}) || len(l.path) != 1 || l.path[0].command {
		return false
	}
	key, ok := l.path[0].key.(literal)
	name, isText := key.is.(string)
	return ok && isText && plainColumn.MatchString(name)
}

// sharedFilters are those of both as the library takes them. None of them needs
// anything of the rendering. The library calls functions with as many arguments as
// they have; those with a choice get what is written.
var sharedFilters = sync.OnceValue(func() map[string]any {
	all := map[string]any{}
	for _, name := range textFiltersOfBoth {
		f := filters[name]
		switch {
		case f.most == 0:
			all[name] = func(input any) (any, error) { return f.apply(nil, liquidValue(input), nil) }
		case f.least == 1 && f.most == 1:
			all[name] = func(input, argument any) (any, error) {
				return f.apply(nil, liquidValue(input), []any{liquidValue(argument)})
			}
		default:
			all[name] = func(input any, arguments ...any) (any, error) {
				for i := range arguments {
					arguments[i] = liquidValue(arguments[i])
				}
				return f.apply(nil, liquidValue(input), arguments)
			}
		}
	}
	return all
})

// engine is the library with the filters of both.
var engine = sync.OnceValue(func() *library.Engine {
	e := library.NewEngine()
	e.StrictVariables()
	for name, filter := range sharedFilters() {
		e.RegisterFilter(name, filter)
	}
	return e
})

// shared is a template that the library renders too.
type shared struct {
	template *library.Template
	columns  []string
	length   int
}

// share hands a template to the library; nil where it may differ.
func share(text string, t *Template) *shared {
	if t.reads.all || !t.document.agrees() {
		return nil
	}
	template, err := engine().ParseString(text)
	if err != nil {
		return nil
	}
	return &shared{template, t.Columns(), len(text)}
}

// render prints a record with the library; ok is false where the engine has to.
func (s *shared) render(record map[string]any, limits Limits) (text string, ok bool) {
	if s == nil {
		return "", false
	}
	columns, size := make(map[string]any, len(s.columns)), 1
	for _, name := range s.columns {
		given, has := record[name]
		if !has {
			return "", false
		}
		value := liquidValue(given)
		switch v := value.(type) {
		case nil, bool, int64:
			size += 20 // the longest of them
		case string:
			size += len(v)
		default:
			return "", false
		}
		columns[name] = value
	}
	// The library knows no limits, so it is not asked where they could matter: a
	// template names a column once in eight characters at most.
	limits.Now = time.Unix(0, 0) // nothing of both asks for the time
	limits = limits.withDefaults()
	if s.length > min(limits.Output, limits.Work)/size || s.length > limits.Iterations {
		return "", false
	}
	text, err := s.template.RenderString(library.Bindings{recordName: columns})
	return text, err == nil
}
