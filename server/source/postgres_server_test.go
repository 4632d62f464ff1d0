//go:build unix

package source

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const postgresPassword = "pg-s3cret-word"

// server is a PostgreSQL of this test run alone: in a folder of its own, on a
// free port of the loopback and on a socket in that folder.
type server struct {
	folder string
	port   int
	stop   func() error
}

var postgresServer = sync.OnceValues(startPostgres)

func TestMain(m *testing.M) {
	code := m.Run()
	if started {
		if s, err := postgresServer(); err == nil {
			if err := s.stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
				code = max(code, 1)
			}
		}
	}
	os.Exit(code)
}

var started bool

// postgresFolder finds the newest server programs.
func postgresFolder() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

// postgresCredentials starts the server, once, and returns credentials with
// some changes. Without a server the test is skipped; in a pipeline it fails.
func postgresCredentials(t testing.TB, changes map[string]any) map[string]any {
	t.Helper()
	if postgresFolder() == "" {
		const missing = "PostgreSQL is not installed: no initdb in /usr/lib/postgresql/*/bin or in the path"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	started = true
	s, err := postgresServer()
	require.NoError(t, err)
	values := map[string]any{"host": s.folder, "port": s.port, "database": "postgres", "username": "tester", "password": postgresPassword}
	for key, v := range changes {
		if values[key] = v; v == nil {
			delete(values, key)
		}
	}
	return values
}

// startPostgres runs initdb and the server, as another user where this one is
// root: the server refuses to run as root.
func startPostgres() (s *server, err error) {
	bin := postgresFolder()
	s = &server{}
	if s.folder, err = os.MkdirTemp("", "pg"); err != nil { // short: a socket's path has 107 bytes
		return nil, err
	}
	attributes := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		who, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(s.folder, uid, gid); err != nil {
			return nil, err
		}
	}
	password := filepath.Join(s.folder, "password")
	if err := os.WriteFile(password, []byte(postgresPassword), 0o644); err != nil {
		return nil, err
	}
	data := filepath.Join(s.folder, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "tester", "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = attributes, s.folder
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	// The shell ends the server when its input ends: also when this process dies.
	cmd := exec.Command("sh", "-c", `"$@" & server=$!; read line; kill -INT $server; wait $server`, "sh",
		filepath.Join(bin, "postgres"), "-D", data, "-k", s.folder, "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
	cmd.SysProcAttr, cmd.Dir = attributes, s.folder
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var said strings.Builder
	lines := bufio.NewScanner(log)
	ready := false
	for !ready && lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		ready = strings.Contains(lines.Text(), "database system is ready to accept connections")
	}
	if !ready {
		return nil, fmt.Errorf("start postgres: %s", said.String())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	s.stop = func() error {
		_ = input.Close()
		<-drained
		_ = cmd.Wait()
		return os.RemoveAll(s.folder)
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
