//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/skeletons"
	"github.com/destkit/destkit/internal/testkit"
)

// TestInit runs the printed commands, in fresh shells, for the two languages
// that need nothing installed. It reports what it needs of a machine.
func TestInit(t *testing.T) {
	if testing.Short() {
		t.Skip("skeletons are not judged with -short")
	}
	t.Parallel()
	for _, language := range []string{"node", "python"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			initAndJudge(t, language, "memory", needRuntime(t, language, "memory"))
		})
	}
}

// TestMatrixInit does it for every language and store, three at a time: most of it is
// waiting for npm, compilers and pauses of the judge.
func TestMatrixInit(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("skeletons that need packages or compilers are judged with DESTKIT_TIER=full")
	}
	t.Cleanup(func() { _ = os.RemoveAll(nodeFolder()) })
	free := make(chan struct{}, 3)
	for _, language := range skeletons.Languages {
		for _, store := range skeletons.Stores {
			t.Run(language+"/"+store, func(t *testing.T) {
				t.Parallel()
				path := needRuntime(t, language, store) // others go on while npm fetches a newer Node
				free <- struct{}{}
				defer func() { <-free }()
				initAndJudge(t, language, store, path)
			})
		}
	}
}

// complaints are the lines of a verdict that a skeleton must not cause.
var complaints = regexp.MustCompile(`(?m)^ *(FAIL|FLAKY|WARN|HARNESS_ERROR) .*$`)

func initAndJudge(t *testing.T, language, store, path string) {
	begun := time.Now()
	var took []string
	lap := func(what string) {
		took = append(took, fmt.Sprintf("%s %.1f s", what, time.Since(begun).Seconds()))
		begun = time.Now()
	}
	database := ""
	if store == "postgres" {
		database = testDatabase(t)
	}
	folder := filepath.Join(t.TempDir(), "my destination")
	port, err := testkit.FreePort()
	require.NoError(t, err)
	out, err := exec.Command("destkit", "init", folder, "--lang", language, "--store", store, "--port", fmt.Sprint(port)).CombinedOutput()
	require.NoError(t, err, string(out))
	start, judge := printedCommands(t, string(out))

	commands, err := skeletons.CommandsOf(skeletons.Choice{Language: language, Store: store, Pipeline: "none", Port: port})
	require.NoError(t, err)
	test := freshShell(t, path, database, append([]string{"cd '" + folder + "'"}, commands.Test...))
	out, err = test.CombinedOutput()
	require.NoError(t, err, string(out))
	lap("its own test")

	stop := startSkeleton(t, freshShell(t, path, database, start))
	lap("start")
	report := filepath.Join(t.TempDir(), "report.json")
	judge[len(judge)-1] += " --report '" + report + "'"
	out, err = freshShell(t, path, database, judge).CombinedOutput()
	require.NoError(t, err, string(out))
	lap("judgement")
	t.Logf("%s/%s: %s", language, store, strings.Join(took, ", "))
	require.Empty(t, complaints.FindAllString(string(out), -1), string(out))
	require.Contains(t, string(out), "0 records left behind; tier semantics")
	requireDecided(t, report, store)
	require.NotContains(t, stop(), skeletons.Token, "the log holds the token")
}

