package store

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// The test program is also the second process that some tests need.
const (
	childTask = "DESTKIT_STORE_TEST_TASK"
	childDir  = "DESTKIT_STORE_TEST_DIR"
)

func TestMain(m *testing.M) {
	tasks := map[string]func(*Store) error{"hold": hold, "write": write, "world": oneWorld}
	task := tasks[os.Getenv(childTask)]
	if task == nil {
		os.Exit(m.Run())
	}
	s, err := Open(context.Background(), Options{Dir: os.Getenv(childDir), MasterKey: testKey, Owner: "pid 4711, http://127.0.0.1:8080"})
	if err == nil {
		err = task(s)
	}
	fmt.Println("failed:", err)
	os.Exit(1)
}

// child is a running second process.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func start(t testing.TB, task string, o Options) *child {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.Command(program)}
	c.cmd.Env = append(os.Environ(), childTask+"="+task, childDir+"="+o.Dir)
	c.cmd.Stderr = os.Stderr
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewScanner(out)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(c.kill)
	return c
}

func (c *child) line(t testing.TB) string {
	t.Helper()
	require.True(t, c.lines.Scan(), "the second process ended")
	return c.lines.Text()
}

// kill ends the process at once, as kill -9 does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// hold keeps the directory, and changes its text on request.
func hold(s *Store) error {
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := s.SetOwner(lines.Text()); err != nil {
			return err
		}
		fmt.Println("named")
	}
	return lines.Err()
}

// write changes several tables in each transaction and reports each.
func write(s *Store) error {
	for n := 1; ; n++ {
		if err := s.Update(context.Background(), func(tx *Tx) error { return writeRound(tx) }); err != nil {
			return err
		}
		fmt.Println("committed", n)
	}
}

// mailsPerRound is what a round adds to the mailbox besides the rest.
const mailsPerRound = 3

// writeRound is one transaction whose parts belong together: the setting
// counts the rounds, and each has its organization, workspace key and mails.
func writeRound(tx *Tx) error {
	rounds, err := roundsDone(tx)
	if err != nil {
		return err
	}
	o := &Organization{Name: fmt.Sprint(rounds + 1)}
	if err := tx.CreateOrganization(o); err != nil {
		return err
	}
	for range mailsPerRound {
		if err := Mails.Create(tx, &Mail{OrganizationID: o.ID, Text: fmt.Sprintf("%2000d", rounds)}); err != nil {
			return err
		}
	}
	w := &Workspace{OrganizationID: o.ID, Name: "w"}
	if err := Workspaces.Create(tx, w); err != nil {
		return err
	}
	if _, err := tx.NewWorkspaceKey(w.ID); err != nil {
		return err
	}
	return tx.SetSetting("rounds", fmt.Sprint(rounds+1))
}

func roundsDone(tx *Tx) (int, error) {
	n, err := tx.number("SELECT count(*) FROM settings WHERE key = 'rounds'")
	if err != nil || n == 0 {
		return 0, err
	}
	text, err := tx.Setting("rounds")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// requireWhole checks that only whole rounds are stored and nothing is damaged;
// it gives their number.
func requireWhole(t testing.TB, s *Store) int {
	t.Helper()
	var rounds int
	view(t, s, func(tx *Tx) {
		var err error
		rounds, err = roundsDone(tx)
		require.NoError(t, err)
		all, total, err := tx.Organizations(Page{Ascending: true})
		require.NoError(t, err)
		require.EqualValues(t, rounds, total)
		for i, o := range all {
			require.Equal(t, fmt.Sprint(i+1), o.Name)
			_, mails, err := Mails.List(tx, o.ID, Page{PerPage: 1})
			require.NoError(t, err)
			require.EqualValues(t, mailsPerRound, mails)
			workspaces, _, err := Workspaces.List(tx, o.ID, Page{})
			require.NoError(t, err)
			require.Len(t, workspaces, 1)
			key, err := tx.WorkspaceKey(workspaces[0].ID)
			require.NoError(t, err)
			found, err := tx.WorkspaceByKey(key)
			require.NoError(t, err)
			require.Equal(t, workspaces[0], found)
		}
	})
	requireIntact(t, s)
	return rounds
}

// requireIntact checks the file, its foreign keys and its counts.
func requireIntact(t testing.TB, s *Store) {
	t.Helper()
	view(t, s, func(tx *Tx) {
		require.NoError(t, tx.query("PRAGMA integrity_check", func(c sqlite.Row) error { require.Equal(t, "ok", c.Text(0)); return nil }))
		require.NoError(t, tx.query("PRAGMA foreign_key_check", func(c sqlite.Row) error { require.Fail(t, "broken reference in "+c.Text(0)); return nil }))
		n, err := tx.number("SELECT sum(rows) FROM row_counts WHERE name = 'mails'")
		require.NoError(t, err)
		counted, err := tx.number("SELECT count(*) FROM mails")
		require.NoError(t, err)
		require.Equal(t, counted, n)
	})
}

// oneWorld fills the directory and reports its token and key.
func oneWorld(s *Store) error {
	var t failing
	err := s.Update(context.Background(), func(tx *Tx) error {
		w := build(&t, tx, "acme")
		return json.NewEncoder(os.Stdout).Encode([]string{w.Token, w.Key})
	})
	if err == nil {
		err = s.RotateDataKeys(context.Background())
	}
	if err == nil {
		err = s.Update(context.Background(), func(tx *Tx) error { build(&t, tx, "other"); return nil })
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// failing lets a second process use what tests use.
type failing struct{ testing.TB }

func (failing) Helper()                      {}
func (failing) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (failing) FailNow()                     { panic("failed") }
