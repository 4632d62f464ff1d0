package liquid

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/parser"
	"github.com/osteele/liquid/render"
)

// reads is what a template uses: columns of the record, other variables, and
// the variables that it defines itself. Where it does so is not looked at: a
// branch may come first.
type reads struct {
	columns map[string]bool
	all     bool
	used    []mention
	defined map[string]bool
	scope   map[string]any
	failed  error
}

// mention is a variable and the line of its first use.
type mention struct {
	name string
	line int
}

var (
	// The words of an expression: texts, numbers, filters, and variables with one
	// step into them. A word after a dot is no variable.
	wordPattern = regexp.MustCompile(`"(?:\\.|[^"\\])*"|'[^']*'|\.\s*[A-Za-z_][\w-]*\??|\|\s*\w+|[A-Za-z_][\w-]*\??:?|-?\d+(?:\.\d+)?`)
	columnName  = regexp.MustCompile(`^(?:\.\s*([A-Za-z_][\w-]*\??)|\[\s*(?:"([^"\\]*)"|'([^']*)')\s*\])`)
	unclosed    = regexp.MustCompile(`\{[{%]`)
	// reserved words are no variables.
	reserved = strings.Fields("true false nil null empty blank and or contains in reversed continue")
)

// condition brings a condition into the library's form: and and or bind from the
// right, and constants become variables, since the library compares them in its own
// way and takes numbers of JSON for texts.
func (r *reads) condition(markup string) (expressions.Expression, error) {
	joined := 0
	markup = wordPattern.ReplaceAllStringFunc(markup, func(word string) string {
		switch c := word[0]; {
		case word == "and", word == "or":
			joined++
			return word + " ("
		case c == '"': // whose backslashes are doubled
			word = r.constant(strings.ReplaceAll(word[1:len(word)-1], `\\`, `\`))
		case c == '\'':
			word = r.constant(word[1 : len(word)-1])
		case c == '-' || c >= '0' && c <= '9':
			word = r.constant(json.Number(word))
		}
		return word
	})
	return expressions.Parse(strings.ReplaceAll(markup, "<>", "!=") + strings.Repeat(" )", joined))
}

// constant makes a variable of a constant.
func (r *reads) constant(value any) string {
	name := fmt.Sprintf("constant_%d", len(r.scope))
	r.scope[name] = boxed{value, nil}
	return name
}

// deepest is the depth to which blocks may be nested.
const deepest = 100

// walk goes through the compiled template. It takes white space out where a dash
// requires it, as the library would of values too, and the text out of blocks that
// print nothing but white space: they print nothing, as in the published language.
func (r *reads) walk(nodes []render.Node, depth int) (blank bool) {
	if blank = true; depth > deepest {
		r.fail(syntaxError(1, errors.New("Nesting too deep"))) //nolint:staticcheck // published
		return blank
	}
	for i, node := range nodes {
		switch n := node.(type) {
		case *render.TrimNode:
			nodes[i] = &render.TextNode{}
			if n.TrimDirection == parser.Left {
				trim(nodes, i-1, strings.TrimRight)
			} else {
				trim(nodes, i+1, strings.TrimLeft)
			}
		case *render.SeqNode:
			r.walk(n.Children, depth)
		case *render.TextNode:
			if at := unclosed.FindStringIndex(n.Source); at != nil {
				r.fail(syntaxError(n.SourceLoc.LineNo+strings.Count(n.Source[:at[0]], "\n"), errors.New("a tag or an output is not closed")))
			}
			blank = blank && strings.TrimSpace(n.Source) == ""
		case *render.ObjectNode:
			r.note("", n.Args, n.SourceLoc.LineNo)
			blank = false
		case *render.RawNode:
			blank = false
		case *render.TagNode:
			r.note(n.Name, n.Args, n.SourceLoc.LineNo)
			blank = blank && slices.Contains([]string{"assign", "break", "continue"}, n.Name)
		case *render.BlockNode:
			r.note(n.Name, n.Args, n.SourceLoc.LineNo)
			inside := r.walk(n.Body, depth+1)
			bodies := [][]render.Node{n.Body}
			for _, clause := range n.Clauses {
				r.note(clause.Name, clause.Args, clause.SourceLoc.LineNo)
				inside = r.walk(clause.Body, depth+1) && inside
				bodies = append(bodies, clause.Body)
			}
			for _, body := range bodies {
				for i := range body {
					if _, isText := body[i].(*render.TextNode); isText && inside && n.Name != "capture" && n.Name != "tablerow" {
						body[i] = &render.TextNode{}
					}
				}
			}
			blank = blank && (inside && n.Name != "tablerow" || n.Name == "capture")
		}
	}
	return blank
}

// trim cuts white space off a node that is text.
func trim(nodes []render.Node, at int, cut func(text, white string) string) {
	if at >= 0 && at < len(nodes) {
		if text, isText := nodes[at].(*render.TextNode); isText {
			text.Source = cut(text.Source, white)
		}
	}
}

// fail keeps the first mistake.
func (r *reads) fail(err *Error) {
	if r.failed == nil {
		r.failed = err
	}
}

// note reads the arguments of a tag.
func (r *reads) note(tag, arguments string, line int) {
	switch tag {
	case "assign", "for", "tablerow":
		name, rest, _ := strings.Cut(arguments, map[bool]string{true: "=", false: " "}[tag == "assign"])
		r.defined[variable(name)] = true
		r.defined[map[string]string{"for": "forloop", "tablerow": "tablerowloop"}[tag]] = true
		arguments = rest
	case "capture", "increment", "decrement":
		r.defined[variable(arguments)] = true
		return
	}
	for _, at := range wordPattern.FindAllStringIndex(arguments, -1) {
		word := arguments[at[0]:at[1]]
		switch c := word[0] | 0x20; {
		case word[0] == '|':
			if name := strings.TrimSpace(word[1:]); filters[name].apply == nil {
				r.fail(valueError(line, fmt.Errorf("undefined filter %s", name)))
			}
		case c != '_'|0x20 && (c < 'a' || c > 'z') || strings.HasSuffix(word, ":") || slices.Contains(reserved, word):
		case word != recordName:
			if !slices.ContainsFunc(r.used, func(m mention) bool { return m.name == word }) {
				r.used = append(r.used, mention{word, line})
			}
		default:
			// All but a name may be any column, and record.size their number.
			m := columnName.FindStringSubmatch(arguments[at[1]:])
			if r.all = r.all || m == nil || slices.Contains([]string{"size", "first", "last"}, m[1]); m != nil {
				r.columns[m[1]+m[2]+m[3]] = true
			}
		}
	}
}
