package main

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/internal/quantity"
)

// recorded holds the flags of a judgement of a recording.
type recorded struct {
	file          string
	callerReports []string
}

func (r *recorded) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.file, "from", "", "`FILE`: judge a recording (proxy or HAR), send nothing")
	f.StringArrayVar(&r.callerReports, "caller-report", nil, "`[FORMAT=]FILE`: on the caller, with --from (repeatable)")
}

// sending are the flags of conform that make no sense where nothing is sent.
var sending = []string{"write", "load", "readback-url", "readback-command", "hooks", "replica", "watch", "probe-plain-http", "journal", "features"}

// conformFrom judges a recording.
func (j *judgement) conformFrom(cmd *cobra.Command, args []string) error {
	for _, name := range sending {
		if cmd.Flags().Changed(name) {
			return exit.Usagef("--%s and --from exclude each other: a recording is only read", name)
		}
	}
	file, err := os.Open(j.recorded.file)
	if err != nil {
		return exit.Usagef("open --from: %w", err)
	}
	defer file.Close()
	url := ""
	if len(args) > 0 {
		url = args[0]
	} else if url, err = recordedURL(j.recorded.file); err != nil {
		return err
	}
	_, options, err := j.resolve(cmd, url)
	if err != nil {
		return err
	}
	files, err := outputs.Parse(j.reports)
	if err != nil {
		return err
	}
	j.settings.Announce(files.Screen(cmd))
	side := &bothSides{side: judgeEndpoint}
	if side.callerOutputs, err = outputs.Parse(j.recorded.callerReports); err != nil {
		return err
	}
	if side.passive, err = destination.NewPassive(destination.Target{URL: url}, options); err != nil {
		return command.Failure(err)
	}
	if len(side.callerOutputs) > 0 {
		side.side = judgeBoth
		if side.caller, err = service.NewCaller(url, side.passive.Secrets(), conformance.Options{Profile: options.Profile, Version: options.Version}); err != nil {
			return command.Failure(err)
		}
	}
	skipped, err := proxy.ReadRecording(file, func(x *conformance.Sight) error {
		judged := side.passive.Observe(x)
		if side.caller != nil && judged.Dropped == "" {
			side.caller.Observe(x, judged.Status)
		}
		return cmd.Context().Err()
	})
	switch {
	case cmd.Context().Err() != nil:
		return command.Failure(cmd.Context().Err())
	case err != nil:
		return exit.Usagef("%s: %w", j.recorded.file, err)
	}
	result := side.passive.Report()
	if skipped.Incomplete > 0 {
		result.Notes = append(result.Notes, sprintf("%s of the recording not judged, for lack of a body or a part of one", quantity.Count(skipped.Incomplete, "exchange")))
	}
	if skipped.Other > 0 {
		result.Notes = append(result.Notes, sprintf("%s of the recording not judged: no JSON-RPC", quantity.Count(skipped.Other, "exchange")))
	}
	j.shown.rerun = judgeRecording(j.recorded.file, side.caller != nil)
	return exit.With(side.deliver(cmd, &j.verdicts, result, files, j.verbose))
}

// judgeRecording is the command that judges a recording, "" without one.
func judgeRecording(file string, caller bool) string {
	if file == "" {
		return ""
	}
	command := "destkit conform --from " + foreign.ShellWord(file)
	if caller {
		command += " --caller-report text=-"
	}
	return command
}

// errFound ends a reading early.
var errFound = errors.New("found")

// recordedURL is that of the first POST in a recording, or of the first exchange. Where a secret was taken out of
// it, only its place is shown.
func recordedURL(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", exit.Usagef("open --from: %w", err)
	}
	defer file.Close()
	url := ""
	_, err = proxy.ReadRecording(file, func(x *conformance.Sight) error {
		if x.Method == http.MethodPost {
			url = x.URL
			return errFound
		}
		url = cmp.Or(url, x.URL)
		return nil
	})
	switch {
	case url == "" && err != nil:
		return "", exit.Usagef("%s: %w", name, err)
	case url == "":
		return "", exit.Usagef("%s has no call of JSON-RPC", name)
	case command.CheckURL("recording", url) != nil:
		return "https://recorded.localhost/", nil
	}
	return url, nil
}

// lastFailed is what --select takes for the checks that failed in the last report.
const lastFailed = "failed"

// failedChecks is a selection by the outcome of the last report.
type failedChecks struct {
	asked bool
	ids   []string // checks that failed last
}

// selectFailed takes "failed" out of the selection and puts the checks in its place
// that failed in the JSON report of this command, which a run replaces only later.
func selectFailed(o *conformance.Options, out outputs.List, watch bool) (failedChecks, error) {
	if !slices.Contains(o.Select, lastFailed) {
		return failedChecks{}, nil
	}
	chosen := failedChecks{asked: true}
	rest := slices.DeleteFunc(slices.Clone(o.Select), func(glob string) bool { return glob == lastFailed })
	file := out.File(report.JSON)
	if file == "" && !watch {
		return chosen, exit.Usagef("--select failed needs the last report: give its file with --report json=FILE, or --watch")
	}
	if file != "" {
		last, err := readReport(file)
		switch {
		case err == nil:
			chosen.ids = failedIn(last)
		case watch && errors.Is(err, fs.ErrNotExist):
		default:
			return chosen, err
		}
	}
	if watch {
		o.Select = rest // a session selects again for each run
		return chosen, nil
	}
	o.Select = append(rest, chosen.ids...)
	return chosen, nil
}

// failedIn are the checks of a report that failed, in their order.
func failedIn(r *conformance.Report) []string {
	var ids []string
	for _, check := range r.Checks {
		if brokenStatus(check.Status) {
			ids = append(ids, check.ID)
		}
	}
	return ids
}

// brokenStatus reports whether a rule was seen broken.
func brokenStatus(s conformance.Status) bool {
	return s == conformance.Fail || s == conformance.Flaky || s == conformance.Warn
}
