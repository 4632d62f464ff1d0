package command

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// linkedBuild holds the values set at link time, or empty ones.
var linkedBuild struct{ version, commit, date string }

// LinkedBuild sets the values from link time: a version as in v1.2.3, a commit, and the
// date of that commit, RFC 3339. Empty values leave what Go wrote into the binary.
func LinkedBuild(version, commit, date string) {
	linkedBuild.version, linkedBuild.commit, linkedBuild.date = version, commit, date
}

// Build is what `destkit version --json` prints.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit, when Go knew one
	Modified bool   `json:"modified"`           // built from a changed tree
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuild collects the known facts about this binary.
func ReadBuild() Build {
	info := Build{Version: linkedBuild.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if ok {
		info.Version = cmp.Or(info.Version, build.Main.Version)
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
	if linkedBuild.commit != "" {
		info.Revision, info.Time = linkedBuild.commit, linkedBuild.date
		info.Modified = info.Modified || strings.HasSuffix(linkedBuild.version, "-dirty")
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = "devel"
	}
	return info
}

// Line is the version on one line, as --version prints it, too.
func (b Build) Line() string {
	words := []string{b.Go, b.Platform}
	if b.Revision != "" {
		words = append([]string{"commit " + b.Revision[:min(len(b.Revision), 12)], b.Time}, words...)
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	return fmt.Sprintf("%s (%s)", b.Version, strings.Join(words, ", "))
}
