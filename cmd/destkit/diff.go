package main

import (
	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
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
				err = command.PrintJSON(cmd.OutOrStdout(), comparisonJSON{comparison.Regressed(), comparison})
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

// comparisonJSON is what `destkit diff --json` prints.
type comparisonJSON struct {
	Regressed bool `json:"regressed"`
	report.Comparison
}