// requireDecided: checks that need a hook of the skeleton are decided.
func requireDecided(t *testing.T, report, store string) {
	t.Helper()
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	var judged struct {
		Checks []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"checks"`
	}
	require.NoError(t, json.Unmarshal(text, &judged))
	statuses := map[string]string{}
	for _, check := range judged.Checks {
		statuses[check.ID] = check.Status
	}
	hooked := []string{"CON-002", "ERR-001", "STA-001", "AUTH-009"}
	if store != "memory" {
		hooked = append(hooked, "DUR-003", "STA-007")
	}
	for _, id := range hooked {
		require.Equal(t, "PASS", statuses[id], id)
	}
}

// printedCommands are the two blocks of commands that init has printed.
func printedCommands(t *testing.T, out string) (start, judge []string) {
	_, rest, found := strings.Cut(out, "\nStart the endpoint (")
	require.True(t, found, out)
	_, rest, found = strings.Cut(rest, "):\n") // what it needs
	require.True(t, found, out)
	first, second, found := strings.Cut(rest, "\nJudge it, in another terminal:\n")
	require.True(t, found, out)
	return strings.Split(strings.TrimSpace(first), "\n"), strings.Split(strings.TrimSpace(second), "\n")
}

// freshShell is a shell that knows nothing of a skeleton but where its database is, if
// it has one.
func freshShell(t *testing.T, path, database string, lines []string) *exec.Cmd {
	cmd := exec.Command("sh", "-e", "-c", strings.Join(lines, "\n"))
	cmd.Dir = t.TempDir()
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		if !slices.Contains([]string{"DESTINATION_TOKEN", "PORT", "HOOKS_PORT", "HOST", "DATABASE", "DATABASE_URL", "PATH"}, name) {
			cmd.Env = append(cmd.Env, setting)
		}
	}
	// The next skeleton takes packages of the first from npm's cache.
	cmd.Env = append(cmd.Env, "PATH="+path, "npm_config_prefer_offline=true", "npm_config_audit=false", "npm_config_fund=false")
	if database != "" {
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database)
	}
	return cmd
}

// testDatabase makes a database for a skeleton: all of them make the same tables.
func testDatabase(t *testing.T) string {
	server := testkit.StartPostgres(t)
	at := url.URL{
		Scheme: "postgres", User: url.UserPassword(testkit.PostgresUser, testkit.PostgresPassword),
		Host: net.JoinHostPort("127.0.0.1", fmt.Sprint(server.Port)), Path: "/postgres",
	}
	admin, err := pgx.Connect(t.Context(), at.String())
	require.NoError(t, err)
	defer admin.Close(context.WithoutCancel(t.Context()))
	name := fmt.Sprintf("skeleton_%d", databases.Add(1))
	_, err = admin.Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	at.Path = "/" + name
	return at.String()
}

// databases counts those of this test run.
var databases atomic.Int32

// startSkeleton waits until the endpoint listens. stop ends it and returns its
// output.
func startSkeleton(t *testing.T, cmd *exec.Cmd) (stop func() string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr, printed bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) })
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "hooks ") {
		printed.WriteString(lines.Text() + "\n")
	}
	require.Contains(t, lines.Text(), "hooks http://127.0.0.1:", "%s%s", printed.String(), &stderr)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
			printed.WriteString(lines.Text() + "\n")
		}
	}()
	return func() string {
		cancel()
		<-drained
		_ = cmd.Wait() // the shell dies of the signal, too
		return printed.String() + stderr.String()
	}
}

// needRuntime gives the path on which the runtime of a skeleton is.
func needRuntime(t *testing.T, language, store string) string {
	path := os.Getenv("PATH")
	switch language {
	case "node", "typescript":
		needProgram(t, language, "npm")
		if (store == "sqlite" || language == "typescript") && exec.Command("node", "-e", newNode).Run() != nil {
			return newerNode(t) + string(filepath.ListSeparator) + path
		}
	case "python":
		needProgram(t, language, "python3")
		const driver = "import psycopg_pool, venv, ensurepip"
		if store != "postgres" || exec.Command("python3", "-c", driver).Run() == nil {
			return path
		}
		if exec.Command("/usr/bin/python3", "-c", driver).Run() != nil {
			matrixtest.Missing(t, "psycopg", "python3-psycopg-pool and python3-venv are not installed: the skeleton in python with postgres is not judged")
		}
		return "/usr/bin" + string(filepath.ListSeparator) + path
	default:
		needProgram(t, language, "go")
	}
	return path
}

// newNode fails in a Node that has no node:sqlite or does not run TypeScript.
const newNode = "require('node:sqlite'); process.exit(process.features.typescript ? 0 : 1)"

// newerNode is the folder of a Node that is new enough, where the installed one is
// not. The first caller installs it.
func newerNode(t *testing.T) string {
	folder, err := installNode()
	require.NoError(t, err)
	return folder
}

// nodeFolder is removed after the matrix.
func nodeFolder() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("destkit-test-node-%d", os.Getpid()))
}

var installNode = sync.OnceValues(func() (string, error) {
	folder := nodeFolder()
	out, err := exec.Command("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "node@24").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("install a newer Node: %w: %s", err, out)
	}
	return filepath.Join(folder, "node_modules", ".bin"), nil
})

func needProgram(t *testing.T, language, name string) {
	if _, err := exec.LookPath(name); err != nil {
		matrixtest.Missing(t, name, "%s is not installed: the skeleton in %s is not judged", name, language)
	}
}

// TestInitNeverOverwrites: existing files stay, and nothing else is written.
func TestInitNeverOverwrites(t *testing.T) {
	folder := t.TempDir()
	mine := filepath.Join(folder, "README.md")
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	out, err := exec.Command("destkit", "init", folder, "--lang", "node").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "README.md exists already in "+folder)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	out, err = exec.Command("destkit", "init", folder, "--lang", "node", "--force").CombinedOutput()
	require.NoError(t, err, string(out))
	content, err := os.ReadFile(mine)
	require.NoError(t, err)
	require.NotEqual(t, "mine", string(content))
}
