package executor

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// place is a destination of the matrices, in a form that a child process can be given.
type place struct {
	Type        string
	Credentials destination.Credentials
	callers     *callers
	// The service's knowledge of the ledger, as in Job.
	Merged, Reported int64
}

// matrixPairs are the mappings of the crash matrix.
var matrixPairs = []string{"id:id", "level:level", "at:at"}

// simulated is a simulator behind HTTP.
func simulated(t *testing.T, speed rpc.Speed) (place, *destsim.Sim) {
	t.Helper()
	config := people()
	config.Speed, config.SkipConvention = speed, "success"
	config.Objects[0].Fields = append(config.Objects[0].Fields, destsim.FieldConfig{Name: "at", Type: rpc.TypeInteger})
	sim, err := destsim.New(config)
	require.NoError(t, err)
	server, callers := httptest.NewUnstartedServer(sim), &callers{open: map[net.Conn]bool{}}
	server.Config.ConnState = callers.change
	server.Start()
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, sim.Close())
	})
	return place{
		Type: api.TypeCustomAPI, Credentials: destination.Credentials{"webhook_url": api.Raw(server.URL), "api_version": api.Raw(1)},
		callers: callers,
	}, sim
}

// callers are the connections to a destination.
type callers struct {
	mu   sync.Mutex
	open map[net.Conn]bool
}

func (c *callers) change(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// now are those that are open. A file has no callers.
func (c *callers) now() map[net.Conn]bool {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.open)
}

// gone waits until all that a dead process has sent is through: its connections
// are closed. Otherwise the late writes of such a batch would overwrite those
// of the run that goes on.
func (p place) gone(t *testing.T, before map[net.Conn]bool) {
	t.Helper()
	if p.callers == nil {
		return
	}
	// Connections are accepted in their order: with this one, those of the dead are.
	var url string
	require.NoError(t, json.Unmarshal(p.Credentials["webhook_url"], &url))
	last, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(p.callers.now())), func(conn net.Conn) bool {
			return conn.RemoteAddr().String() == last.LocalAddr().String()
		})
	}, time.Minute, time.Millisecond, "nobody accepts")
	require.NoError(t, last.Close())
	require.Eventually(t, func() bool {
		for conn := range p.callers.now() {
			if !before[conn] {
				return false
			}
		}
		return true
	}, time.Minute, time.Millisecond, "what the dead process sent does not end")
}

// inFile is a folder with one CSV file.
func inFile(t *testing.T) (place, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "people.csv")
	require.NoError(t, os.WriteFile(file, []byte("id,level,at\n"), 0o600))
	return place{Type: api.TypeLocalFiles, Credentials: destination.Credentials{"path": api.Raw(dir), "format": api.Raw("csv")}}, file
}

// counted counts the sent records, and cuts the batches of a file smaller.
type counted struct {
	destination.Sender
	small bool
	sent  *atomic.Int64
}

// Speed implements destination.Sender.
func (c counted) Speed(ctx context.Context) (destination.Speed, error) {
	if !c.small {
		return c.Sender.Speed(ctx)
	}
	return destination.Speed{Speed: rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1_000_000}}, nil
}

// Send implements destination.Sender.
func (c counted) Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	c.sent.Add(int64(len(records)))
	return c.Sender.Send(ctx, plan, records)
}

// countedSwap is counted where the table can be replaced.
type countedSwap struct {
	counted
	swapper destination.Swapper
}

// Swap implements destination.Swapper.
func (c countedSwap) Swap(ctx context.Context, plan *destination.Plan) (destination.Swap, error) {
	s, err := c.swapper.Swap(ctx, plan)
	return countedTable{s, c.sent}, err
}

// countedTable counts the records sent to a new table.
type countedTable struct {
	destination.Swap
	sent *atomic.Int64
}

// Send implements destination.Swap.
func (c countedTable) Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	c.sent.Add(int64(len(records)))
	return c.Swap.Send(ctx, plan, records)
}

// open makes the parts of a job that are about the destination.
func (p place) open(ctx context.Context, job *Job, crash func(string), sent *atomic.Int64) error {
	gate := destination.New(destination.Options{Crash: crash})
	credentials, problems := gate.CheckConnection(p.Type, p.Credentials, nil)
	if len(problems) > 0 {
		return errors.New(problems[0].String())
	}
	connection, err := gate.Open(1, p.Type, credentials)
	if err != nil {
		return err
	}
	objects, err := connection.Objects(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if strings.Contains(o.FullName, "people") || o.FullName == person {
			job.DestinationObject = o
		}
	}
	sender, err := gate.Sender(1, p.Type, credentials)
	if err != nil {
		return err
	}
	with := counted{sender, p.Type == api.TypeLocalFiles, sent}
	if job.Destination = with; p.Type == api.TypeLocalFiles {
		job.Destination = countedSwap{with, sender.(destination.Swapper)}
	}
	job.DestinationType, job.Connection = p.Type, 1
	job.HiddenIdentifier = gate.HiddenIdentifier(p.Type, job.DestinationObject.FullName)
	return nil
}

