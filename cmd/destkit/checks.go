package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/suggest"
)

// newChecks lists the catalogue. It reads what the judge runs, so that no list
// in a document or in this program can fall behind it.
func newChecks() *cobra.Command {
	var asJSON, asMarkdown, steps bool
	var suite string
	cmd := &cobra.Command{
		Use:   "checks [GLOB...]",
		Short: "List the catalogue of checks",
		Long: `List every check with its level, who asks for it, the section of the
specification, and what it needs. There are two suites, destination and service.

Of a destination:
  nothing        planning calls only; no record is written
  write          records are written (--write --object NAME)
  readback       undecidable without a read-back hook
  (readback)     stronger with one
  hook NAME      a hook of the author (--hooks FILE)
  load           sends at the declared speed (--load)
  probe          one more port (--probe-plain-http PORT)
Of a service:
  nothing        things that the run makes and deletes again
  clock          a clock that can be moved (--control-url); --patient waits

Who asks for a rule: spec (the specification of the service), jsonrpc (JSON-RPC
2.0), published (published documentation), policy (this toolkit alone). With the
profile "spec" a failed MUST of spec or jsonrpc decides the verdict, with "v1"
of published too, with "strict" every failure does, SHOULD included.

The list is read from the feature files that the judge runs; there is no other.`,
		Example: "  destkit checks\n  destkit checks 'RES-*' SEM-005\n  destkit checks --markdown > checks.md",
		RunE: func(cmd *cobra.Command, globs []string) error {
			if steps {
				return printSteps(cmd.OutOrStdout(), suite)
			}
			checks, err := selectChecks(globs, suite)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return command.PrintJSON(cmd.OutOrStdout(), checks)
			case asMarkdown:
				printChecksMarkdown(cmd.OutOrStdout(), checks)
			default:
				printChecks(cmd.OutOrStdout(), checks)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&suite, "suite", "", "only those of one suite: `destination|service`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "print a Markdown table")
	cmd.Flags().BoolVar(&steps, "steps", false, "list the sentences that a feature file may use, as regular expressions")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown", "steps")
	return cmd
}

// printSteps lists the sentences of one suite; own feature files are judged with
// that of a destination unless the service is requested.
func printSteps(w io.Writer, suite string) error {
	var steps []string
	switch suite {
	case "", conformance.SuiteDestination:
		steps = destination.Steps()
	case conformance.SuiteService:
		steps = service.Steps()
	default:
		return unknownSuite(suite)
	}
	for _, step := range steps {
		foreign.Println(w, step)
	}
	return nil
}

func unknownSuite(suite string) error {
	return exit.Usagef("--suite %q is no suite: use %s or %s", suite, conformance.SuiteDestination, conformance.SuiteService)
}

// catalogues are the checks of one suite, or of both with "".
func catalogues(suite string) ([]*conformance.Check, error) {
	var checks []*conformance.Check
	known := suite == ""
	for _, name := range []string{conformance.SuiteDestination, conformance.SuiteService} {
		if suite != "" && suite != name {
			continue
		}
		known = true
		catalogue, err := conformance.LoadCatalogue(name)
		if err != nil {
			return nil, exit.Untested(err)
		}
		checks = append(checks, catalogue.Checks...)
	}
	if !known {
		return nil, unknownSuite(suite)
	}
	return checks, nil
}

// selectChecks returns the checks of a suite, or of both, that match any of the
// globs in the order of the catalogue, all without globs. A glob that matches
// nothing is an error: a slip in a pipeline must not look like success.
func selectChecks(globs []string, suite string) ([]*conformance.Check, error) {
	all, err := catalogues(suite)
	if err != nil || len(globs) == 0 {
		return all, err
	}
	chosen := map[string]bool{}
	for _, glob := range globs {
		matched := false
		for _, check := range all {
			ok, err := path.Match(glob, check.ID)
			if err != nil {
				return nil, exit.Usage(fmt.Errorf("match selector %q: %w", glob, err))
			}
			if ok {
				chosen[check.ID], matched = true, true
			}
		}
		if !matched {
			return nil, unknownCheck(all, glob)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *conformance.Check) bool { return !chosen[c.ID] }), nil
}

// unknownCheck is the error for an id or glob that matches nothing.
func unknownCheck(checks []*conformance.Check, id string) error {
	ids := lists.Of(checks, func(check *conformance.Check) string { return check.ID })
	if near := suggest.Word(strings.ToUpper(id), ids); near != "" {
		return exit.Usagef("no check matches %q, did you mean %s?", id, near)
	}
	return exit.Usagef("no check matches %q; 'destkit checks' lists them", id)
}

// checkNeed describes the need of a check in a few words.
func checkNeed(c *conformance.Check) string {
	var needs []string
	add := func(wanted bool, word string) {
		if wanted {
			needs = append(needs, word)
		}
	}
	add(c.Write, "write")
	add(c.WriteOptional, "(write)")
	add(c.ReadbackRequired, "readback")
	add(c.ReadbackDecides, "(readback)")
	add(c.Hook != "", "hook "+c.Hook)
	add(c.Load, "load")
	add(c.Probe, "probe")
	add(c.Clock, "clock")
	if len(needs) == 0 {
		return "nothing"
	}
	return strings.Join(needs, ", ")
}

// authorityWords joins the authorities of a check.
func authorityWords(c *conformance.Check) string {
	return strings.Join(lists.Of(c.Authority, func(a conformance.Authority) string { return string(a) }), ", ")
}

// sectionWords names the sections of the specification, or "-".
func sectionWords(c *conformance.Check) string {
	if len(c.Sections) == 0 {
		return "-"
	}
	return strings.Join(c.Sections, ", ")
}

// printChecks prints two lines for each check, grouped by area: the claim, and
// who makes it (spec 4 to 9, JSON-RPC, published text, this toolkit).
func printChecks(w io.Writer, checks []*conformance.Check) {
	area := ""
	for _, c := range checks {
		if c.Area != area {
			if area != "" {
				foreign.Println(w)
			}
			area = c.Area
			foreign.Println(w, area)
		}
		foreign.Printf(w, "  %-9s %-6s  %s\n", c.ID, c.Level, c.Title)
		foreign.Printf(w, "  %-9s %-6s  %s · spec %s · needs %s\n", "", "", authorityWords(c), sectionWords(c), checkNeed(c))
	}
	foreign.Printf(w, "\n%s; 'destkit explain %s' explains the first\n", quantity.Count(len(checks), "check"), checks[0].ID)
}

// printChecksMarkdown prints a table for each area, to be kept with a project.
func printChecksMarkdown(w io.Writer, checks []*conformance.Check) {
	area := ""
	for _, c := range checks {
		if c.Area != area {
			area = c.Area
			foreign.Printf(w, "\n## %s\n\n| id | level | authority | spec | needs | claim |\n|---|---|---|---|---|---|\n", area)
		}
		foreign.Printf(w, "| %s | %s | %s | %s | %s | %s |\n", c.ID, c.Level, authorityWords(c), sectionWords(c), checkNeed(c),
			strings.ReplaceAll(c.Title, "|", "\\|"))
	}
}
