package executor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// mortal is a destination that nothing reaches any more when the process is dead.
type mortal struct {
	destination.Sender
	dead chan struct{} // closed by then
}

func (m mortal) Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	select {
	case <-m.dead:
		return destination.Reply{}, errDead
	default:
		return m.Sender.Send(ctx, plan, records)
	}
}

// open makes the ledger that of a folder.
func (w *world) open(o ledger.Options) {
	w.t.Helper()
	opened, err := ledger.Open(o)
	require.NoError(w.t, err)
	w.ledger, w.executor.options.Ledger, w.executor.options.Crash = opened, opened, o.Crash
}

// killed makes the next run with the ledger in a folder. Its process dies at some passing
// of a point: the process that follows finds the ledger as it was then. The dead one goes
// on with a ledger that is not opened again.
func (w *world) killed(dir, point string, at int) {
	w.t.Helper()
	ctx, stop := context.WithCancelCause(w.t.Context())
	image, sender := w.t.TempDir(), w.sender
	var mu sync.Mutex
	dead := make(chan struct{})
	w.sender = mortal{sender, dead}
	w.open(ledger.Options{Dir: dir, Crash: func(p string) {
		mu.Lock()
		defer mu.Unlock()
		if p != point {
			return
		}
		if at--; at == 0 {
			close(dead)
			copyBooks(image, dir)
			stop(ErrStop)
		}
	}})
	w.run++
	w.again(ctx)
	require.LessOrEqual(w.t, at, 0, "the run never came to %s", point)
	require.NoError(w.t, w.ledger.Close())
	w.sender = sender
	w.open(ledger.Options{Dir: image})
	w.t.Cleanup(func() { require.NoError(w.t, w.ledger.Close()) })
}

// files makes the destination of a world a folder with CSV files.
func (w *world) files(t *testing.T) (file string) {
	t.Helper()
	dir := t.TempDir()
	credentials, problems := w.gate.CheckConnection(api.TypeLocalFiles, destination.Credentials{"path": api.Raw(dir), "format": api.Raw("csv")}, nil)
	require.Empty(t, problems)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "people.csv"), []byte("id,name,level\n"), 0o600))
	connection, err := w.gate.Open(2, api.TypeLocalFiles, credentials)
	require.NoError(t, err)
	objects, err := connection.Objects(t.Context())
	require.NoError(t, err)
	for _, o := range objects {
		if strings.Contains(o.FullName, "people") {
			w.object = o
		}
	}
	w.sender, err = w.gate.Sender(2, api.TypeLocalFiles, credentials)
	require.NoError(t, err)
	w.config.DestinationAttributes.Object = w.object.FullName
	w.change = func(j *Job) {
		j.Connection, j.DestinationType = 2, api.TypeLocalFiles
		j.HiddenIdentifier = w.gate.HiddenIdentifier(api.TypeLocalFiles, w.object.FullName)
	}
	return filepath.Join(dir, "people.csv")
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestAppendAddsToAFileWithoutAnIdentifier(t *testing.T) {
	w := newWorld(t, setup{table: "id INTEGER, name TEXT, level INTEGER"})
	file := w.files(t)
	w.append(nil)
	w.config.Mappings[0].IsPrimaryIdentifier = false
	w.fill(1, 20)
	w.fill(1, 5)
	o := w.sync()
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.Equal(t, int64(25), o.Updated, "equal rows are rows")
	require.Len(t, lines(t, file), 26)
	require.Zero(t, w.sync().Processed)
	w.fill(3, 1)
	require.Equal(t, int64(1), w.sync().Updated)
	require.Len(t, lines(t, file), 27)
}
