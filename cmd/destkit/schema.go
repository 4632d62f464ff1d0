package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/suggest"
)

// schemas has one file for each schema, schemas/NAME.json. TestSchemas makes them from
// the types and flags that read and write these files.
//
//go:embed schemas/*.json
var schemas embed.FS

// newSchema prints the schemas of the files that destkit reads and writes.
func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of a file that destkit reads or writes",
		Long: `Print the JSON Schema of a file that destkit reads or writes; without NAME list
them. The schemas are in cmd/destkit/schemas, too. An editor with a YAML
language server completes keys and marks mistakes when this is the first line
of a file:

  # yaml-language-server: $schema=` + schemaURL("config") + `

What the schema says of keys is what destkit does: unknown ones are refused.`,
		Example: "  destkit schema\n  destkit schema config > destkit.schema.json",
		Args:    command.Arguments(0, 1, "a NAME such as config"),
		RunE: func(cmd *cobra.Command, names []string) error {
			all, err := readSchemas()
			if err != nil {
				return exit.Untested(err)
			}
			if len(names) == 0 {
				for _, s := range all {
					foreign.Printf(cmd.OutOrStdout(), "%-15s %s\n", s.name, s.title)
				}
				return nil
			}
			for _, s := range all {
				if s.name == names[0] {
					foreign.Print(cmd.OutOrStdout(), s.text)
					return nil
				}
			}
			return unknownSchema(all, names[0])
		},
	}
}

// schemaURL is where editors find a schema.
func schemaURL(name string) string {
	return "https://raw.githubusercontent.com/destkit/destkit/main/cmd/destkit/schemas/" + name + ".json"
}

type namedSchema struct{ name, title, text string }

// readSchemas returns the embedded schemas by name.
func readSchemas() ([]namedSchema, error) {
	files, err := fs.Glob(schemas, "schemas/*.json")
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	var all []namedSchema
	for _, file := range files {
		text, err := fs.ReadFile(schemas, file)
		if err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
		var head struct {
			Title string `json:"title"`
		}
		if err := json.Unmarshal(text, &head); err != nil {
			return nil, fmt.Errorf("decode schema %s: %w", file, err)
		}
		all = append(all, namedSchema{strings.TrimSuffix(path.Base(file), ".json"), head.Title, string(text)})
	}
	return all, nil
}

func unknownSchema(all []namedSchema, name string) error {
	names := lists.Of(all, func(s namedSchema) string { return s.name })
	if near := suggest.Word(name, names); near != "" {
		return exit.Usagef("unknown schema %q, did you mean %q?", name, near)
	}
	return exit.Usagef("unknown schema %q; schemas are %s", name, strings.Join(names, ", "))
}
