package openapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// parameter is a parameter of a path or a query, prepared from the document.
// Kin decodes parameters through reflection and a map of the whole query, which
// costs a multiple of the rest of a read; here it is a comparison or a number.
type parameter struct {
	name     string
	place    string // path.sync_id, query.page
	kind     string // integer, boolean, string
	minimum  int64
	enum     []string
	nonEmpty bool
	required bool
}

// compileParameter refuses a schema with more rules than check covers.
func compileParameter(p *openapi3.Parameter) (parameter, error) {
	schema := p.Schema.Value
	compiled := parameter{
		name: p.Name, place: p.In + "." + p.Name, required: p.Required,
		nonEmpty: schema.MinLength > 0, minimum: -1 << 63,
	}
	if p.In != openapi3.ParameterInPath && p.In != openapi3.ParameterInQuery {
		return compiled, fmt.Errorf("stands in %s", p.In)
	}
	for _, kind := range []string{openapi3.TypeInteger, openapi3.TypeBoolean, openapi3.TypeString} {
		if schema.Type.Is(kind) {
			compiled.kind = kind
		}
	}
	if compiled.kind == "" || schema.Max != nil || schema.Pattern != "" {
		return compiled, fmt.Errorf("its schema is more than the check of parameters knows")
	}
	if schema.Min != nil {
		compiled.minimum = int64(*schema.Min)
	}
	for _, v := range schema.Enum {
		compiled.enum = append(compiled.enum, fmt.Sprint(v))
	}
	return compiled, nil
}

// check returns the problem of a value, "" when nothing is.
func (p *parameter) check(value string) string {
	switch {
	case p.kind == openapi3.TypeInteger:
		return p.checkInteger(value)
	case p.kind == openapi3.TypeBoolean && value != "true" && value != "false":
		return "must be true or false, is " + quoted(value)
	case len(p.enum) > 0 && !slices.Contains(p.enum, value):
		return oneOf(p.enum) + ", is " + quoted(value)
	case p.nonEmpty && value == "":
		return "must not be empty"
	}
	return ""
}

// checkInteger takes decimal digits only: strconv alone would let a plus pass,
// which is a space in a query.
func (p *parameter) checkInteger(value string) string {
	digits := strings.TrimPrefix(value, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "must be an integer, is " + quoted(value)
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return "must be an integer of at most 64 bits, is " + quoted(value)
	}
	if n < p.minimum {
		return fmt.Sprintf("must be at least %d, is %d", p.minimum, n)
	}
	return ""
}

// checkPath checks the parameters of the path.
func (o *Operation) checkPath(values map[string]string) (problems []RESTProblem) {
	for i := range o.path {
		p := &o.path[i]
		if message := p.check(values[p.name]); message != "" {
			problems = append(problems, RESTProblem{Place: p.place, Field: p.name, Message: message, Malformed: true})
		}
	}
	return problems
}

// checkQuery checks the query. An operation that the document gives neither
// parameters nor a 400 takes any.
func (o *Operation) checkQuery(raw string) (problems []RESTProblem) {
	if len(o.path) == 0 && len(o.query) == 0 && !o.HasBody {
		return nil
	}
	seen := make([]bool, len(o.query), 8) // on the stack: a read allocates nothing
	for raw != "" && len(problems) < maxProblems {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, errName := unescape(name)
		value, errValue := unescape(value)
		if errName != nil || errValue != nil || strings.Contains(pair, ";") {
			problems = append(problems, RESTProblem{Place: placeQuery, Message: "cannot be read: it has a wrong % escape or a semicolon", Malformed: true})
			continue
		}
		problems = o.checkPair(name, value, seen, problems)
	}
	for i := range o.query {
		if p := &o.query[i]; p.required && !seen[i] {
			problems = append(problems, RESTProblem{Place: p.place, Field: p.name, Message: "is required", Missing: true})
		}
	}
	return problems
}

// checkPair checks one name and value of the query.
func (o *Operation) checkPair(name, value string, seen []bool, problems []RESTProblem) []RESTProblem {
	i := slices.IndexFunc(o.query, func(p parameter) bool { return p.name == name })
	if i < 0 {
		field := place{{name: name}}.String()
		return append(problems, RESTProblem{Place: placeQuery + "." + field, Field: field, Unknown: true, Message: o.noParameter()})
	}
	p := &o.query[i]
	if seen[i] {
		return append(problems, RESTProblem{Place: p.place, Field: p.name, Message: "stands more than once in the query", Malformed: true})
	}
	seen[i] = true
	if message := p.check(value); message != "" {
		_, loose := parseBoolean(value)
		loose = loose && p.kind == openapi3.TypeBoolean
		problems = append(problems, RESTProblem{Place: p.place, Field: p.name, Message: message, Malformed: true, Loose: loose})
	}
	return problems
}

// parseBoolean reads a boolean of a query as clients of several languages write
// it: true and false with any capitals, 1 and 0. ok is false for
// anything else.
func parseBoolean(text string) (value, ok bool) {
	switch {
	case strings.EqualFold(text, "true"), text == "1":
		return true, true
	case strings.EqualFold(text, "false"), text == "0":
		return false, true
	}
	return false, false
}

// noParameter answers a misspelt parameter with those that there are.
func (o *Operation) noParameter() string {
	if len(o.query) == 0 {
		return "is unknown; the operation has no query parameters"
	}
	names := make([]string, len(o.query))
	for i, p := range o.query {
		names[i] = p.name
	}
	return "is unknown; the query parameters are " + strings.Join(names, ", ")
}

// unescape is url.QueryUnescape, which copies, only where there is something to
// undo.
func unescape(text string) (string, error) {
	if !strings.ContainsAny(text, "%+") {
		return text, nil
	}
	return url.QueryUnescape(text)
}
