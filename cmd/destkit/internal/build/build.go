// Package build says which build of destkit this is, for `destkit version`, the
// reports and the first line of a server. What the linker has set is told to it by
// the program, once, before anything asks.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// linked is what was set at link time; empty where nothing was.
var linked struct{ version, commit, date string }

// Linked tells what was set at link time: a version as in v1.2.3, a commit, and the
// date of that commit, RFC 3339. Empty values leave what Go wrote into the binary.
func Linked(version, commit, date string) {
	linked.version, linked.commit, linked.date = version, commit, date
}

// Info is what `destkit version --json` prints.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit, when Go knew one
	Modified bool   `json:"modified"`           // built from a changed tree
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read collects what is known about this binary.
func Read() Info {
	info := Info{Version: linked.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
	if linked.commit != "" {
		info.Revision, info.Time = linked.commit, linked.date
		info.Modified = info.Modified || strings.HasSuffix(linked.version, "-dirty")
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = "devel"
	}
	return info
}

// Line is the version on one line, as --version prints it, too.
func (b Info) Line() string {
	words := []string{b.Go, b.Platform}
	if b.Revision != "" {
		words = append([]string{"commit " + b.Revision[:min(len(b.Revision), 12)], b.Time}, words...)
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	return fmt.Sprintf("%s (%s)", b.Version, strings.Join(words, ", "))
}
