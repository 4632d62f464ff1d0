package main

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
)

// lastFailed is what --select takes for the checks that failed in the last report.
const lastFailed = "failed"

// failedChecks is a selection by the outcome of the last report.
type failedChecks struct {
	asked bool
	ids   []string // what failed last
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
		o.Select = rest // a session selects anew for each run
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
