package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/foreign"
)

// judgement is a `conform` on its way: what to judge and where to write it.
type judgement struct {
	judging
	verdicts
	watching watching
	recorded recorded
}

// verdicts configures how the outcome of a judgement is reported.
type verdicts struct {
	reports   []string
	noColor   bool
	quiet     bool
	profiling command.Profiling

	shown shownCommands
}

func (v *verdicts) register(cmd *cobra.Command, o *conformance.Options, left string) {
	f := cmd.Flags()
	f.StringArrayVarP(&v.reports, "report", "r", nil, "`[FORMAT=]FILE`: write a report there (repeatable)")
	f.BoolVar(&o.RequireComplete, "require-complete", false, "exit 6 when a MUST stays undecided")
	f.BoolVar(&o.RequireClean, "require-clean", false, "exit 5 unless it was seen that no "+left+" are left")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "no progress while it runs")
	f.BoolVar(&v.noColor, "no-color", false, "no colours, also on a terminal")
	v.profiling.Register(cmd)
}

func newConform() *cobra.Command { return conformCommand(&judgement{}) }

// conformCommand is newConform with the place that its flags bind to.
func conformCommand(j *judgement) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conform [URL]",
		Short: "Judge a custom destination",
		Long: `Judge the custom destination at URL: which rules hold, which are broken and how
to mend them, and which cannot be decided without more evidence.

Nothing is written without --write --object NAME. Then records with marked keys
(zz-conf-…) are written, journalled before they are sent, and deleted at the
end; where they cannot be deleted, the run ends with status 2 before the first,
unless --allow-leftovers is given. A read-back hook, which shows what is
stored, gets
  {"object": …, "identifier_field": …, "identifiers": […]}
and answers
  {"records": [{"identifier": …, "count": 1, "fields": {…}}], "complete": true}
A URL with a secret goes into $DESTKIT_URL, those of replicas, with spaces
between, into $DESTKIT_REPLICAS. --select failed takes what failed in the file
of --report json=FILE before it is replaced.
Details: docs/judge.md, start.md (--watch), proxy.md (--from), commands.md.`,
		Example: `  destkit conform https://example.com/destination --token-env TOKEN
  destkit conform https://example.com/destination --write --object contact \
      --readback-url https://example.com/readback --report report.html
  destkit conform http://127.0.0.1:8080/ --write -o contact --select 'RES-*'
  destkit conform http://127.0.0.1:8080/ --watch --exec 'node server.js'`,
		Args: command.Arguments(0, 1, "the URL of the endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if j.recorded.file != "" {
				return j.conformFrom(cmd, args)
			}
			if len(j.recorded.callerReports) > 0 {
				return exit.Usagef("--caller-report needs --from: only a recording shows the calls of others")
			}
			url, err := command.EndpointURL(cmd, args)
			if err != nil {
				return err
			}
			return j.conform(cmd, url)
		},
	}
	j.judging.register(cmd)
	j.verdicts.register(cmd, &j.options, "records")
	j.watching.register(cmd)
	j.recorded.register(cmd)
	cmd.AddCommand(newConformService())
	return cmd
}

// conform judges, writes the reports and returns the exit status as an error.
func (j *judgement) conform(cmd *cobra.Command, url string) error {
	target, options, err := j.resolve(cmd, url)
	if err != nil {
		return err
	}
	j.shown = j.commands(cmd, target)
	files, err := outputs.Parse(j.reports)
	if err != nil {
		return err
	}
	j.settings.Announce(files.Screen(cmd))
	failed, err := selectFailed(&options, files, j.watching.on)
	if err != nil {
		return err
	}
	if err := j.watching.check(files, options); err != nil {
		return err
	}
	// Everything that can be refused has been refused: from here on something is
	// sent, and every end but a usage error leaves the requested reports.
	stopProfile, err := j.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	if j.watching.on {
		s := &watchSession{cmd: cmd, watching: j.watching, target: target, options: options, settings: j.settings, shown: j.shown, outputs: files, failed: failed, quiet: j.quiet, noColor: j.noColor}
		return s.run(cmd.Context())
	}
	if err := checkJournal(options.Journal); err != nil {
		return err
	}
	step, done := outputs.Progress(cmd.ErrOrStderr(), j.quiet)
	options.Progress = step
	result, err := journalled(&options, options.Write, func() (*conformance.Report, error) { return destination.Run(cmd.Context(), target, options) })
	done()
	if err != nil {
		return command.Failure(j.settings.Placed(err))
	}
	return j.deliver(cmd, result, files, j.verbose)
}

// journalled gives a run that writes a journal where it has none, and takes that away when
// nothing is left that it names.
func journalled(o *conformance.Options, writes bool, run func() (*conformance.Report, error)) (*conformance.Report, error) {
	if !writes || o.Journal != "" {
		return run()
	}
	o.Journal = journalName(time.Now())
	result, err := run()
	var usage *conformance.UsageError
	switch {
	case err == nil:
		dropJournal(o.Journal, result)
	case errors.As(err, &usage):
		os.Remove(o.Journal) // refused before the first batch: it is empty
	}
	return result, err
}

// checkJournal refuses what would not survive the end of the program.
func checkJournal(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return exit.Usagef("--journal %s is no regular file; a journal must survive the end of the program", name)
	}
	return nil
}

// deliver writes the reports, shows the result and decides the exit status.
func (v *verdicts) deliver(cmd *cobra.Command, result *conformance.Report, files outputs.List, verbose bool) error {
	status := result.ExitStatus
	v.shown.prepare(result)
	// A report that cannot be written must not hide the verdict, and must not
	// pass for success either.
	if err := files.Write(cmd.OutOrStdout(), result, report.Options{Access: v.shown.access, Rerun: v.shown.rerun, Private: v.shown.private}); err != nil {
		foreign.Println(cmd.ErrOrStderr(), "destkit: "+err.Error())
		status = exit.Worst(status, exit.NotTested)
	}
	screen := files.Screen(cmd)
	options := report.Options{
		Color: command.Colourful(screen, v.noColor), Width: command.Width(screen), Verbose: verbose, ReportFile: files.File(report.JSON),
		Access: v.shown.access, Rerun: v.shown.rerun, Group: outputs.Groups(screen),
	}
	if err := report.WriteText(screen, result, options); err != nil {
		return exit.Untested(fmt.Errorf("print report: %w", err))
	}
	return exit.With(status)
}

// journalName is the journal of a run that was given none: in the working
// folder, where its owner will see it.
func journalName(now time.Time) string {
	return fmt.Sprintf("destkit-journal-%s-%d.ndjson", now.UTC().Format("20060102-150405"), os.Getpid())
}

// dropJournal removes a journal that was not requested if nothing is left
// behind; otherwise it is the way to clean up later.
func dropJournal(name string, result *conformance.Report) {
	if len(result.Residue.Refused)+len(result.Residue.Unknown)+result.Residue.Unverified > 0 {
		return
	}
	if err := os.Remove(name); err == nil || errors.Is(err, fs.ErrNotExist) {
		result.Residue.Journal = ""
	}
}
