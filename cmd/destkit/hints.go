package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
)

// Commands that a run shows work when they are pasted into a new shell in the same
// folder: they carry the flags that matter, and the files that they name exist.

// unrepeated are the flags that a command shown by a run leaves out: what was
// selected and how it was told, and files of that run alone.
var unrepeated = []string{
	"select", "skip", "report", "verbose", "quiet", "no-color", "journal", "require-complete", "require-clean",
	"profile-cpu", "profile-mem", "profile-trace", "header", "waivers", "watch", "watch-path", "exec",
}

// accessFlags are those that every call of an endpoint needs.
var accessFlags = []string{"token-env", "tls-roots", "development", "url-secret"}

// accessWords are the flags by which the run of cmd got in.
func accessWords(cmd *cobra.Command) string {
	return flagWords(cmd, func(f *pflag.Flag) bool { return slices.Contains(accessFlags, f.Name) }) + headerWords(cmd)
}

// rerunWords is the command line of cmd with its URL, $DESTKIT_URL where that holds a
// secret.
func rerunWords(cmd *cobra.Command, url string) string {
	words := cmd.CommandPath()
	secret := cmd.Flags().Lookup("url-secret")
	if shown := command.ShownURL(url); shown != "" && (secret == nil || secret.Value.String() == "") {
		words += " " + command.Quote(shown)
	} else if url != "" {
		words += ` "$DESTKIT_URL"`
	}
	return words + flagWords(cmd, func(f *pflag.Flag) bool { return !slices.Contains(unrepeated, f.Name) }) + headerWords(cmd)
}

// flagWords are the flags that were given and are wanted. A value that looks like a
// secret is left out with its flag.
func flagWords(cmd *cobra.Command, wanted func(*pflag.Flag) bool) string {
	var words strings.Builder
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !wanted(f) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case f.Value.Type() == "bool" && value == "true":
				words.WriteString(" --" + f.Name)
			case strings.Contains(value, "://") && command.ShownURL(value) == "":
			default:
				words.WriteString(" --" + f.Name + " " + command.Quote(value))
			}
		}
	})
	return words.String()
}

// headerWords are the headers with the names of variables in the place of values.
func headerWords(cmd *cobra.Command) string {
	f := cmd.Flags().Lookup("header")
	if f == nil || !f.Changed {
		return ""
	}
	words := ""
	for _, line := range f.Value.(pflag.SliceValue).GetSlice() {
		name, _, _ := strings.Cut(line, ":")
		variable := strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.ToUpper(strings.TrimSpace(name)))
		words += fmt.Sprintf(` --header "%s: $DESTKIT_HEADER_%s"`, strings.TrimSpace(name), variable)
	}
	return words
}

// writeBodies writes the files that the commands of findings name into the folder of
// the run.
func writeBodies(result *conformance.Report) error {
	var errs []error
	for _, check := range result.Checks {
		for _, finding := range check.Findings {
			for name, body := range finding.BodyFiles() {
				name = filepath.FromSlash(name)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					errs = append(errs, fmt.Errorf("write the body of a finding: %w", err))
					continue
				}
				if err := os.WriteFile(name, body, 0o600); err != nil {
					errs = append(errs, fmt.Errorf("write the body of a finding: %w", err))
				}
			}
		}
	}
	return errors.Join(errs...)
}
