package serve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/testkit"
)

// ran is one command with all that it said.
func ran(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var text bytes.Buffer
	root := newProgram()
	root.SetOut(&text)
	root.SetErr(&text)
	status = command.Execute(t.Context(), root, args)
	require.NotContains(t, text.String(), testkit.PostgresPassword)
	require.NotContains(t, text.String(), "SECRET")
	return status, text.String()
}

// served starts a service and gives its lines up to one that begins so, and what
// ends it.
func served(t *testing.T, until string, args ...string) (lines []string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var said bytes.Buffer // read when it has ended
	ended := make(chan int, 1)
	go func() {
		root := newProgram()
		root.SetOut(writer)
		root.SetErr(&said)
		status := command.Execute(ctx, root, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-level", "off"}, args...))
		_ = writer.Close()
		ended <- status
	}()
	text := bufio.NewScanner(reader)
	for text.Scan() {
		lines = append(lines, text.Text())
		if strings.HasPrefix(text.Text(), until) {
			break
		}
	}
	if len(lines) == 0 {
		status := <-ended
		t.Errorf("%v did not start: %s", args, said.String())
		ended <- status
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }() // no one waits for us to read on
	return lines, func() int {
		cancel()
		return <-ended
	}
}

// TestServeOnPostgres keeps a service in PostgreSQL, over a restart, beside the
// commands for its keys, tokens and backups.
func TestServeOnPostgres(t *testing.T) {
	server := testkit.StartPostgres(t)
	t.Setenv(command.StorePasswordVariable, testkit.PostgresPassword)
	folder := t.TempDir()
	key, err := MakeKeyFile(filepath.Join(folder, "master.key"))
	require.NoError(t, err)
	place := []string{"--store", fmt.Sprintf("postgres://%s@/postgres?host=%s&port=%d", testkit.PostgresUser, server.Folder, server.Port), "--key-file", key.file}
	data := append([]string{"--data", filepath.Join(folder, "data")}, place...)

	status, out := ran(t, append([]string{"serve", "new-token"}, place...)...)
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "holds no data of a service")

	lines, stop := served(t, "shown once", data...)
	require.Contains(t, strings.Join(lines, "\n"), "workspace: 1\npersonal access token: pat_")
	require.Contains(t, lines[len(lines)-1], "destkit serve new-token --store 'postgres://tester@")
	status, out = ran(t, append([]string{"serve", "new-token"}, place...)...)
	require.Equal(t, 0, status, "beside the service: "+out)
	require.Contains(t, out, "pat_")
	status, out = ran(t, append([]string{"serve", "rotate-key", "--data-keys"}, place...)...)
	require.Equal(t, 0, status, out)
	require.Contains(t, out, "is sealed anew")
	backup := filepath.Join(folder, "backup.db")
	status, out = ran(t, append([]string{"serve", "backup", "--to", backup}, place[:2]...)...)
	require.Equal(t, 0, status, out)
	require.Equal(t, 0, stop())

	status, out = ran(t, append([]string{"serve", "rotate-key"}, place...)...)
	require.Equal(t, 0, status, out)
	status, out = ran(t, append([]string{"serve", "new-token"}, place...)...)
	require.Equal(t, 0, status, out)
	status, out = ran(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--restore", backup}, append([]string{"--data", filepath.Join(folder, "other")}, place...)...)...)
	require.Equal(t, 2, status, out)

	// The backup needs the key of its time, and moves the service to a directory.
	lines, stop = served(t, "listening", "--data", filepath.Join(folder, "embedded"), "--restore", backup, "--key-file", key.file+".old")
	url := strings.TrimPrefix(lines[0], "listening ")
	answer, err := http.Get(url + "/healthz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, 0, stop())
	status, out = ran(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(folder, "embedded")}, place...)...)
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "the data directory belongs to another store")
}

// TestStoresThatCannotBe: a slip is told from a database that does not answer.
func TestStoresThatCannotBe(t *testing.T) {
	folder := t.TempDir()
	key, err := MakeKeyFile(filepath.Join(folder, "master.key"))
	require.NoError(t, err)
	server := testkit.StartPostgres(t)
	t.Setenv(command.StorePasswordVariable, "")
	nameless := fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres", testkit.PostgresUser, server.Port)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--store", nameless}, 2, "without a password: the database cannot be used: "},
		{[]string{"--store", nameless}, 2, "; set " + command.StorePasswordVariable},
		{[]string{"--data", "d", "--store", "mysql://u:SECRET@h/d"}, 2, "--store: the database cannot be used: read its URL: it is not of the form postgres://"},
		{[]string{"--data", "d", "--store", "postgres://u:SECRET@h/d?search_path=a,b"}, 2, "is not the name of one schema"},
		{[]string{"--data", "d", "--store", "postgres://u:SECRET@127.0.0.1:1/d"}, 3, "connect to 127.0.0.1 port 1 as u: the database is not available: connect: connection refused"},
	} {
		status, out := ran(t, append(c.args, "--addr", "127.0.0.1:0", "--key-file", key.file, "serve")...)
		require.Equal(t, c.status, status, out)
		require.Contains(t, out, c.want)
	}
}

// TestDataIsAFolder: a file, and a folder below one, are refused before anything is made.
func TestDataIsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below", "it")} {
		for _, args := range [][]string{{"serve", "--data", dir}, {"serve", "new-token", "--data", dir}, {"serve", "backup", "--data", dir, "--to", filepath.Join(t.TempDir(), "b")}} {
			status, said := ran(t, args...)
			require.Equal(t, exit.BadUsage, status, said)
			require.Contains(t, said, "--data "+dir+": "+file+" is a file; give a folder", args)
		}
	}
}

// TestDataThatMustNotBeRead: a folder without permission is one line that says so.
func TestDataThatMustNotBeRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if _, err := os.ReadDir(dir); err == nil {
		t.Skip("this user may read everything")
	}
	status, said := ran(t, "serve", "--data", dir)
	require.Equal(t, exit.BadUsage, status, said)
	require.Contains(t, said, "this user has no permission to read the folder")
}
