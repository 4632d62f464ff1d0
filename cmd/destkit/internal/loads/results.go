package loads

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/loadpage"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

// loadComparing is a comparison with its flags.
type loadComparing struct {
	tolerance    float64
	asJSON, fail bool
	html, json   string   // files
	reports      []string // [FORMAT=]FILE of the two
}

// comparisonFormats are those of a --report of a comparison.
func comparisonFormats() outputs.Formats {
	return slices.DeleteFunc(formats(), func(f outputs.Format) bool { return f.Name == "csv" || f.Name == "hdr" })
}

// newCompare puts two results side by side.
func newCompare() *cobra.Command {
	l := loadComparing{tolerance: 0.05}
	cmd := &cobra.Command{
		Use:   "compare BEFORE.json AFTER.json",
		Short: "Compare two results of a load",
		Long: `Put the results of two loads side by side. What changed by more than the
tolerance is called better or worse; what the two runs did not have in common
is said first. --html writes one page besides: throughput, latency over time
and by percentile of both runs in the same plots, and every figure.`,
		Example: "  destkit load compare monday.json friday.json --html compared.html\n  destkit load compare a.json b.json --fail --tolerance 0.1",
		Args:    command.Arguments(2, 2, "the two JSON results"),
		RunE:    l.compare,
	}
	cmd.Flags().Float64Var(&l.tolerance, "tolerance", l.tolerance, "`SHARE` that a figure may change by at least")
	cmd.Flags().BoolVar(&l.fail, "fail", false, "exit 1 when something is worse, 2 when nothing is and figures cannot be compared")
	cmd.Flags().StringArrayVarP(&l.reports, "report", "r", nil, "write a report, `[FORMAT=]FILE`: html or json; without a format its extension names it (repeatable)")
	cmd.Flags().StringVar(&l.html, "html", "", "write a report with plots of both runs into one HTML `FILE`")
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print JSON")
	return cmd
}

func (l *loadComparing) compare(cmd *cobra.Command, args []string) error {
	if !(l.tolerance >= 0) || l.tolerance > 1000 {
		return exit.Usagef("--tolerance must be a share such as 0.05, not %v", l.tolerance)
	}
	if err := comparisonFormats().Assign(l.reports, map[string]*string{"html": &l.html, "json": &l.json}); err != nil {
		return err
	}
	switch {
	case l.html == "-" && (l.asJSON || l.json == "-"):
		return exit.Usagef("--json and --html - both go to standard output")
	case l.json == "-":
		l.asJSON, l.json = true, ""
	case l.html != "" && l.json != "" && filepath.Clean(l.html) == filepath.Clean(l.json):
		return exit.Usagef("--html and --report name the same file %s", l.html)
	}
	if err := errors.Join(checkLoadFile("html", l.html), checkLoadFile("report", l.json)); err != nil {
		return err
	}
	results, err := readResults(args)
	if err != nil {
		return err
	}
	c := loadgen.Compare(results[0], results[1], l.tolerance)
	err = errors.Join(
		writeLoadFile("html", l.html, cmd.OutOrStdout(), func(to io.Writer) error {
			return loadpage.WriteComparison(to, results[0], results[1], l.tolerance)
		}),
		writeLoadFile("report", l.json, cmd.OutOrStdout(), func(to io.Writer) error { return command.PrintJSON(to, c) }))
	if err != nil {
		return exit.Untested(err)
	}
	switch {
	case l.asJSON:
		err = command.PrintJSON(cmd.OutOrStdout(), c)
	case l.html == "-":
		writeComparison(cmd.ErrOrStderr(), c)
	default:
		writeComparison(cmd.OutOrStdout(), c)
	}
	if err != nil || !l.fail {
		return err
	}
	return gateComparison(c)
}

// gateComparison is the end of a comparison that is a gate: comparable values
// decide, and others must not pass for equal.
func gateComparison(c *loadgen.Comparison) error {
	if c.Worse {
		return exit.With(exit.GateFailed)
	}
	if reasons := c.NotComparable(); len(reasons) > 0 {
		return exit.Usagef("--fail: nothing that can be compared is worse, but not all can be: %s; compare two runs with the same flags, on a machine that does nothing else", strings.Join(reasons, "; "))
	}
	return nil
}

func readResults(files []string) ([]*loadgen.Result, error) {
	var results []*loadgen.Result
	for _, file := range files {
		r, err := loadgen.ReadResult(file)
		if err != nil {
			return nil, exit.Usage(err)
		}
		results = append(results, r)
	}
	return results, nil
}

func writeComparison(w io.Writer, c *loadgen.Comparison) {
	if len(c.Apart) > 0 {
		what := "not the same machine"
		if slices.ContainsFunc(c.NotComparable(), func(reason string) bool { return strings.HasPrefix(reason, "not the same load") }) {
			what = "not the same load"
		}
		foreign.Printf(w, "%s: %s\n", what, strings.Join(c.Apart, "; "))
	}
	foreign.Printf(w, "%-34s %14s %14s %9s\n", "", "before", "after", "change")
	for _, d := range c.Differences {
		name := d.Name
		if d.Unit != "" {
			name += " (" + d.Unit + ")"
		}
		line := fmt.Sprintf("%-34s %14s %14s %9s  %s", name, compared(d.Before), compared(d.After), d.ChangeText(), d.Verdict())
		foreign.Println(w, strings.TrimRight(line, " "))
	}
	if text := c.WorseText(); text != "" {
		foreign.Printf(w, "worse: %s\n", text)
	}
}

