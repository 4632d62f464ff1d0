package outputs

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/suggest"
)

// Formats are the formats of a --report, in the order of help texts, with the
// extensions by which a file names them.
type Formats []Format

type Format struct {
	Name       string
	Extensions []string
}

// JudgeFormats are those of `conform`. A badge and the annotations of GitHub have no
// extension that is theirs.
func JudgeFormats() Formats {
	extensions := map[string][]string{
		report.Text: {".txt"}, report.JSON: {".json"}, report.JUnit: {".xml"}, report.HTML: {".html", ".htm"},
		report.Markdown: {".md"}, report.SARIF: {".sarif", ".sarif.json"}, report.HAR: {".har"},
	}
	return lists.Of(report.Formats(), func(name string) Format { return Format{name, extensions[name]} })
}

func (r Formats) names() []string {
	return lists.Of(r, func(f Format) string { return f.Name })
}

// Words lists the formats with their extensions.
func (r Formats) Words() string {
	var words []string
	for _, f := range r {
		word := f.Name
		if len(f.Extensions) > 0 {
			word += " (" + strings.Join(f.Extensions, ", ") + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// Parse reads one --report: FORMAT=FILE, or a FILE whose extension names the format.
func (r Formats) Parse(flag string) (format, file string, err error) {
	format, file, given := strings.Cut(flag, "=")
	if !given {
		if format = r.byExtension(flag); format != "" {
			return format, flag, nil
		}
		if slices.Contains(r.names(), flag) {
			return "", "", exit.Usagef("--report %q is not FORMAT=FILE: name the file too, such as %s=FILE", flag, flag)
		}
		return "", "", exit.Usagef("--report %q is not FORMAT=FILE, and the extension names no format; formats are %s", flag, r.Words())
	}
	if file == "" {
		return "", "", exit.Usagef("--report %q is not FORMAT=FILE; formats are %s", flag, r.Words())
	}
	if slices.Contains(r.names(), format) {
		return format, file, nil
	}
	if near := suggest.Word(format, r.names()); near != "" {
		return "", "", exit.Usagef("--report %s: unknown format %q, did you mean %s?", flag, format, near)
	}
	return "", "", exit.Usagef("--report %s: unknown format %q; formats are %s", flag, format, r.Words())
}

// byExtension is the format that the longest extension of a file names.
func (r Formats) byExtension(file string) string {
	name, found, length := strings.ToLower(filepath.Base(file)), "", 0
	for _, f := range r {
		for _, extension := range f.Extensions {
			if len(extension) > length && len(extension) < len(name) && strings.HasSuffix(name, extension) {
				found, length = f.Name, len(extension)
			}
		}
	}
	return found
}

// Assign gives the file of each --report to the place of its format. A place that has
// a file already keeps it: that is a usage error.
func (r Formats) Assign(flags []string, files map[string]*string) error {
	for _, flag := range flags {
		format, file, err := r.Parse(flag)
		if err != nil {
			return err
		}
		if *files[format] != "" {
			return exit.Usagef("--report %s: there is a %s file already: %s", flag, format, *files[format])
		}
		*files[format] = file
	}
	return nil
}
