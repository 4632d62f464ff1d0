package loads

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/loadpage"
	"github.com/destkit/destkit/internal/wholefile"
	"github.com/destkit/destkit/loadgen"
)

// files are the files that a load writes; "-" is standard output.
type files struct {
	json, html, csv, hdr string
	junit                string
	reports              []string
}

// formats are those of a --report, which has a flag for each, too.
func formats() outputs.Formats {
	return outputs.Formats{
		{Name: "json", Extensions: []string{".json"}}, {Name: "html", Extensions: []string{".html", ".htm"}},
		{Name: "csv", Extensions: []string{".csv"}}, {Name: "hdr", Extensions: []string{".hlog"}},
		{Name: "junit", Extensions: []string{".xml"}},
	}
}

// FormatsOf are those of the --report of a command: load itself, or one below it.
func FormatsOf(cmd *cobra.Command) outputs.Formats {
	if cmd.Name() == "compare" {
		return comparisonFormats()
	}
	return formats()
}

// formatWords are the same for five flags, so that they have one line of the help.
const formatWords = "write a report of this format into `FILE`"

func (l *files) register(f *pflag.FlagSet) {
	f.StringArrayVarP(&l.reports, "report", "r", nil, "`[FORMAT=]FILE`: write a report there (repeatable)")
	f.StringVar(&l.json, "json", "", formatWords)
	f.StringVar(&l.html, "html", "", formatWords)
	f.StringVar(&l.csv, "csv", "", formatWords)
	f.StringVar(&l.hdr, "hdr", "", formatWords)
	f.StringVar(&l.junit, "junit", "", formatWords)
}

// loadWriter is one file with its flag and how it is written.
type loadWriter struct {
	flag, file string
	write      func(*loadgen.Result, io.Writer) error
}

func (l *files) all() []loadWriter {
	return []loadWriter{
		{"json", l.json, (*loadgen.Result).WriteJSON}, {"html", l.html, writeHTML},
		{"csv", l.csv, (*loadgen.Result).WriteCSV}, {"hdr", l.hdr, (*loadgen.Result).WriteHistogramLog},
		{"junit", l.junit, writeJUnit},
	}
}

func writeHTML(r *loadgen.Result, to io.Writer) error { return loadpage.Write(to, r) }

// resolve gives the files of --report to the flags of their formats.
func (l *files) resolve() error {
	return formats().Assign(l.reports, map[string]*string{"json": &l.json, "html": &l.html, "csv": &l.csv, "hdr": &l.hdr, "junit": &l.junit})
}

// check takes --report apart and looks whether the files can be written: a slip must
// not show after minutes of load.
func (l *files) check() error {
	if err := l.resolve(); err != nil {
		return err
	}
	toStdout, taken := 0, map[string]string{}
	for _, w := range l.all() {
		if other := taken[filepath.Clean(w.file)]; other != "" && w.file != "-" && w.file != "" {
			return exit.Usagef("--%s and --%s name the same file %s", other, w.flag, w.file)
		}
		taken[filepath.Clean(w.file)] = w.flag
		if w.file == "-" {
			toStdout++
		} else if err := checkLoadFile(w.flag, w.file); err != nil {
			return err
		}
	}
	if toStdout > 1 {
		return exit.Usagef("only one file can go to standard output")
	}
	return nil
}

func checkLoadFile(flag, file string) error {
	if file == "" || file == "-" {
		return nil
	}
	return outputs.CheckFile("--"+flag+" "+file, file)
}

// takesStdout reports whether a file occupies standard output.
func (l *files) takesStdout() bool {
	return slices.ContainsFunc(l.all(), func(w loadWriter) bool { return w.file == "-" })
}

// write writes every file, also when one of them fails.
func (l *files) write(stdout io.Writer, r *loadgen.Result) error {
	var errs []error
	for _, w := range l.all() {
		errs = append(errs, writeLoadFile(w.flag, w.file, stdout, func(to io.Writer) error { return w.write(r, to) }))
	}
	return errors.Join(errs...)
}

func writeLoadFile(flag, file string, stdout io.Writer, write func(io.Writer) error) error {
	switch file {
	case "":
		return nil
	case "-":
		if flag == "html" {
			stdout = foreign.Raw(stdout) // a page has its own rules, and a writer that follows them
		}
		return write(stdout)
	}
	if err := wholefile.Write(file, write); err != nil {
		return fmt.Errorf("write --%s: %w", flag, err)
	}
	return nil
}