// matrixRun makes one run of a promise with a ledger in a folder; in the parent
// and in the process that is killed.
func matrixRun(ctx context.Context, p promise, to place, opened *ledger.Ledger, rows []row, run int64, crash func(string)) (Outcome, int64, error) {
	var sent atomic.Int64
	c := clock.New(nil)
	defer c.Close()
	job := Job{
		Run: run, Sync: 7, Merged: to.Merged, Reported: to.Reported, Source: &table{rows: rows}, Object: source.Object{Name: "t"},
		Columns: []api.Column{{Name: "id", Kind: api.KindInteger}, {Name: "level", Kind: api.KindInteger}, {Name: "at", Kind: api.KindInteger}},
	}
	if err := to.open(ctx, &job, crash, &sent); err != nil {
		return Outcome{}, 0, err
	}
	job.Config = p.config(matrixPairs...)
	job.Config.DestinationAttributes.Object = job.DestinationObject.FullName
	e := New(Options{Clock: c, Ledger: opened, Crash: crash, Backoff: Backoff{First: 1}})
	o := e.Run(ctx, job)
	return o, sent.Load(), nil
}

// simContent is what a simulator holds; a key that occurs twice fails the test.
func simContent(t testing.TB, sim *destsim.Sim, object string, pairs []string) contents {
	t.Helper()
	out := contents{}
	for after := int64(0); ; {
		list, _, err := sim.Records(object, after, 50_000)
		require.NoError(t, err)
		for _, record := range list {
			key, text := flat(record.Fields, pairs)
			if _, twice := out[key]; twice {
				require.Fail(t, "record "+key+" is stored twice")
			}
			out[key], after = text, record.ID
		}
		if len(list) == 0 {
			return out
		}
	}
}

// flat reads a record of numbers as row.record writes it. In a sheet identifiers
// are text.
func flat(raw []byte, pairs []string) (key, text string) {
	members := map[string]string{}
	for member := range strings.SplitSeq(strings.Trim(string(raw), "{}"), ",") {
		name, value, _ := strings.Cut(member, ":")
		members[strings.Trim(name, ` "`)] = strings.Trim(value, ` "`)
	}
	var b strings.Builder
	for _, pair := range pairs[1:] {
		_, field, _ := strings.Cut(pair, ":")
		b.WriteString(field + "=" + strings.TrimSuffix(members[field], ".0") + ";")
	}
	return members["id"], b.String()
}

// fileContent is what a file holds.
func fileContent(t *testing.T, file string) contents {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err, "the file is torn")
	require.NotEmpty(t, lines)
	out := contents{}
	for _, line := range lines[1:] {
		fields := row{}
		for i, name := range lines[0] {
			fields[name] = line[i]
		}
		require.NotContains(t, out, fields.key(), "added twice")
		out[fields.key()] = fields.record(matrixPairs)
	}
	return out
}

// applied is what the destination holds after a run that came to its end, by
// the words of the promise; sent are the keys that the sync has sent before.
func (p promise) applied(pairs []string, stored contents, t *task, sent map[string]known, replaced bool) contents {
	out := contents{}
	for key, fields := range stored {
		_, own := sent[key]
		if replaced || p.deletes() && own && !t.present[key] {
			continue
		}
		out[key] = fields
	}
	for key, r := range t.valid {
		_, there := out[key]
		switch {
		case t.skips, p.once() && (there || !t.write[key]), p.operation == api.OperationUpdate && !there:
			continue
		}
		out[key] = r.record(pairs)
	}
	return out
}

// sameContent compares the stored records and names the first few differences.
func sameContent(t require.TestingT, want, got contents, what string) {
	if maps.Equal(want, got) {
		return
	}
	var differences []string
	for key := range either(keySet(want), keySet(got)) {
		if want[key] != got[key] && len(differences) < 5 {
			differences = append(differences, fmt.Sprintf("record %s is %q and should be %q", key, got[key], want[key]))
		}
	}
	require.Empty(t, differences, "%s: %d records, %d expected", what, len(got), len(want))
}

func keySet[V any](m map[string]V) map[string]bool {
	out := map[string]bool{}
	for key := range m {
		out[key] = true
	}
	return out
}

// numberedRows from one id to another; the moment of a row is its id.
func numberedRows(from, to int, level func(id int) int) []row {
	var rows []row
	for id := from; id <= to; id++ {
		rows = append(rows, row{"id": fmt.Sprint(id), "level": fmt.Sprint(level(id)), "at": fmt.Sprint(id)})
	}
	return rows
}
