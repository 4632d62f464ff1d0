//go:build unix

package skeletons

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
)

// image is what the steps of a Dockerfile have made below root.
type image struct {
	root, folder, user string
	env, volumes       []string
	command            []string
	owned              map[string]bool // folders that a step gave to a user
}

// anybody is the user of images here: one that owns nothing.
const anybody = 65534

// rooted are the absolute paths in a step.
var rooted = regexp.MustCompile(`(^|[\s=])(/(?:app|data)\b)`)

// buildImage does the steps of a Dockerfile in a folder, except those that fetch packages.
func buildImage(t *testing.T, context string) *image {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(context, "Dockerfile"))
	require.NoError(t, err)
	i := &image{root: t.TempDir(), owned: map[string]bool{}}
	for _, folder := range []string{i.root, filepath.Dir(i.root)} {
		require.NoError(t, os.Chmod(folder, 0o755)) // its user must get there
	}
	for line := range strings.Lines(string(text)) {
		step, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		i.step(t, context, step, rooted.ReplaceAllString(rest, "${1}"+i.root+"${2}"))
	}
	return i
}

func (i *image) step(t *testing.T, context, step, rest string) {
	t.Helper()
	switch step {
	case "WORKDIR":
		i.folder = rest
		require.NoError(t, os.MkdirAll(i.folder, 0o755))
	case "COPY":
		words := strings.Fields(rest)
		for _, pattern := range words[:len(words)-1] {
			files, err := filepath.Glob(filepath.Join(context, pattern))
			require.NoError(t, err)
			for _, file := range files {
				content, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(i.folder, filepath.Base(file)), content, 0o644))
			}
		}
	case "RUN":
		if strings.HasPrefix(rest, "npm ") {
			return
		}
		for command := range strings.SplitSeq(rest, " && ") {
			if owner := strings.Fields(command); owner[0] == "chown" {
				i.owned[owner[2]] = true
				require.NoError(t, os.Chown(owner[2], i.uid(), -1))
				continue
			}
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = i.folder
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", command, out)
		}
	case "USER":
		i.user = rest
	case "ENV":
		i.env = append(i.env, strings.Fields(rest)...)
	case "VOLUME":
		require.Contains(t, i.owned, rest, "a volume has the owner that the folder had before")
		i.volumes = append(i.volumes, rest)
	case "CMD":
		require.NoError(t, json.Unmarshal([]byte(rest), &i.command))
	}
}

// uid is the user of the image, or that of the test where it is no other's to give.
func (i *image) uid() int {
	if os.Geteuid() == 0 {
		return anybody
	}
	return os.Geteuid()
}

// start starts the program of the image as its user and gives its URL.
func (i *image) start(t *testing.T) string {
	t.Helper()
	port, err := testkit.FreePort()
	require.NoError(t, err)
	require.NotEmpty(t, i.user)
	cmd := exec.Command(runtimeOf(i.command[0]), i.command[1:]...)
	cmd.Dir = i.folder
	cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH")}, i.env...), "HOST=127.0.0.1", fmt.Sprintf("PORT=%d", port), "DESTINATION_TOKEN=try-me")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: anybody, Gid: anybody}}
	} else {
		require.NoError(t, os.Chmod(i.folder, 0o555)) // it belongs to root in an image
	}
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended; ended <- nil })
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	for {
		response, err := http.Get(url + "healthz")
		if err == nil {
			_ = response.Body.Close()
			require.Equal(t, http.StatusOK, response.StatusCode)
			return url
		}
		select {
		case err := <-ended:
			ended <- err
			require.FailNow(t, "the program ended", "%v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestImageOfSQLiteStartsAsItsUser: the folder of the records belongs to the user of the
// image, who owns nothing else, and outlives the container.
func TestImageOfSQLiteStartsAsItsUser(t *testing.T) {
	for _, language := range []string{"python", "node", "typescript"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			context := t.TempDir()
			files, err := Files(Choice{Language: language, Store: "sqlite", Pipeline: "none", Port: 8080})
			require.NoError(t, err)
			for _, file := range files {
				require.NoError(t, os.WriteFile(filepath.Join(context, file.Name), file.Content, 0o644))
			}
			i := buildImage(t, context)
			if err := exec.Command(runtimeOf(i.command[0]), trial[language]...).Run(); err != nil {
				matrixtest.Missing(t, i.command[0]+" with SQLite", "%s with SQLite for %s is not installed", i.command[0], language)
			}
			i.start(t)
			require.Len(t, i.volumes, 1)
			info, err := os.Stat(filepath.Join(i.volumes[0], "records.db"))
			require.NoError(t, err)
			require.EqualValues(t, i.uid(), info.Sys().(*syscall.Stat_t).Uid)
		})
	}
	files, err := Files(Choice{Language: "go", Store: "sqlite", Pipeline: "none", Port: 8080})
	require.NoError(t, err)
	for _, file := range files {
		if file.Name == "Dockerfile" {
			require.Regexp(t, `(?s)RUN mkdir /data.*COPY --from=build --chown=nonroot /data /data\n.*DATABASE=/data/records.db\nVOLUME /data\n`, string(file.Content))
		}
	}
}

// runtimeOf is where a program is that any user can start: others may be in a home.
func runtimeOf(name string) string {
	for _, folder := range []string{"/usr/local/bin", "/usr/bin"} {
		if file, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return file
		}
	}
	return name
}

// trial are arguments with which a runtime succeeds that has what a skeleton needs.
var trial = map[string][]string{
	"python":     {"-c", "import sqlite3"},
	"node":       {"-e", "require('node:sqlite')"},
	"typescript": {"-e", "require('node:sqlite'); if (!process.features.typescript) process.exit(1)"},
}
