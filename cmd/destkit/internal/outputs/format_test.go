package outputs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// TestReportFormats: an extension names the format of a file; a format that is given
// wins.
func TestReportFormats(t *testing.T) {
	for flag, want := range map[string][2]string{
		"json=r.txt":       {"json", "r.txt"},
		"html=a=b":         {"html", "a=b"},
		"out.html":         {"html", "out.html"},
		"folder/OUT.HTM":   {"html", "folder/OUT.HTM"},
		"r.json":           {"json", "r.json"},
		"r.sarif":          {"sarif", "r.sarif"},
		"r.sarif.json":     {"sarif", "r.sarif.json"},
		"junit.xml":        {"junit", "junit.xml"},
		"summary.md":       {"markdown", "summary.md"},
		"r.har":            {"har", "r.har"},
		"r.txt":            {"text", "r.txt"},
		"badge=badge.json": {"badge", "badge.json"},
		"github=-":         {"github", "-"},
	} {
		format, file, err := JudgeFormats().Parse(flag)
		require.NoError(t, err, flag)
		require.Equal(t, want, [2]string{format, file}, flag)
	}
	for flag, want := range map[string]string{
		"out.pdf": "the extension names no format; formats are text (.txt), json (.json), junit (.xml), html (.html, .htm)",
		"-":       "the extension names no format",
		".html":   "the extension names no format",
		"json":    "name the file too, such as json=FILE",
		"json=":   "is not FORMAT=FILE",
		"htlm=r":  "did you mean html?",
		"zebra=r": `unknown format "zebra"; formats are text (.txt)`,
	} {
		_, _, err := JudgeFormats().Parse(flag)
		require.ErrorContains(t, err, want, flag)
		requireUsage(t, err)
	}
}

// TestReportsThatCannotBeWritten are refused before anything is sent.
func TestReportsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for want, flags := range map[string][]string{
		"that is a folder; name a file in it":                    {"json=" + dir},
		"there is no folder " + dir + "/none":                    {"json=" + dir + "/none/r.json"},
		"another report, json=" + dir + "/a.x, goes to the same": {"json=" + dir + "/a.x", "html=" + dir + "/./a.x"},
	} {
		_, err := Parse(flags)
		require.ErrorContains(t, err, want)
		requireUsage(t, err)
	}
	_, err := Parse([]string{"json=" + dir + "/r.json", "html=" + dir + "/r.html", "text=-"})
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	if os.Geteuid() == 0 {
		return // may write everywhere
	}
	require.NoError(t, os.WriteFile(dir+"/old.json", nil, 0o600))
	link := t.TempDir() + "/link.json"
	require.NoError(t, os.Symlink(dir+"/old.json", link))
	require.NoError(t, os.Chmod(dir, 0o500))
	for _, file := range []string{dir + "/r.json", dir + "/old.json", link} { // the old one is replaced, so that no half of a report is left
		_, err = Parse([]string{"json=" + file})
		require.ErrorContains(t, err, "no permission to write into the folder "+dir)
		requireUsage(t, err)
	}
	_, err = Parse([]string{"json=" + os.DevNull})
	require.NoError(t, err)
}

func requireUsage(t *testing.T, err error) {
	t.Helper()
	var ended *exit.Error
	require.ErrorAs(t, err, &ended)
	require.Equal(t, exit.BadUsage, ended.Status)
}
