package zoo_test

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/zoo/testdata/golang"
	"github.com/destkit/destkit/conformance/internal/zoo/testdata/postgres"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
)

const token = "t0ken-Of-The-Zoo"

// programs start the servers of the other languages.
var programs = map[string][]string{
	Node:     {"node", "testdata/node/server.mjs"},
	Python:   {"python3", "testdata/python/server.py"},
	SQLite:   {"python3", "testdata/sqlite/server.py"},
	EventLog: {"python3", "testdata/eventlog/server.py"},
	Express:  {"node", "testdata/express/server.mjs"},
}

// process is a running server; it ends when its standard input does.
type process struct {
	base   string
	cmd    *exec.Cmd
	end    func() error
	stderr strings.Builder
}

func start(language string, env ...string) (*process, error) {
	p := &process{}
	argv := programs[language]
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append(append(os.Environ(), "ENDPOINT_TOKEN="+token), env...)
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.end = stdin.Close
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s server: %w", language, err)
	}
	port, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read the port of the %s server: %w: %s", language, err, p.stderr.String())
	}
	p.base = "http://127.0.0.1:" + strings.TrimSpace(port)
	return p, nil
}

// shared are the servers that all tests use, one for each language.
var shared = map[string]*sharedServer{Node: {}, Python: {}, SQLite: {}, EventLog: {}, Express: {}}

type sharedServer struct {
	once sync.Once
	p    *process
	err  error
}

// goServer and postgresServer are in this process.
var (
	goServer       = sync.OnceValue(func() *httptest.Server { return golang.Start(token) })
	postgresServer struct {
		once sync.Once
		url  string
	}
)

// postgresURL is where the endpoints on PostgreSQL answer.
func postgresURL(t *testing.T) string {
	t.Helper()
	to := testkit.StartPostgres(t)
	postgresServer.once.Do(func() {
		dsn := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=postgres", to.Folder, to.Port, testkit.PostgresUser, testkit.PostgresPassword)
		postgresServer.url = postgres.Start(token, dsn).URL
	})
	return postgresServer.url
}

// baseURL is where a server of the language answers.
func baseURL(t *testing.T, language string) string {
	t.Helper()
	switch language {
	case Go:
		return goServer().URL
	case Postgres:
		return postgresURL(t)
	}
	needProgram(t, language)
	s := shared[language]
	s.once.Do(func() { s.p, s.err = start(language) })
	require.NoError(t, s.err)
	return s.p.base
}

// ownURL starts a server for one judgement: it may crash.
func ownURL(t *testing.T, language string, restarts bool) string {
	t.Helper()
	needProgram(t, language)
	env := []string{"ENDPOINT_FOLDER=" + t.TempDir()}
	if restarts {
		env = append(env, "ENDPOINT_RESTARTS=yes")
	}
	p, err := start(language, env...)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.end()
		_ = p.cmd.Wait()
	})
	return p.base
}

// needProgram skips the test on a machine without the language.
func needProgram(t *testing.T, language string) {
	t.Helper()
	needed := slices.Clone(programs[language][:1])
	if language == Express {
		needed = append(needed, "python3") // drives SQLite
	}
	for _, name := range needed {
		if _, err := exec.LookPath(name); err != nil {
			matrixtest.Missing(t, name, "%s is not installed: its endpoints are not judged", name)
		}
	}
}

// TestMain prints and writes what was found, and ends the servers; their output to standard error
// is a mistake of ours.
func TestMain(m *testing.M) {
	status := testkit.RunWithPostgres(m)
	if len(results.mistakes) > 0 {
		fmt.Println(results.summary())
	}
	if *update {
		if err := results.write("../../../docs/evidence/zoo.md"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	for language, s := range shared {
		if s.p == nil {
			continue
		}
		_ = s.p.end()
		if err := s.p.cmd.Wait(); err != nil || s.p.stderr.Len() > 0 {
			fmt.Fprintf(os.Stderr, "the %s server: %v\n%s\n", language, err, s.p.stderr.String())
			status = 1
		}
	}
	os.Exit(status)
}
