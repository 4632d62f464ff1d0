package matrixtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// change is what a sample is drawn for.
type change struct {
	commit string   // chooses the twentieth
	since  string   // the base, in words
	files  []string // paths from the root of the repository; uncommitted ones too
	known  bool     // else which files have changed is not known
}

// thisChange is the change of the repository under test.
var thisChange = sync.OnceValue(func() change { return changeOf("", os.Getenv("DESTKIT_BASE")) })

// changeOf gets the change in a folder from git. The base is the first of these that
// exists: the named commit; where the branch left origin/main; the commit before.
func changeOf(folder, named string) change {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", append([]string{"-c", "core.quotePath=false"}, args...)...)
		cmd.Dir = folder
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	head, err := git("rev-parse", "HEAD")
	if err != nil {
		return change{since: "without git"}
	}
	c := change{commit: head, since: "a root that is not there"}
	base, why := "", ""
	if strings.Trim(named, "0") != "" { // a new branch has no commit before it, which is written as zeros
		base, _ = git("rev-parse", "--verify", "--quiet", named+"^{commit}")
		why = "DESTKIT_BASE"
	}
	if base == "" {
		if common, err := git("merge-base", "HEAD", "origin/main"); err == nil && common != head {
			base, why = common, "origin/main"
		}
	}
	if base == "" {
		base, _ = git("rev-parse", "--verify", "--quiet", "HEAD~1")
		why = "the commit before"
	}
	if base == "" {
		return c
	}
	changed, err := git("diff", "--name-only", "--relative=", base)
	fresh, freshErr := git("ls-files", "--others", "--exclude-standard", "--full-name", ":/")
	if cmp.Or(err, freshErr) != nil {
		return c
	}
	c.files, c.known = strings.FieldsFunc(changed+"\n"+fresh, func(r rune) bool { return r == '\n' }), true
	c.since = fmt.Sprintf("%.8s (%s)", base, why)
	return c
}
