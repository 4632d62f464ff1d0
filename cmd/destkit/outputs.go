package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/foreign"
)

// output is one --report.
type output struct{ format, file string }

// outputs are all reports that were asked for.
type outputs []output

// parseOutputs reads the flags and looks whether the files can be written: a
// slip must not show after minutes of judging.
func parseOutputs(flags []string) (outputs, error) {
	var all outputs
	toStdout := 0
	for _, flag := range flags {
		format, file, err := judgeFormats().parse(flag)
		if err != nil {
			return nil, err
		}
		if file == "-" {
			toStdout++
		} else if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			return nil, exit.Usagef("--report %s: there is no folder %s", flag, filepath.Dir(file))
		}
		all = append(all, output{format, file})
	}
	if toStdout > 1 {
		return nil, exit.Usagef("only one report can go to standard output")
	}
	return all, nil
}

// write writes every report, also when one of them fails.
func (o outputs) write(stdout io.Writer, result *conformance.Report, options report.Options) error {
	// A file is no screen: no colours, no width of a terminal.
	options = report.Options{ReportFile: o.file(report.JSON), Access: options.Access, Rerun: options.Rerun}
	var errs []error
	for _, out := range o {
		if out.file == "-" {
			to := stdout
			if out.format == report.HTML || out.format == report.GitHub {
				to = foreign.Raw(stdout) // they have rules of their own, and writers that follow them
			}
			errs = append(errs, options.Write(out.format, to, result))
			continue
		}
		errs = append(errs, options.WriteFile(out.format, out.file, result))
	}
	return errors.Join(errs...)
}

// takesStdout reports whether a report occupies standard output.
func (o outputs) takesStdout() bool {
	return slices.ContainsFunc(o, func(out output) bool { return out.file == "-" })
}

// file returns the first file of a format, "" when there is none.
func (o outputs) file(format string) string {
	for _, out := range o {
		if out.format == format && out.file != "-" {
			return out.file
		}
	}
	return ""
}
