// Package outputs owns how a judgement is written and shown while it runs: the files
// of --report with their formats, and the progress on a screen. Package report
// defines the formats.
package outputs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/foreign"
)

// Output is one --report: a format and a file, "-" for standard output.
type Output struct{ Format, File string }

// List are all requested reports.
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
	options = report.Options{ReportFile: o.File(report.JSON), Access: options.Access, Rerun: options.Rerun, Private: options.Private}
	var errs []error
	for _, out := range o {
		if out.File == "-" {
			to := stdout
			if out.Format == report.HTML || out.Format == report.GitHub {
				to = foreign.Raw(stdout) // they have their own rules, and writers that follow them
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

// Screen is where the command prints text for people.
func (o List) Screen(cmd *cobra.Command) io.Writer {
	if o.TakesStdout() {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
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

// CheckFile looks whether a file can be written later, or replaced if there is one: a
// slip must not show after minutes of work. named is the flag with its value, for messages.
func CheckFile(named, file string) error {
	folder := filepath.Dir(file)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return exit.Usagef("%s: there is no folder %s", named, folder)
	}
	switch info, err := os.Stat(file); {
	case err == nil && info.IsDir():
		return exit.Usagef("%s: that is a folder; name a file in it", named)
	case err == nil && !info.Mode().IsRegular():
		return nil // it is written where it is
	case err == nil: // where a link leads, for it is replaced there
		if real, err := filepath.EvalSymlinks(file); err == nil {
			folder = filepath.Dir(real)
		}
	}
	probe, err := os.CreateTemp(folder, ".destkit-*")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return exit.Usagef("%s: no permission to write into the folder %s", named, folder)
	} else if err != nil {
		return nil // a full disk may have room until then
	}
	probe.Close()
	os.Remove(probe.Name())
	return nil
}
