package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
)

// version, commit and date are set at link time (-X main.version=v1.2.3); without
// that they are what Go wrote into the binary. date is that of the commit, RFC 3339,
// so that a commit gives the same bytes whenever it is built.
var version, commit, date string

// buildInfo is what `destkit version --json` prints.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit, when Go knew one
	Modified bool   `json:"modified"`           // built from a changed tree
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// readBuild collects what is known about this binary.
func readBuild() buildInfo {
	info := buildInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if ok {
		if info.Version == "" {
			info.Version = build.Main.Version
		}
		for _, setting := range build.Settings {
			switch setting.Key {
			case "vcs.revision":
				info.Revision = setting.Value
			case "vcs.modified":
				info.Modified = setting.Value == "true"
			case "vcs.time":
				info.Time = setting.Value
			}
		}
	}
	if commit != "" {
		info.Revision, info.Time = commit, date
		info.Modified = info.Modified || strings.HasSuffix(version, "-dirty")
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = "devel"
	}
	return info
}

// line is the version on one line, as --version prints it, too.
func (b buildInfo) line() string {
	words := []string{b.Go, b.Platform}
	if b.Revision != "" {
		words = append([]string{"commit " + b.Revision[:min(len(b.Revision), 12)], b.Time}, words...)
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	return fmt.Sprintf("%s (%s)", b.Version, strings.Join(words, ", "))
}

// newVersion says which build made a report; the report carries the same words.
func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print which build this is",
		Long:    "Print the version, the commit and the Go release that this program was\nbuilt from.",
		Example: "  destkit version\n  destkit version --json",
		Args:    arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := readBuild()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), info)
			}
			foreign.Printf(cmd.OutOrStdout(), "destkit %s\n", info.line())
			if info.Revision != "" {
				foreign.Printf(cmd.OutOrStdout(), "commit %s %s\n", info.Revision, info.Time)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printJSON writes v indented.
func printJSON(w io.Writer, v any) error {
	if err := foreign.EncodeJSON(w, v, "  "); err != nil {
		return exit.Untested(fmt.Errorf("print json: %w", err))
	}
	return nil
}
