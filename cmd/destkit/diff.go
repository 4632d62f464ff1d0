package main

import (
	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
)

// newDiff compares two runs for a pipeline. Only a gate that fails newly ends
// with 1: a warning more or a check out of sight is shown and no failure.
func newDiff() *cobra.Command {
	var asJSON, asMarkdown bool
	var marker string
	cmd := &cobra.Command{
		Use:   "diff A.json B.json",
		Short: "Compare the reports of two runs",
		Long: `Compare two JSON reports, A before B: what fails newly, what passes newly, what
else changed, and which settings differ so that the comparison is not fair.

The exit status is 1 when a gate fails in B that did not fail in A, or was not
among its checks. What failed in A already is no reason, nor is a warning, a
check that can no longer be decided or a run that could not test: for those
the verdicts stand beside each other, and 'destkit conform' has its own exit
status.

--markdown is made for a comment of a change: what got worse is in sight, the
rest folded away, never more than 65,536 characters. Its first line is a hidden
marker, by which a program finds the comment of the last run to update it;
--marker gives it another name where several comparisons stand side by side.`,
		Example: "  destkit diff yesterday.json today.json\n  destkit diff main.json branch.json --markdown >> \"$GITHUB_STEP_SUMMARY\"",
		Args:    command.Arguments(2, 2, "the JSON reports of two runs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if marker != "" && !asMarkdown {
				return exit.Usagef("--marker needs --markdown")
			}
			a, err := readReport(args[0])
			if err != nil {
				return err
			}
			b, err := readReport(args[1])
			if err != nil {
				return err
			}
			comparison := report.Compare(a, b)
			if marker != "" {
				comparison.Name = marker
			}
			switch {
			case asJSON:
				err = command.PrintJSON(cmd.OutOrStdout(), newComparisonJSON(comparison))
			case asMarkdown:
				err = report.WriteComparison(report.Markdown, cmd.OutOrStdout(), comparison)
			default:
				err = report.WriteComparison(report.Text, cmd.OutOrStdout(), comparison)
			}
			if err != nil {
				return exit.Untested(err)
			}
			if comparison.Regressed() {
				return exit.With(exit.GateFailed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "print Markdown for a comment or a summary")
	cmd.Flags().StringVar(&marker, "marker", "", "`NAME` in the hidden first line of the Markdown (default: the suite)")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
	return cmd
}

// comparisonJSON is what `destkit diff --json` prints. Its parts have the
// fields of the library's types, under the names of the JSON report.
type comparisonJSON struct {
	Regressed    bool             `json:"regressed"`
	A            sideJSON         `json:"a"`
	B            sideJSON         `json:"b"`
	NewlyFailing []changeJSON     `json:"newly_failing"`
	Fixed        []changeJSON     `json:"fixed"`
	Changed      []changeJSON     `json:"changed"`
	Findings     []findingJSON    `json:"findings"`
	OnlyA        []string         `json:"only_a"`
	OnlyB        []string         `json:"only_b"`
	Unfair       []differenceJSON `json:"unfair"`
}

type sideJSON struct {
	RunID      string              `json:"run_id"`
	Target     string              `json:"target"`
	Summary    string              `json:"summary"`
	Verdict    conformance.Verdict `json:"verdict"`
	Tier       conformance.Tier    `json:"tier"`
	ExitStatus int                 `json:"exit_status"`
}

type changeJSON struct {
	ID     string             `json:"id"`
	Title  string             `json:"title"`
	Level  conformance.Level  `json:"level"`
	From   conformance.Status `json:"from"` // "" when A did not have the check
	To     conformance.Status `json:"to"`
	Gating bool               `json:"gating"`
	Reason string             `json:"reason"`

	BlockedBy    []string `json:"blocked_by,omitempty"`
	WasBlockedBy []string `json:"was_blocked_by,omitempty"`
}

type findingJSON struct {
	ID      string              `json:"id"`
	New     bool                `json:"new"`
	Finding conformance.Finding `json:"finding"`
}

type differenceJSON struct {
	Setting string `json:"setting"`
	A       string `json:"a"`
	B       string `json:"b"`
}

func newComparisonJSON(d report.Comparison) comparisonJSON {
	return comparisonJSON{
		Regressed: d.Regressed(), A: sideJSON(d.A), B: sideJSON(d.B),
		NewlyFailing: each(d.NewlyFailing, func(x report.Change) changeJSON { return changeJSON(x) }),
		Fixed:        each(d.Fixed, func(x report.Change) changeJSON { return changeJSON(x) }),
		Changed:      each(d.Changed, func(x report.Change) changeJSON { return changeJSON(x) }),
		Findings:     each(d.Findings, func(x report.FindingChange) findingJSON { return findingJSON(x) }),
		OnlyA:        each(d.OnlyA, func(id string) string { return id }),
		OnlyB:        each(d.OnlyB, func(id string) string { return id }),
		Unfair:       each(d.Unfair, func(x report.Difference) differenceJSON { return differenceJSON(x) }),
	}
}

// each converts a list; the result is never null in JSON.
func each[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, item := range list {
		out = append(out, convert(item))
	}
	return out
}
