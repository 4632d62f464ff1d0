// Package outputs owns how a judgement is written and shown while it runs: the files
// of --report with their formats, and the progress on a screen. What a format looks
// like is for package report.
package outputs

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

// Output is one --report: a format and a file, "-" for standard output.
type Output struct{ Format, File string }

// List are all reports that were asked for.
type List []Output

// Parse reads the flags and looks whether the files can be written: a
// slip must not show after minutes of judging.
func Parse(flags []string) (List, error) {
	var all List
	toStdout := 0
	for _, flag := range flags {
		format, file, err := JudgeFormats().Parse(flag)
		if err != nil {
			return nil, err
		}
		if file == "-" {
			toStdout++
		} else if err := CheckFile("--report "+flag, file); err != nil {
			return nil, err
		} else if i := slices.IndexFunc(all, func(o Output) bool { return filepath.Clean(o.File) == filepath.Clean(file) }); i >= 0 && file != os.DevNull {
			return nil, exit.Usagef("--report %s: another report, %s=%s, goes to the same file", flag, all[i].Format, all[i].File)
		}
		all = append(all, Output{format, file})
	}
	if toStdout > 1 {
		return nil, exit.Usagef("only one report can go to standard output")
	}
	return all, nil
}

// Write writes every report, also when one of them fails.
func (o List) Write(stdout io.Writer, result *conformance.Report, options report.Options) error {
	// A file is no screen: no colours, no width of a terminal.
	options = report.Options{ReportFile: o.File(report.JSON), Access: options.Access, Rerun: options.Rerun}
	var errs []error
	for _, out := range o {
		if out.File == "-" {
			to := stdout
			if out.Format == report.HTML || out.Format == report.GitHub {
				to = foreign.Raw(stdout) // they have rules of their own, and writers that follow them
			}
			errs = append(errs, options.Write(out.Format, to, result))
			continue
		}
		errs = append(errs, options.WriteFile(out.Format, out.File, result))
	}
	return errors.Join(errs...)
}

// TakesStdout reports whether a report occupies standard output.
func (o List) TakesStdout() bool {
	return slices.ContainsFunc(o, func(out Output) bool { return out.File == "-" })
}

// File returns the first file of a format, "" when there is none.
func (o List) File(format string) string {
	for _, out := range o {
		if out.Format == format && out.File != "-" {
			return out.File
		}
	}
	return ""
}
