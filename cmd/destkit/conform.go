package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
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

// verdicts says how the outcome of a judgement is told.
type verdicts struct {
	reports   []string
	noColor   bool
	quiet     bool
	profiling command.Profiling

	shown shownCommands
}

func (v *verdicts) register(cmd *cobra.Command, o *conformance.Options, left string) {
	f := cmd.Flags()
	f.StringArrayVarP(&v.reports, "report", "r", nil, "write a report, `[FORMAT=]FILE`; without a format its extension names it (repeatable)")
	f.BoolVar(&o.RequireComplete, "require-complete", false, "exit 6 when a MUST stays undecided")
	f.BoolVar(&o.RequireClean, "require-clean", false, "exit 5 unless it was seen that no "+left+" are left behind")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "no progress while it runs")
	f.BoolVar(&v.noColor, "no-color", false, "no colours, also when standard output is a terminal")
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

Nothing is written unless you ask for it. A run without --write sends planning
calls and batches without records only. With --write --object NAME records with
marked keys (zz-conf-…) are written into the objects that you name, journalled
before they are sent, and deleted again at the end where the endpoint accepts
"delete" batches or a clean-up hook is given. Where neither is so, what is
written stays: the run says how much and ends with exit status 2 before the
first record, unless --allow-leftovers is given. That they are gone is said
when a read-back or skipped updates show it; else they count as deleted by
acknowledgement only, and the journal stays.

Many rules are about what is stored, and the protocol cannot read. A read-back
hook decides them: --readback-url or --readback-command gets
  {"object": …, "identifier_field": …, "identifiers": […]}
and answers
  {"records": [{"identifier": …, "count": 1, "fields": {…}}], "complete": true}

An endpoint that runs as several processes is judged as one with --replica URL2
[--replica URL3]: consecutive calls of each check go to URL, URL2, URL3 in
turn, so that what one process keeps for itself (records, plans, a cached
schema) shows. All get the token and the headers, over one scheme; kept-alive
connections, certificates, redirects, other URLs and hooks are those of URL
alone.

Plain http and private certificates are for development: on loopback and private
addresses they are accepted and the TLS checks do not run. --tls-roots FILE runs
them against your own authority, --development off runs them always.

Where nothing can be judged the report begins with why and what to do, and the
exit status is 3: no answer, 401 or 403 to every call, 404 or a web page in
place of the endpoint, http where TLS is spoken, test_connection with
"success": false, or a hook that is broken. Hooks are tried before the first
write.

A run takes seconds and never sends faster than get_sync_speed and
X-RateLimit-Limit of the endpoint allow, save with --load. Its verdict names a
tier, how much was looked at: protocol (no writes), results (writes), semantics
(writes and read-back), operations (all hooks and load). What could not be
decided is INCONCLUSIVE or not run, never a pass.

With --watch the endpoint is judged again whenever a file below --watch-path
changes: first what failed last, then everything. --exec 'node server.js'
starts it (without a shell), waits until URL answers, starts it anew for each
run and ends it with its children. What it prints goes into a file that the
screen names. On a terminal Enter or space judges again, and q ends. Hidden
files, node_modules, data and log files, and what destkit writes are not
watched. A file that changes during a run starts one more run, and none when it
changes during that one, too. A file that changes within 3 seconds after each
of 3 runs in a row with the same results is one that the endpoint writes: it
starts no further run until it changes later than that. The exit status is that
of the last run.

--select failed takes the checks that failed in the report of --report
json=FILE before it is replaced, and with --watch those that failed last; when
none failed, everything is judged.

--from FILE judges a recording instead, a journal of 'destkit proxy' or an HTTP
Archive of any program, by the checks that traffic alone can decide. Nothing is
sent.

A URL that carries a secret can stand in $DESTKIT_URL instead of on the command
line, those of replicas in $DESTKIT_REPLICAS with spaces between. Commands that
a report shows name the variables of this shell that hold the secrets, such as
$TOKEN with --token-env TOKEN.

Settings are read from destkit.yaml of this folder, and the first line says so.

A report is written for each --report [FORMAT=]FILE, on every exit status but 2.
FILE "-" is standard output, and needs a format. Formats, with the extensions
that name them:
` + strings.Join(command.FoldLines(outputs.JudgeFormats().Words()+".", command.HelpColumns), "\n"),
		Example: `  destkit conform https://example.com/destination --token-env TOKEN
  destkit conform https://example.com/destination --write --object contact \
      --readback-url https://example.com/readback --report report.html
  destkit conform https://a.example.com/d --replica https://b.example.com/d \
      --write --object contact
  destkit conform http://127.0.0.1:8080/ --select 'RES-*,SEM-005' \
      --write --object contact
  destkit conform https://example.com/destination --config destkit.yaml \
      --report junit=junit.xml
  destkit conform http://127.0.0.1:8080/ --watch --exec 'node server.js' \
      --write --object contact`,
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
	// sent, and every end but a usage error leaves the reports that were asked for.
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
	if err := files.Write(cmd.OutOrStdout(), result, report.Options{Access: v.shown.access, Rerun: v.shown.rerun}); err != nil {
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

// dropJournal removes a journal that was not asked for when it was seen that
// nothing is left behind; otherwise it is the way to clean up later.
func dropJournal(name string, result *conformance.Report) {
	if len(result.Residue.Refused)+len(result.Residue.Unknown)+result.Residue.Unverified > 0 {
		return
	}
	if err := os.Remove(name); err == nil || errors.Is(err, fs.ErrNotExist) {
		result.Residue.Journal = ""
	}
}
