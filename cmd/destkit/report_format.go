package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/suggest"
)

// reportFormats are the formats of a --report, in the order of help texts, with the
// extensions by which a file names them.
type reportFormats []reportFormat

type reportFormat struct {
	name       string
	extensions []string
}

// judgeFormats are those of `conform`. A badge and the annotations of GitHub have no
// extension that is theirs.
func judgeFormats() reportFormats {
	extensions := map[string][]string{
		report.Text: {".txt"}, report.JSON: {".json"}, report.JUnit: {".xml"}, report.HTML: {".html", ".htm"},
		report.Markdown: {".md"}, report.SARIF: {".sarif", ".sarif.json"}, report.HAR: {".har"},
	}
	var all reportFormats
	for _, name := range report.Formats() {
		all = append(all, reportFormat{name, extensions[name]})
	}
	return all
}

func (r reportFormats) names() []string {
	var names []string
	for _, f := range r {
		names = append(names, f.name)
	}
	return names
}

// words lists the formats with their extensions.
func (r reportFormats) words() string {
	var words []string
	for _, f := range r {
		word := f.name
		if len(f.extensions) > 0 {
			word += " (" + strings.Join(f.extensions, ", ") + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// parse reads one --report: FORMAT=FILE, or a FILE whose extension names the format.
func (r reportFormats) parse(flag string) (format, file string, err error) {
	format, file, given := strings.Cut(flag, "=")
	if !given {
		if format = r.byExtension(flag); format != "" {
			return format, flag, nil
		}
		if slices.Contains(r.names(), flag) {
			return "", "", exit.Usagef("--report %q is not FORMAT=FILE: name the file too, such as %s=FILE", flag, flag)
		}
		return "", "", exit.Usagef("--report %q is not FORMAT=FILE, and the extension names no format; formats are %s", flag, r.words())
	}
	if file == "" {
		return "", "", exit.Usagef("--report %q is not FORMAT=FILE; formats are %s", flag, r.words())
	}
	if slices.Contains(r.names(), format) {
		return format, file, nil
	}
	if near := suggest.Word(format, r.names()); near != "" {
		return "", "", exit.Usagef("--report %s: unknown format %q, did you mean %s?", flag, format, near)
	}
	return "", "", exit.Usagef("--report %s: unknown format %q; formats are %s", flag, format, r.words())
}

// byExtension is the format that the longest extension of a file names.
func (r reportFormats) byExtension(file string) string {
	name, found, length := strings.ToLower(filepath.Base(file)), "", 0
	for _, f := range r {
		for _, extension := range f.extensions {
			if len(extension) > length && len(extension) < len(name) && strings.HasSuffix(name, extension) {
				found, length = f.name, len(extension)
			}
		}
	}
	return found
}