func compared(v float64) string {
	if v >= 1000 {
		return quantity.Grouped(int64(v + 0.5))
	}
	return fmt.Sprintf("%.4g", v)
}

// newMerge puts results of several generators together.
func newMerge() *cobra.Command {
	var files files
	cmd := &cobra.Command{
		Use:   "merge RESULT.json…",
		Short: "Put the results of several generators together",
		Long: `Put the results of loads together that several machines sent at the same time
(--start-at). Counts and rates are added, histograms joined; percentiles are
those of all requests. In the series, the worst percentile of an interval
stands for all.`,
		Example: "  destkit load merge a.json b.json c.json --json all.json --html all.html",
		Args:    command.Arguments(2, -1, "two JSON results or more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := files.check(); err != nil {
				return err
			}
			results, err := readResults(args)
			if err != nil {
				return err
			}
			merged, err := loadgen.Merge(results)
			if err != nil {
				return command.Failure(err)
			}
			if err := files.write(cmd.OutOrStdout(), merged); err != nil {
				return exit.Untested(err)
			}
			out := cmd.OutOrStdout()
			if files.takesStdout() {
				out = cmd.ErrOrStderr()
			}
			WriteSummary(out, merged)
			return nil
		},
	}
	files.register(cmd.Flags())
	return cmd
}

// newClean deletes what a load has left.
func newClean() *cobra.Command {
	var dials conformance.Options
	var conn command.Connection
	var journal, url, run, identifier string
	var objects []string
	var own command.OwnKeys
	var options loadgen.Options
	cmd := &cobra.Command{
		Use:   "clean {--journal FILE | --run RUN --object NAME=N} [URL]",
		Short: "Delete the records that a load has written",
		Long: `Delete exactly the keys that a journal, or the JSON result of a load, names.
Without a file, --run and --object name them: the summary of a load ends with
the whole command. Keys that were never stored are deleted as well, which
changes nothing, and the endpoint acknowledges it: how many were stored is not
known. Keys that no load makes are refused, whatever the file says; for a load
with keys of its own give its --key-template or --key-range.

The URL is that of --url, of the argument, of $DESTKIT_URL or of the file, the
first that is there. A file may have been changed: the token of $DESTKIT_TOKEN
goes to a public address that it names only with --token-env.`,
		Example: "  destkit load clean --journal load.json\n  destkit load clean --journal load.json --url https://example.com/destination",
		Args:    command.Arguments(0, 1, "the URL of the endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (journal == "") == (run == "") {
				return exit.Usagef("name the journal or the JSON result with --journal FILE, or the run with --run RUN --object NAME=COUNT")
			}
			if err := own.Resolve(&dials); err != nil {
				return err
			}
			options.KeyTemplate, options.KeyFrom, options.KeyTo, options.RunID = dials.KeyTemplate, dials.KeyFrom, dials.KeyTo, run
			var keys []loadgen.WrittenKeys
			var err error
			if run != "" {
				if keys, err = runKeys(run, objects, identifier, options); err != nil {
					return err
				}
			} else if keys, err = loadgen.ReadKeys(journal); err != nil {
				return exit.Usage(err)
			}
			given := url
			if given == "" && len(args) > 0 {
				given = args[0]
			}
			if run != "" && given == "" {
				if given, err = command.EndpointURL(cmd, nil); err != nil {
					return err
				}
			}
			named := ""
			if journal != "" {
				if named, err = loadgen.ReadTarget(journal); err != nil {
					return exit.Usage(err)
				}
			}
			address, err := command.EndpointURLOr(cmd, given, journal, named)
			if err != nil {
				return err
			}
			target, err := conn.Resolve(address, &dials)
			if err != nil {
				return err
			}
			options.Target = loadgen.Target{URL: target.URL, Token: target.Token, Headers: target.Headers, Roots: dials.Roots, Development: string(dials.Development)}
			options.Transport.Timeout, options.Transport.PlanningTimeout = dials.BatchTimeout, dials.PlanningTimeout
			result, err := loadgen.Clean(cmd.Context(), options, keys)
			if err != nil {
				return command.Failure(err)
			}
			foreign.Printf(cmd.OutOrStdout(), "%s acknowledged, %s left\n", quantity.Counted(result.Deleted, "delete"), quantity.Grouped(result.Left))
			if result.Deleted > 0 {
				foreign.Printf(cmd.OutOrStdout(), "  how many of these keys were stored is not known: an endpoint acknowledges the delete of a key that it does not have\n")
			}
			for _, reason := range result.Reasons {
				foreign.Printf(cmd.OutOrStdout(), "  %s\n", reason)
			}
			if result.Left > 0 {
				return exit.With(exit.Residue)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "`URL` of the endpoint (default: that of the file, unless it holds a secret)")
	cmd.Flags().StringVar(&journal, "journal", "", "journal or JSON result `FILE` of the load")
	cmd.Flags().StringVar(&run, "run", "", "the id of the `RUN`, where there is no file")
	cmd.Flags().StringSliceVarP(&objects, "object", "o", nil, "with --run: object `NAME=COUNT` and how many keys the run has used in it (repeatable, or with commas)")
	cmd.Flags().StringVar(&identifier, "identifier", "", "with --run: the field `NAME` that the load matched records by, if it named one")
	own.Register(cmd)
	conn.Register(cmd, &dials)
	_ = cmd.Flags().MarkHidden("url-secret")
	return cmd
}
