package main

import (
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/features"
	"github.com/destkit/destkit/internal/foreign"
)

// newExplain answers the question after a finding: why should I care, and what
// would a right answer look like?
func newExplain() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain ID...",
		Short: "Explain a rule: why it matters, a good and a bad exchange",
		Long: `Explain one or more checks: the rule, its section and level, who asks for it,
why it matters to a sync, a good and a bad exchange, the usual cause and the
fix, and the ways in which the simulated destination can break it.`,
		Example: "  destkit explain RES-002\n  destkit explain 'SEM-*'",
		Args:    command.Arguments(1, -1, "an ID such as RES-002"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			globs := make([]string, len(ids))
			for i, id := range ids {
				globs[i], _, _ = strings.Cut(id, ".") // the id of a violation names its check
			}
			checks, err := selectChecks(globs, "")
			if err != nil {
				return err
			}
			explained := make([]explanation, len(checks))
			for i, check := range checks {
				explained[i] = explanation{check, violationsOf(check.ID)}
			}
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), explained)
			}
			for i, e := range explained {
				if i > 0 {
					foreign.Println(cmd.OutOrStdout())
				}
				e.print(cmd.OutOrStdout())
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explanation is one check with the ways in which the simulator breaks it.
type explanation struct {
	*conformance.Check
	Violations []destsim.Violation `json:"violations"`
}

// violationsOf returns the violations that are named for a check.
func violationsOf(id string) []destsim.Violation {
	found := []destsim.Violation{}
	for _, v := range destsim.Violations() {
		if v.ID == id || strings.HasPrefix(v.ID, id+".") {
			found = append(found, v)
		}
	}
	return found
}

func (e explanation) print(w io.Writer) {
	foreign.Printf(w, "%s  %s\n", e.ID, e.Title)
	foreign.Printf(w, "%s · asked for by %s · spec %s · needs %s\n\n", e.Level, authorityWords(e.Check), sectionWords(e.Check), checkNeed(e.Check))
	for _, part := range []struct {
		head string
		text foreign.Own
	}{
		{"Why", command.Indent(e.Reason)}, {"Good", exchange(e.Good)}, {"Bad", exchange(e.Bad)},
		{"Usual cause", command.Indent(e.Cause)}, {"Fix", command.Indent(e.Fix)},
	} {
		if strings.TrimSpace(string(part.text)) != "" {
			foreign.Printf(w, "%s\n%s\n", part.head, part.text)
		}
	}
	e.printPlaces(w)
	if len(e.Needs) > 0 {
		foreign.Printf(w, "Builds on\n  %s\n", strings.Join(e.Needs, ", "))
	}
	if severalProcesses(e.ID) {
		foreign.Printf(w, "Several processes\n%s\n", command.Indent("'destkit conform URL --replica URL2' sends the calls of the check to URL, to URL2 and so on in turn: then it also finds what one process keeps for itself."))
	}
	foreign.Printf(w, "The check\n")
	for _, step := range e.Steps {
		foreign.Printf(w, "  %s\n", foreign.Own(strings.Join(foreign.Block(step), "\n")))
	}
	for i, v := range e.Violations {
		if i == 0 {
			foreign.Printf(w, "Broken on purpose by\n")
		}
		foreign.Printf(w, "  destkit destsim --violate %s\n%s\n", v.ID, command.Indent("  "+v.Changes))
	}
}

// printPlaces prints where the method and the sentences of the specification are.
func (e explanation) printPlaces(w io.Writer) {
	suite := path.Dir(e.File)
	if suite == conformance.SuiteDestination {
		foreign.Printf(w, "Read\n  %s\n", strings.TrimSpace("destkit protocol "+e.Method()))
	} else if len(e.Sections) > 0 {
		foreign.Printf(w, "Read\n")
	}
	for _, section := range e.Sections {
		foreign.Printf(w, "  %s\n", features.AnchorURL(suite == conformance.SuiteService, section))
	}
}

// severalProcesses reports the checks of a destination that are most useful
// with several processes of it (spec 4.2, statelessness rules 1 to 3).
func severalProcesses(id string) bool {
	return slices.ContainsFunc([]string{"STA-", "DUR-", "PAR-"}, func(area string) bool { return strings.HasPrefix(id, area) })
}

// exchange shows a request and its reply on a line each. They are not wrapped:
// a body must stay fit for copying.
func exchange(text string) foreign.Own {
	text = foreign.Line(text)
	request, reply, both := strings.Cut(text, " -> ")
	if !both {
		return foreign.Own("  " + text)
	}
	return foreign.Own("  → " + request + "\n  ← " + reply)
}
