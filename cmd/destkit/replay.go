package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/foreign"
)

// newReplay sends a finding again after a repair. The secrets that a report
// leaves out come from the environment, never from the command line.
func newReplay() *cobra.Command {
	var options conformance.Options
	var conn command.Connection
	var url string
	var asJSON bool
	var profiles command.Profiling
	var keys command.OwnKeys
	cmd := &cobra.Command{
		Use:   "replay REPORT.json [URL] [ID...]",
		Short: "Send the exchanges of a report's findings again",
		Long: `Send the requests of the findings in a JSON report again, those of the named
checks or all, and show what comes back now beside what came back then. Then the
checks are judged again, and the last line says what is fixed and what is still
broken.

The URL is that of --url, of the argument, of $DESTKIT_URL or of the report,
the first that is there; a report leaves out a URL that holds a secret. The
token comes from --token-env or $DESTKIT_TOKEN; to a public address that only
the report names it goes with --token-env alone.

A report is a file that may have been changed. What a request does is read from
its body, and only what 'destkit conform' sends itself is sent. Requests that
write records are sent only with --write, into the objects of the run or those
of --object, and only where every identifier is one that the run has made; for
a run with keys of its own give its --key-template or --key-range. What they
write stays.

With a recording of 'destkit proxy' or an HTTP Archive in place of the report,
its calls are sent to the endpoint at --url, and the answers are compared by
their meaning: the order of members and of results, times, ids that the endpoint
makes and the words of messages count for nothing. Batches are sent only with
--write, into the objects of --object. The exit status is then 1 when an answer
differs.

The exit status is 1 when a check is still broken, 3 when none could be decided
or a request got no complete response, 0 when all are fixed.`,
		Example: `  destkit replay r.json
  destkit replay r.json RES-002 --write --token-env TOKEN
  destkit replay r.json RES-002 --write --url http://127.0.0.1:8080/
  destkit replay calls.ndjson --url http://127.0.0.1:8080/ --write -o contact`,
		Args: command.Arguments(1, -1, "the JSON report of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := keys.Resolve(&options); err != nil {
				return err
			}
			if options.MaxRecords < 1 {
				return exit.Usagef("--max-records must be 1 or more, not %d", options.MaxRecords)
			}
			if isRecording(args[0]) {
				if len(args) > 2 || len(args) == 2 && url != "" {
					return exit.Usagef("a recording is replayed as a whole: name it and --url URL alone")
				}
				if len(args) == 2 {
					url = args[1]
				}
				return replayRecording(cmd, args[0], url, &conn, &options, asJSON)
			}
			old, err := readReport(args[0])
			if err != nil {
				return err
			}
			if old.Suite == conformance.SuiteService {
				return exit.Usagef("%s is the report of a service, whose findings come from whole scenarios: judge again with destkit conform service --select ID; the report has a curl command for single calls", args[0])
			}
			ids, url, err := replayedURL(cmd, url, args, old)
			if err != nil {
				return err
			}
			options.Version = command.ReadBuild().Version
			target, err := conn.Resolve(url, &options)
			if err != nil {
				return err
			}
			stopProfile, err := profiles.Start()
			if err != nil {
				return err
			}
			defer stopProfile()
			results, err := destination.Replay(cmd.Context(), target, options, old, ids)
			if err != nil {
				return command.Failure(err)
			}
			verdicts, err := judgeAgain(cmd.Context(), target, options, old, results)
			if err != nil {
				return command.Failure(err)
			}
			if asJSON {
				err = command.PrintJSON(cmd.OutOrStdout(), results)
			} else {
				printReplay(cmd.OutOrStdout(), results, verdicts)
			}
			if err != nil {
				return err
			}
			return exit.With(replayStatus(results, verdicts))
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "`URL` of the endpoint (default: $"+command.URLVariable+", else that of the report)")
	f.BoolVar(&options.Write, "write", false, "send the requests that write records, too")
	f.StringSliceVarP(&options.Objects, "object", "o", nil, "object `NAME` that may be written into (repeatable; default: those of the run)")
	f.IntVar(&options.MaxRecords, "max-records", 5000, "write at most `N` records")
	keys.Register(cmd)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	conn.Register(cmd, &options)
	profiles.Register(cmd)
	return cmd
}

// printReplay shows then and now under each other, since the eye compares lines, and
// last what became of each check.
func printReplay(w io.Writer, results []destination.ReplayResult, verdicts []replayed) {
	for _, r := range results {
		foreign.Printf(w, "%s  %s\n", foreign.Clip(r.Check, 60), foreign.Clip(r.Before.RPC, 60))
		if r.Skipped != "" {
			foreign.Printf(w, "  not sent: %s\n", r.Skipped)
			continue
		}
		foreign.Printf(w, "  then  %s\n  now   %s\n", exchangeWords(r.Before), exchangeWords(r.After))
		if r.Same {
			foreign.Printf(w, "  the same\n")
		} else {
			foreign.Printf(w, "  different\n")
		}
	}
	for _, word := range []string{notDecided, nowFixed, stillBroken} {
		for _, v := range verdicts {
			if v.word == word {
				foreign.Printf(w, "%s: %s%s\n", v.word, foreign.Clip(v.check, 60), v.why)
			}
		}
	}
}

// exchangeWords shows the answer of an exchange on one line.
func exchangeWords(x conformance.Exchange) string {
	if x.Response == nil || x.Error != "" {
		return "no complete answer: " + foreign.Clip(foreign.Line(x.Error), 600)
	}
	return fmt.Sprintf("%d %s", x.Response.Status, foreign.Clip(foreign.Line(x.Response.Body.Text), 600))
}

// readReport reads a JSON report of an earlier run.
func readReport(file string) (*conformance.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, exit.Usagef("open report: %w", err)
	}
	defer f.Close()
	r, err := report.Read(f)
	if err != nil {
		return nil, exit.Usagef("%s: %w", file, err)
	}
	return r, nil
}
