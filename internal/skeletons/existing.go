package skeletons

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// Endpoint is what an endpoint that exists already says of itself.
type Endpoint struct {
	TokenEnv string // environment variable of the token, "" without one
	Objects  []Object
}

// Object is one object of it.
type Object struct {
	rpc.Object
	Operations []string
	Fields     []rpc.Field
}

// Configuration is what the judge needs to know of it, with a place for each value
// that may have to be a certain one. Nothing is permitted in it: whoever owns the
// endpoint takes the marks of a comment away.
func (e Endpoint) Configuration() (File, error) {
	content, err := fill("existing/destkit.yaml", e)
	return File{"destkit.yaml", content}, err
}

// Hooks is a file of hooks to fill in.
func Hooks() (File, error) {
	content, err := tree.ReadFile("common/existing/hooks.yaml")
	return File{"hooks.yaml", content}, err
}

// Names lists the objects as YAML.
func (e Endpoint) Names() string {
	names := make([]string, len(e.Objects))
	for i, o := range e.Objects {
		names[i] = quoted(o.APIName)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// Quoted writes text as YAML: in double quotes, as JSON is.
func (Endpoint) Quoted(text string) string { return quoted(text) }

// quoted is text in double quotes, in which YAML reads what JSON does. It has one
// line, for YAML too, so no name from outside ends a comment.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return `""` // text always can be written
	}
	return strings.ReplaceAll(string(b), "\u0085", `\u0085`) // the next line, which JSON leaves as it is
}

// Kind is the type of a field in a comment.
func (Endpoint) Kind(f rpc.Field) string { return strings.Trim(quoted(f.Type), `"`) }

// Value is an example of what a field takes.
func (Endpoint) Value(f rpc.Field) string {
	value := map[string]string{
		"boolean": "true", "decimal": `"12.50"`, "float": "0.5", "integer": "42",
		"date": `"2021-03-29"`, "date_time": `"2021-03-29T16:32:23Z"`,
	}[f.Type]
	value = cmp.Or(value, `"text {n}"`)
	if f.Array {
		return "[" + value + "]"
	}
	return value
}

// Bad is a field with a value that it must refuse, as YAML; "" where none is known.
func (e Endpoint) Bad(o Object) string {
	for _, f := range o.Fields {
		if f.Identifier || f.Array {
			continue
		}
		switch f.Type {
		case "date":
			return quoted(f.APIName) + `: "2023-02-30"`
		case "integer", "float", "decimal":
			return quoted(f.APIName) + `: "not a number"`
		}
	}
	return ""
}
