package configfile

import (
	"fmt"
	"os"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/yamldoc"
)

// WaiverFile is a file of accepted failures.
type WaiverFile struct {
	Waivers []conformance.Waiver `yaml:"waivers"`
}

// ReadWaivers reads a waiver file: a list under `waivers:`. The judge checks
// the required fields of a waiver, and whether its check exists and still
// fails.
func ReadWaivers(file string) ([]conformance.Waiver, error) {
	var content WaiverFile
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Usagef("read waivers: %w", err)
	}
	if err := Decode(file, src, &content); err != nil {
		return nil, err
	}
	body, err := parseYAML(file, src)
	if err != nil {
		return nil, err
	}
	return content.Waivers, placeWaivers(file, src, body, content.Waivers)
}

// placeWaivers notes the line of each waiver for messages, and refuses an
// incomplete one, with its place in the file.
func placeWaivers(file string, src []byte, body ast.Node, waivers []conformance.Waiver) error {
	var places []*token.Token
	ast.Walk(visitor(func(node ast.Node) bool {
		list, ok := node.(*ast.SequenceNode)
		if ok {
			for _, item := range list.Values {
				places = append(places, firstKey(item))
			}
		}
		return !ok
	}), body)
	if len(places) != len(waivers) {
		return nil // an alias replaces the list
	}
	for i, place := range places {
		w := &waivers[i]
		w.Source = fmt.Sprintf("%s:%d", file, place.Position.Line)
		switch {
		case w.Check == "":
			return positionError(file, src, place, "the waiver has no check, such as check: RES-002")
		case w.Reason == "":
			return positionError(file, src, place, "the waiver of "+w.Check+" has no reason, such as reason: mended in the next release")
		}
	}
	return nil
}

// visitor walks into a node while it returns true.
type visitor func(ast.Node) bool

func (v visitor) Visit(node ast.Node) ast.Visitor {
	if v(node) {
		return v
	}
	return nil
}

// firstKey is where a mapping begins: its own token is the colon behind its first
// key.
func firstKey(node ast.Node) *token.Token {
	switch n := node.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return node.GetToken()
}

// ReadHooks reads the file of the author's hooks. Each has a URL or a command.
func ReadHooks(file string) (conformance.Hooks, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return conformance.Hooks{}, exit.Usagef("read hooks: %w", err)
	}
	return DecodeHooks(file, src)
}

// DecodeHooks is ReadHooks on bytes; file is used in messages only.
func DecodeHooks(file string, src []byte) (conformance.Hooks, error) {
	var hooks conformance.Hooks
	if err := Decode(file, src, &hooks); err != nil {
		return hooks, err
	}
	fault := func(message string, path ...string) error {
		body, err := parseYAML(file, src)
		if err != nil {
			return err
		}
		return positionError(file, src, placeOf(body, path), message)
	}
	for _, h := range []struct {
		name string
		spec conformance.HookSpec
	}{
		{"cleanup", hooks.Cleanup},
		{"restart", hooks.Restart},
		{"alter_schema", hooks.AlterSchema},
		{"break_downstream", hooks.BreakDownstream},
		{"rotate_token", hooks.RotateToken},
	} {
		if h.spec.URL != "" && len(h.spec.Command) > 0 {
			return hooks, fault(fmt.Sprintf("the hook %s has both a url and a command; give one", h.name), h.name)
		}
		if h.spec.URL == "" {
			continue
		}
		if err := command.CheckURL("hook "+h.name, h.spec.URL); err != nil {
			return hooks, fault(err.Error(), h.name, "url")
		}
	}
	if hooks.Timeout < 0 {
		return hooks, fault("timeout must be 0 or more", "timeout")
	}
	return hooks, nil
}

// placeOf is where the value of a key begins, or the key itself where the value is a
// mapping; path leads to it from the top.
func placeOf(node ast.Node, path []string) (place *token.Token) {
	for _, key := range path {
		var values []*ast.MappingValueNode
		switch n := node.(type) {
		case *ast.MappingNode:
			values = n.Values
		case *ast.MappingValueNode:
			values = []*ast.MappingValueNode{n}
		}
		at := slices.IndexFunc(values, func(v *ast.MappingValueNode) bool { return v.Key.GetToken().Value == key })
		if at < 0 {
			return place // an alias replaces it
		}
		place, node = values[at].Key.GetToken(), values[at].Value
		if _, scalar := node.(ast.ScalarNode); scalar {
			place = node.GetToken()
		}
	}
	return place
}

// Read decodes one YAML file into dst, a pointer to a struct, strictly (see
// yamldoc.Decode). An empty file leaves dst as it was. Every error is a usage
// error.
func Read(file string, dst any) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return exit.Usage(fmt.Errorf("read file: %w", err))
	}
	return Decode(file, src, dst)
}

// Decode is Read on bytes; file is used in messages only.
func Decode(file string, src []byte, dst any) error {
	if err := yamldoc.Decode(file, src, dst); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// parseYAML returns the body of the only document of src, nil when there is
// none.
func parseYAML(file string, src []byte) (ast.Node, error) {
	body, err := yamldoc.Parse(file, src)
	if err != nil {
		return nil, exit.Usage(err)
	}
	return body, nil
}

// positionError is a usage error that points at one token.
func positionError(file string, src []byte, tk *token.Token, message string) error {
	return exit.Usage(yamldoc.At(file, src, tk, message))
}
