package configfile

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// place is a value in a configuration, as messages name it: objects[0].fields[1].type.
var (
	place = regexp.MustCompile(`^([a-z_]+(?:\[\d+\]|\.[a-z_]+)*): `)
	steps = regexp.MustCompile(`[a-z_]+|\d+`)
)

// Located adds file, line and column to each line of err that begins with the place of a
// value that the file holds. It shows no line of the file, which may hold a secret.
// Otherwise err is returned itself.
func Located(file string, err error) error {
	src, failed := os.ReadFile(file)
	if failed != nil {
		return err
	}
	body, failed := parseYAML(file, src)
	if failed != nil || body == nil {
		return err
	}
	var all []error
	found := false
	for line := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "check configuration: "), "\n") {
		var tk *token.Token
		if at := place.FindStringSubmatch(line); at != nil {
			tk = find(body, steps.FindAllString(at[1], -1))
		}
		if tk == nil {
			all = append(all, errors.New(line))
			continue
		}
		found = true
		all = append(all, fmt.Errorf("%s:%d:%d: %s", file, tk.Position.Line, tk.Position.Column, line))
	}
	if !found {
		return err
	}
	if len(all) == 1 {
		return all[0]
	}
	return fmt.Errorf("check configuration:\n%w", errors.Join(all...))
}

// find gives where the value below node is, or the nearest thing around it; nil when the
// file does not have the first step.
func find(node ast.Node, path []string) *token.Token {
	var at *token.Token
	for _, step := range path {
		next := below(node, step)
		if next == nil {
			break
		}
		node, at = next, firstKey(next)
	}
	return at
}

// below is the value of a key, or an item of a list.
func below(node ast.Node, step string) ast.Node {
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			if v.Key.GetToken().Value == step {
				return v.Value
			}
		}
	case *ast.MappingValueNode:
		if n.Key.GetToken().Value == step {
			return n.Value
		}
	case *ast.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Values) {
			return n.Values[i]
		}
	}
	return nil
}
