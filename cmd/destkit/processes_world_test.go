//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/demo"
	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

// installation is a service of several processes of the real program on one
// PostgreSQL, each behind a cable of its own that can be cut.
type installation struct {
	t        testing.TB
	database testkit.Postgres
	admin    *pgx.Conn
	schema   string
	env      []string
	api      *syncs.Client // of the process that serves the API
}

// process is one of them.
type process struct {
	in    *installation
	role  string
	cmd   *exec.Cmd
	cable *cable
	url   string
	said  *saying
	ended chan struct{}
}

// saying is what a process has written so far.
type saying struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *saying) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func newInstallation(t testing.TB) *installation {
	t.Helper()
	in := &installation{t: t, database: testkit.StartPostgres(t), schema: fmt.Sprintf("processes_%d", time.Now().UnixNano())}
	var err error
	in.admin, err = pgx.Connect(t.Context(), fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres", testkit.PostgresUser, testkit.PostgresPassword, in.database.Port))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, in.admin.Close(context.Background())) })
	const key = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7"
	const token = "secret-token:processes"
	in.env = append(os.Environ(), command.MasterKeyVariable+"="+key, command.WorkspaceKeyVariable+"="+token, command.StorePasswordVariable+"="+testkit.PostgresPassword, "HOME="+t.TempDir())
	in.api = &syncs.Client{Token: token, HTTP: &http.Client{Timeout: 5 * time.Minute}}
	return in
}

// start runs one more process.
func (in *installation) start(role string, more ...string) *process {
	in.t.Helper()
	p := &process{in: in, role: role, cable: newCable(in.t, fmt.Sprintf("127.0.0.1:%d", in.database.Port)), said: &saying{}, ended: make(chan struct{})}
	where := fmt.Sprintf("postgres://%s@%s/postgres?search_path=%s", testkit.PostgresUser, p.cable.address(), in.schema)
	p.cmd = exec.Command("destkit", append([]string{"serve", "--addr", "127.0.0.1:0", "--store", where, "--role", role, "--log-level", "warn"}, more...)...)
	p.cmd.Env, p.cmd.Stderr = in.env, p.said
	out, err := p.cmd.StdoutPipe()
	require.NoError(in.t, err)
	require.NoError(in.t, p.cmd.Start())
	in.t.Cleanup(func() {
		p.kill()
		if in.t.Failed() {
			in.t.Logf("[%s %d]\n%s", role, p.cmd.Process.Pid, p.said)
		}
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(in.t, err, "%s", p.said)
	var listening bool
	p.url, listening = strings.CutPrefix(strings.TrimSpace(line), "listening ")
	require.True(in.t, listening, "%s", line)
	go func() {
		defer close(p.ended)
		_, _ = io.Copy(io.Discard, lines)
		_ = p.cmd.Wait()
	}()
	if in.api.Root == "" {
		in.api.Root = p.url
	}
	return p
}

// signal sends one; to a process that is gone it does nothing.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends it as a lost machine does.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
	p.cable.close()
}

// insist makes calls until one is answered with success: a service may say that it
// cannot answer for a moment, as any other may.
func (in *installation) insist(call func(context.Context) error) {
	in.t.Helper()
	for {
		err := call(in.t.Context())
		var refused *syncs.Error
		var lost *syncs.Unreachable
		if err == nil || !errors.As(err, &lost) && (!errors.As(err, &refused) || refused.Code < http.StatusInternalServerError) {
			require.NoError(in.t, err)
			return
		}
		require.NoError(in.t, in.t.Context().Err(), "%v", err)
		time.Sleep(100 * time.Millisecond)
	}
}

// make posts what is to be made and gives its id.
func (in *installation) make(path string, body any) int64 {
	in.t.Helper()
	var made struct {
		ID   int64 `json:"id"`
		Sync int64 `json:"sync_id"`
	}
	in.insist(func(ctx context.Context) error { return in.api.Post(ctx, path, body, &made) })
	return max(made.ID, made.Sync)
}

// destination connects an address.
func (in *installation) destination(name, url string) int64 {
	return in.make("/destinations", map[string]any{"service_connection": map[string]any{
		"name": name, "type": "custom_api", "credentials": map[string]any{"api_version": 1, "webhook_url": url + "/"},
	}})
}

// thing is the name of an object that is a number with two texts.
func thing(number int) string { return fmt.Sprintf("thing_%d", number) }

func things(count int) (objects []destsim.ObjectConfig) {
	for i := range count {
		objects = append(objects, destsim.ObjectConfig{
			Name: thing(i), Label: thing(i), Operations: []string{rpc.OperationUpsert, rpc.OperationMirror}, Fields: []destsim.FieldConfig{
				{Name: "id", Label: "Id", Type: rpc.TypeInteger, Identifier: true, Required: true, Unique: true},
				{Name: "first", Label: "First", Type: rpc.TypeString}, {Name: "second", Label: "Second", Type: rpc.TypeString},
			},
		})
	}
	return objects
}

// sync makes one of three columns: the number and the two texts.
func (in *installation) sync(from, to int64, object, operation string, source map[string]any, columns ...string) int64 {
	var mappings []map[string]any
	for i, field := range []string{"id", "first", "second"} {
		mappings = append(mappings, map[string]any{
			"from": map[string]any{"type": api.FromColumn, "data": columns[i]}, "to": field, "is_primary_identifier": i == 0,
		})
	}
	return in.make("/syncs", map[string]any{
		"label": object, "operation": operation, "mappings": mappings,
		"source_attributes":      map[string]any{"connection_id": from, "object": source},
		"destination_attributes": map[string]any{"connection_id": to, "object": object},
	})
}

// run triggers a sync and gives the id of its run.
func (in *installation) run(sync int64) (id int64) {
	in.insist(func(ctx context.Context) (err error) {
		id, err = in.api.Trigger(ctx, sync, false)
		return err
	})
	return id
}

// wait gives a run when it is over.
func (in *installation) wait(id int64) (r api.SyncRun) {
	in.t.Helper()
	for {
		in.insist(func(ctx context.Context) (err error) {
			r, err = in.api.Run(ctx, id)
			return err
		})
		if syncs.Over(r) {
			return r
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// audit holds source, ledger and destination of a sync against one another.
func (in *installation) audit(sync int64, readback string) (a demo.Audit) {
	in.insist(func(ctx context.Context) error {
		return in.api.Control(ctx, http.MethodPost, "/audit", map[string]any{"sync_id": sync, "readback": map[string]string{"url": readback + "/_control/readback"}}, &a)
	})
	return a
}

// cable is a connection to the database that can be cut, or go dead.
type cable struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	ends     map[net.Conn]bool
	cut      bool
	dead     chan struct{} // not nil while nothing passes; closed at its end
}

func newCable(t testing.TB, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{listener: l, to: to, ends: map[net.Conn]bool{}}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go c.join(in)
		}
	}()
	return c
}

func (c *cable) address() string { return c.listener.Addr().String() }

func (c *cable) join(in net.Conn) {
	defer in.Close()
	c.mu.Lock()
	refused := c.cut
	c.mu.Unlock()
	if refused {
		return
	}
	out, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer out.Close()
	c.mu.Lock()
	c.ends[in], c.ends[out] = true, true
	c.mu.Unlock()
	done := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		defer func() { done <- struct{}{} }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			c.mu.Lock()
			dead := c.dead
			c.mu.Unlock()
			if dead != nil {
				<-dead
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	go pass(out, in)
	go pass(in, out)
	<-done
	c.mu.Lock()
	delete(c.ends, in)
	delete(c.ends, out)
	c.mu.Unlock()
}

// sever ends all connections, and refuses others until mend.
func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for end := range c.ends {
		_ = end.Close()
	}
}

// numb lets nothing pass until mend, and tells no one.
func (c *cable) numb() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead == nil {
		c.dead = make(chan struct{})
	}
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
	if c.dead != nil {
		close(c.dead)
		c.dead = nil
	}
}

func (c *cable) close() {
	c.mend()
	c.sever()
	_ = c.listener.Close()
}
