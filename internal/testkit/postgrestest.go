//go:build unix

package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/destkit/destkit/internal/matrixtest"
)

// StartPostgres gives the server of this test run, and starts it for the first caller.
// Without the programs of a server the test is skipped. TestMain ends the server with
// Stop; it ends with the process, too.
func StartPostgres(t testing.TB) Postgres {
	t.Helper()
	if programs() == "" {
		matrixtest.Missing(t, "postgres", "PostgreSQL is not installed: no initdb in /usr/lib/postgresql/*/bin or in the path")
	}
	asked.Store(true)
	s, err := once()
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	return Postgres{s.folder, s.port}
}

// Credentials are those of a source of type postgres.
func (s Postgres) Credentials() map[string]any {
	return map[string]any{"host": s.Folder, "port": s.Port, "database": "postgres", "username": PostgresUser, "password": PostgresPassword}
}

// StopPostgres ends the server if it was started.
func StopPostgres() error {
	if !asked.Load() {
		return nil
	}
	s, err := once()
	if err != nil {
		return nil // it never ran
	}
	if err := s.stop(); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return nil
}

// RunWithPostgres is m.Run, and then StopPostgres: the body of a TestMain.
func RunWithPostgres(m *testing.M) int {
	code := m.Run()
	if err := StopPostgres(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

var (
	once  = sync.OnceValues(start)
	asked atomic.Bool
)

type server struct {
	folder string
	port   int
	stop   func() error
}

// programs finds the newest server programs.
func programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

// start runs initdb and the server, as another user where this one is
// root: the server refuses to run as root.
func start() (s *server, err error) {
	bin := programs()
	folder, err := os.MkdirTemp(memory(), "pg") // short: a socket's path has 107 bytes
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder)
		}
	}()
	s = &server{folder: folder}
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
	if err := os.WriteFile(password, []byte(PostgresPassword), 0o644); err != nil {
		return nil, err
	}
	data := filepath.Join(s.folder, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", PostgresUser, "-A", "md5", "--pwfile", password, "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = attributes, s.folder
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if s.port, err = FreePort(); err != nil {
		return nil, err
	}
	// The shell ends the server when its input ends, and leaves nothing: also when
	// this process dies. The folder itself may lie in one where only this process may
	// remove it.
	cmd := exec.Command("sh", "-c", `"$@" & server=$!; read line; kill -INT $server; wait $server; rm -rf "$0" || :`, s.folder,
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
		return errors.Join(cmd.Wait(), os.RemoveAll(s.folder))
	}
	return s, nil
}

// FreePort is a port of the loopback that is not in use, with the port after it. It
// is below the ports that a system hands out by itself, from 32768 on Linux and
// 49152 elsewhere: a connection that some other test opens meanwhile cannot take it.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := 20_000 + 2*rand.IntN(5_000)
		if err = listen(port); err == nil {
			err = listen(port + 1)
		}
		if err == nil {
			return port, nil
		}
	}
	return 0, err
}

// listen opens a port and closes it again.
func listen(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
