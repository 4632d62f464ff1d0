// Package configfile reads the YAML files of commands: a configuration whose keys are
// the flags, waivers, hooks. Every error is a usage error and names the line and column.
package configfile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/yamldoc"
)

// configuration is one configuration file on its way into the flags of a
// command.
type configuration struct {
	file   string
	src    []byte
	places places
	others []string // keys that the file may have for other commands
	set    []string // flags that have their values from the file
}

// Apply sets every flag of cmd that the file names and the command line does not, and
// returns the fixtures. There is no second list of settings: the flags themselves are
// the keys, so a new flag can be in the file at once. Keys of others are passed over:
// they are for another command.
func Apply(cmd *cobra.Command, file string, others ...string) (Settings, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return Settings{}, exit.Usage(fmt.Errorf("read configuration: %w", err))
	}
	c := &configuration{file: file, src: src, places: places{}, others: others}
	body, err := parseYAML(file, src)
	if err != nil || body == nil {
		return Settings{}, err
	}
	entries, err := c.entries(body)
	if err != nil {
		return Settings{}, err
	}
	var fixtures map[string]conformance.Fixture
	for _, entry := range entries {
		if entry.key == "fixtures" {
			if fixtures, err = c.fixtures(entry.value); err != nil {
				return Settings{}, err
			}
			continue
		}
		if err := c.setFlag(cmd, entry); err != nil {
			return Settings{}, err
		}
	}
	return Settings{Fixtures: fixtures, file: file, set: c.set, places: c.places}, nil
}

// setFlag gives one entry to the flag of that name.
func (c *configuration) setFlag(cmd *cobra.Command, entry yamlEntry) error {
	if slices.Contains(c.others, entry.key) {
		return nil
	}
	flag := cmd.Flags().Lookup(entry.key)
	if flag == nil || !Configurable(flag) {
		keys := []string{"fixtures"}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if Configurable(f) {
				keys = append(keys, f.Name)
			}
		})
		return positionError(c.file, c.src, entry.at, yamldoc.UnknownKey(entry.key, keys))
	}
	values, err := c.scalars(entry.value)
	if err != nil {
		return err
	}
	if flag.Changed {
		return nil // the command line wins
	}
	// A repeatable flag takes a list or a single value, any other one value.
	_, repeatable := flag.Value.(pflag.SliceValue)
	if len(values) > 1 && !repeatable {
		return positionError(c.file, c.src, entry.value.GetToken(), fmt.Sprintf("%s takes one value, not a list", entry.key))
	}
	for _, value := range values {
		if slices.Contains(besides, entry.key) && value != "" && !filepath.IsAbs(value) {
			value = filepath.Join(filepath.Dir(c.file), value)
		}
		if err := flag.Value.Set(value); err != nil {
			return positionError(c.file, c.src, entry.value.GetToken(), fmt.Sprintf("%s: %q is not %s", entry.key, value, command.FlagKind(flag)))
		}
	}
	if len(values) > 0 {
		c.set = append(c.set, entry.key)
		at := yamldoc.At(c.file, c.src, entry.value.GetToken(), "")
		at.Excerpt = "" // the value may be a secret
		c.places["--"+entry.key] = at
	}
	return nil
}

// besides are the flags whose files are looked for beside the file that names them.
var besides = []string{"hooks", "waivers", "features", "tls-roots", "data", "template"}

// Configurable leaves out the flags that make no sense in a file.
func Configurable(f *pflag.Flag) bool { return f.Name != "config" && f.Name != "help" }

// yamlEntry is one key of a mapping with its value and its place.
type yamlEntry struct {
	key   string
	value ast.Node
	at    *token.Token
}

// entries lists the keys of a mapping in their order; a key given twice is
// refused by the parser already.
func (c *configuration) entries(node ast.Node) ([]yamlEntry, error) {
	var values []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, positionError(c.file, c.src, node.GetToken(), "expected a mapping of keys to values")
	}
	var entries []yamlEntry
	seen := map[string]bool{}
	for _, v := range values {
		at := v.Key.GetToken()
		if seen[at.Value] {
			return nil, positionError(c.file, c.src, at, fmt.Sprintf("the key %q stands here a second time", at.Value))
		}
		seen[at.Value] = true
		entries = append(entries, yamlEntry{at.Value, v.Value, at})
	}
	return entries, nil
}

