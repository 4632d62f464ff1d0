package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server"
)

// readers decode the files that people write as the commands do, by the names of their
// schemas.
var readers = map[string]func(file string) error{
	"config": func(file string) error { _, err := configfile.Apply(newConform(), file); return err },
	"config-service": func(file string) error {
		_, err := configfile.Apply(newConformService(), file)
		return err
	},
	"destsim": func(file string) error { return configfile.Read(file, &destsim.Config{}) },
	"waivers": validateWaivers,
	"hooks":   validateHooks,
	"seed":    validateSeed,
	"connector": func(file string) error {
		return configfile.Read(file, reflect.New(server.Documents()["connector"]).Interface())
	},
}

// newValidate looks at files without calling an endpoint: before a commit, say.
func newValidate() *cobra.Command {
	var as string
	kinds := strings.Join(slices.Sorted(maps.Keys(readers)), ", ")
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check configuration, waivers, seeds and hooks",
		Long: `Check files that you write for destkit, without calling an endpoint: each is
read as the command that uses it reads it. Unknown keys, wrong values, and
waivers of unknown checks or past their date are errors, with their place. With
a configuration, the files of waivers and hooks that it names are checked, too.

What a file is, its first lines say, as in every file that destkit writes:

  # yaml-language-server: $schema=URL/waivers.json

Else destkit.yaml is a configuration, and for other names --as says it. Kinds:
` + kinds + `.`,
		Example: "  destkit validate destkit.yaml\n  destkit validate --as waivers known-failures.yaml",
		Args:    command.Arguments(1, -1, "a FILE such as destkit.yaml"),
		RunE: func(cmd *cobra.Command, files []string) error {
			if _, known := readers[as]; as != "" && !known {
				return exit.Usagef("--as %q is no kind of file%s; kinds are %s", as, meant(as), kinds)
			}
			var all error
			for _, file := range files {
				kind, err := kindOf(file, as)
				if err == nil {
					err = validate(kind, file)
				}
				if err != nil {
					all = errors.Join(all, err)
					continue
				}
				foreign.Printf(cmd.OutOrStdout(), "%s: valid (%s)\n", file, kind)
			}
			if all != nil {
				return exit.Usage(all)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the `KIND` of every FILE, such as waivers")
	return cmd
}

// meant suggests a kind.
func meant(kind string) string {
	if near := suggest.Word(kind, slices.Sorted(maps.Keys(readers))); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}

// namedSchemaLine names the schema of a file for editors.
var namedSchemaLine = regexp.MustCompile(`(?m)^#\s*yaml-language-server:\s*\$schema=(?:\S*/)?([\w-]+)\.json\s*$`)

// kindOf selects the reader of a file.
func kindOf(file, as string) (string, error) {
	if as != "" {
		return as, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", exit.Usagef("read file: %w", err)
	}
	if m := namedSchemaLine.FindSubmatch(text); m != nil {
		kind := string(m[1])
		if _, known := readers[kind]; !known {
			return "", exit.Usagef("%s names the schema %q, and files of that kind are not written by hand%s", file, kind, meant(kind))
		}
		return kind, nil
	}
	if name := filepath.Base(file); name == "destkit.yaml" || name == "destkit.yml" {
		return "config", nil
	}
	return "", exit.Usagef("%s does not say what it is: name it with --as KIND, such as --as waivers, or begin the file with\n"+
		"# yaml-language-server: $schema=%s", file, schemaURL("waivers"))
}

// validate reads a file and, of a configuration, the files that it names.
func validate(kind, file string) error {
	if err := readers[kind](file); err != nil || kind != "config" && kind != "config-service" {
		return err
	}
	cmd := newConform()
	if kind == "config-service" {
		cmd = newConformService()
	}
	if _, err := configfile.Apply(cmd, file); err != nil {
		return err
	}
	var all error
	for _, kind := range []string{"waivers", "hooks"} {
		if flag := cmd.Flags().Lookup(kind); flag != nil && flag.Value.String() != "" {
			all = errors.Join(all, readers[kind](flag.Value.String()))
		}
	}
	return all
}

// validateWaivers reads waivers and holds them against the catalogues and today.
func validateWaivers(file string) error {
	waivers, err := configfile.ReadWaivers(file)
	if err != nil {
		return err
	}
	checks, err := catalogues("")
	if err != nil {
		return exit.Untested(err)
	}
	var ids []string
	for _, check := range checks {
		ids = append(ids, check.ID)
	}
	var all error
	for _, w := range waivers {
		place := cmp.Or(w.Source, file)
		if !slices.Contains(ids, w.Check) {
			message := fmt.Sprintf("%s: the waiver of %s names no check of the catalogue", place, w.Check)
			if near := suggest.Word(w.Check, ids); near != "" {
				message += fmt.Sprintf(", did you mean %s?", near)
			}
			all = errors.Join(all, errors.New(message))
		}
		if w.Until == "" {
			continue
		}
		until, err := time.Parse(time.DateOnly, w.Until)
		switch {
		case err != nil:
			all = errors.Join(all, fmt.Errorf("%s: the waiver of %s: until %q is no date: use YYYY-MM-DD", place, w.Check, w.Until))
		case !time.Now().Before(until.AddDate(0, 0, 1)):
			all = errors.Join(all, fmt.Errorf("%s: the waiver of %s expired on %s: remove it or choose a later date", place, w.Check, w.Until))
		}
	}
	if all != nil {
		return exit.Usage(all)
	}
	return nil
}

func validateHooks(file string) error {
	_, err := configfile.ReadHooks(file)
	return err
}

func validateSeed(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return exit.Usagef("read seed: %w", err)
	}
	if err := server.CheckSeed(file, text); err != nil {
		return exit.Usage(err)
	}
	return nil
}