// scalars returns a scalar, or the scalars of a list, as the text that a
// command line would have.
func (c *configuration) scalars(node ast.Node) ([]string, error) {
	switch n := node.(type) {
	case *ast.NullNode:
		return nil, nil
	case *ast.SequenceNode:
		var all []string
		for _, item := range n.Values {
			if _, nested := item.(*ast.SequenceNode); nested {
				return nil, positionError(c.file, c.src, item.GetToken(), "a list in a list")
			}
			values, err := c.scalars(item)
			if err != nil {
				return nil, err
			}
			all = append(all, values...)
		}
		return all, nil
	case *ast.StringNode:
		return []string{n.Value}, nil
	case *ast.LiteralNode:
		return []string{n.Value.Value}, nil
	case *ast.BoolNode:
		return []string{strconv.FormatBool(n.Value)}, nil
	case *ast.IntegerNode, *ast.FloatNode:
		return []string{n.GetToken().Value}, nil
	default:
		return nil, positionError(c.file, c.src, node.GetToken(), "expected a value or a list of values")
	}
}

// fixtures reads {OBJECT: {FIELD: VALUE, bad: {FIELD: VALUE}, hidden: [FIELD]}}. Values become
// JSON with the digits of the file: 9007199254740993 stays exact.
func (c *configuration) fixtures(node ast.Node) (map[string]conformance.Fixture, error) {
	objects, err := c.entries(node)
	if err != nil {
		return nil, err
	}
	all := map[string]conformance.Fixture{}
	for _, object := range objects {
		fields, err := c.entries(object.value)
		if err != nil {
			return nil, err
		}
		path := "fixtures." + object.key
		c.place(path, object)
		fixture := conformance.Fixture{Fields: map[string]string{}, Bad: map[string]string{}}
		for _, field := range fields {
			switch field.key {
			case "bad":
				err = c.fixtureFields(path+".bad", field.value, fixture.Bad)
			case "hidden":
				c.place(path+".hidden", field)
				fixture.Hidden, err = c.scalars(field.value)
			default:
				c.place(path+"."+field.key, field)
				fixture.Fields[field.key], err = c.json(field.value)
			}
			if err != nil {
				return nil, err
			}
		}
		all[object.key] = fixture
	}
	return all, nil
}

// place remembers where an entry is.
func (c *configuration) place(path string, entry yamlEntry) {
	c.places[path] = yamldoc.At(c.file, c.src, entry.at, "")
}

func (c *configuration) fixtureFields(path string, node ast.Node, into map[string]string) error {
	fields, err := c.entries(node)
	if err != nil {
		return err
	}
	for _, field := range fields {
		c.place(path+"."+field.key, field)
		if into[field.key], err = c.json(field.value); err != nil {
			return err
		}
	}
	return nil
}

// json writes a YAML value as JSON.
func (c *configuration) json(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.NullNode:
		return "null", nil
	case *ast.SequenceNode:
		var items []string
		for _, value := range n.Values {
			item, err := c.json(value)
			if err != nil {
				return "", err
			}
			items = append(items, item)
		}
		return "[" + strings.Join(items, ",") + "]", nil
	case *ast.StringNode, *ast.LiteralNode:
		values, err := c.scalars(n)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(values[0])
		return string(text), err
	}
	values, err := c.scalars(node)
	if err != nil {
		return "", err
	}
	// YAML numbers such as 0x1F, 1_000 or .inf are not JSON numbers.
	if !json.Valid([]byte(values[0])) {
		return "", positionError(c.file, c.src, node.GetToken(), fmt.Sprintf("%s cannot be written as JSON; put quotes around it if it is text", values[0]))
	}
	return values[0], nil
}
