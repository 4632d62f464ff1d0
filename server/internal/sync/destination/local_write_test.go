package destination

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// folder opens a sender for a folder of the test.
func folder(t testing.TB, g *Gate, dir, format string) Sender {
	t.Helper()
	merged, problems := g.CheckConnection(api.TypeLocalFiles, creds(t, `{"path":`+quote(dir)+`,"format":"`+format+`"}`), nil)
	require.Empty(t, problems)
	s, err := g.Sender(3, api.TypeLocalFiles, merged)
	require.NoError(t, err)
	return s
}

// filePlan writes the named columns; the first may be the identifier.
func filePlan(run int64, operation, identifier string, columns ...string) *Plan {
	schema := map[string]rpc.SchemaField{}
	for _, name := range columns {
		schema[name] = rpc.SchemaField{ActiveIdentifier: name == identifier, Field: rpc.Field{APIName: name, Type: rpc.TypeString}}
	}
	return NewPlan(rpc.SyncPlan{Object: rpc.ObjectRef{APIName: "out"}, Operation: operation, SyncRunID: run, SyncID: 5, Schema: schema}, columns)
}

func content(t testing.TB, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}

func shownFiles(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Values as cells and as lines.
func TestFileRows(t *testing.T) {
	records := batchOf(
		`{"unique_id":"k1","id":1,"name":"plain","tags":["a","b"],"more":{"x":1}}`,
		`{"unique_id":"k2","id":null,"name":"with \"quotes\", commas\nand lines","tags":[],"more":true}`,
		`{"unique_id":"k3","name":"","id":2.50}`,
	)
	for format, want := range map[string]string{
		FormatCSV: "id,name,tags,more\n" +
			`1,plain,"[""a"",""b""]","{""x"":1}"` + "\n" +
			`,"with ""quotes"", commas` + "\n" + `and lines",[],true` + "\n" +
			`2.50,"",,` + "\n",
		FormatJSONL: `{"id":1,"name":"plain","tags":["a","b"],"more":{"x":1}}` + "\n" +
			`{"id":null,"name":"with \"quotes\", commas\nand lines","tags":[],"more":true}` + "\n" +
			`{"name":"","id":2.50}` + "\n",
	} {
		dir := t.TempDir()
		s := folder(t, newGate(t, Options{}), dir, format)
		speed, err := s.Speed(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, speed.MaximumParallelBatches, "a file has one end")
		reply := sent(t, s, filePlan(1, rpc.OperationInsert, "unique_id", "unique_id", "id", "name", "tags", "more"), records)
		require.Len(t, reply.Results, 3)
		require.Equal(t, rpc.RecordResult{Identifier: json.RawMessage(`"k2"`), Success: true}, reply.Results[1])
		require.Equal(t, want, content(t, dir, "out."+format))
		require.Equal(t, []string{"out." + format}, shownFiles(t, dir))
		require.NoError(t, s.Close())
	}
}

// Files that others have written: their header counts, missing columns are
// added, a last line without an end gets one.
func TestAppendToForeignFiles(t *testing.T) {
	cases := []struct{ name, format, before, want string }{
		{"the order of the header", FormatCSV, "name,id\nx,1\n", "name,id\nx,1\nann,2\n"},
		{"a last line without an end", FormatCSV, "id,name\n1,x", "id,name\n1,x\n2,ann\n"},
		{"a header alone", FormatCSV, "id,name", "id,name\n2,ann\n"},
		{"columns that nobody maps", FormatCSV, "id,old,name\n1,o,x\n", "id,old,name\n1,o,x\n2,,ann\n"},
		{"columns that are missing", FormatCSV, "id,\"o,ld\"\n1,\"a\nb\"\n", "id,\"o,ld\",name\n1,\"a\nb\",\n2,,ann\n"},
		{"a byte order mark", FormatCSV, "\ufeffid,name\r\n1,x\r\n", "\ufeffid,name\r\n1,x\r\n2,ann\n"},
		{"an empty file", FormatCSV, "", "id,name\n2,ann\n"},
		{"lines", FormatJSONL, `{"id":1}`, `{"id":1}` + "\n" + `{"id":2,"name":"ann"}` + "\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "out."+c.format), []byte(c.before), 0o644))
			s := folder(t, newGate(t, Options{}), dir, c.format)
			sent(t, s, filePlan(1, rpc.OperationInsert, "id", "id", "name"), batchOf(`{"id":2,"name":"ann"}`))
			require.Equal(t, c.want, content(t, dir, "out."+c.format))
			require.Equal(t, []string{"out." + c.format}, shownFiles(t, dir))
		})
	}
}

// A batch whose acknowledgement was lost is sent again, by a new process too,
// and in other batches; it is in the file once. Another run is another
// matter.
func TestAppendAgain(t *testing.T) {
	dir := t.TempDir()
	send := func(s Sender, run int64, ids ...int) {
		var records [][]byte
		for _, id := range ids {
			records = append(records, fmt.Appendf(nil, `{"id":%d}`, id))
		}
		reply := sent(t, s, filePlan(run, rpc.OperationInsert, "id", "id"), records)
		require.Len(t, reply.Results, len(ids))
		for i := range reply.Results {
			require.True(t, reply.Results[i].Success)
			require.Equal(t, fmt.Sprint(ids[i]), string(reply.Results[i].Identifier))
		}
	}
	open := func() Sender { return folder(t, newGate(t, Options{}), dir, FormatCSV) }
	first := open()
	send(first, 1, 1, 2)
	send(first, 1, 3, 4, 5)
	second := open()
	send(second, 1, 3)
	send(second, 1, 4, 6)
	third := open()
	send(third, 1, 5, 4, 6, 7)
	require.Equal(t, "id\n1\n2\n3\n4\n5\n6\n7\n", content(t, dir, "out.csv"))
	send(third, 2, 7)
	require.Equal(t, "id\n1\n2\n3\n4\n5\n6\n7\n7\n", content(t, dir, "out.csv"))
}

// step of a history: a batch, and what happens to it.
type step struct {
	Records, Cut, Split int
	Crash               string
}

var histories = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{
		Records: rapid.IntRange(1, 4).Draw(t, "records"), Cut: rapid.IntRange(0, 1000).Draw(t, "cut"), Split: rapid.IntRange(0, 4).Draw(t, "split"),
		Crash: rapid.SampledFrom([]string{"", "lost", "torn", "torn"}).Draw(t, "crash"),
	}
}), 2, 6)

// Whatever is sent, in whatever batches, with crashes that lose the acknowledgement
// or tear the batch, whose part is then cut off: every record is in the file once
// and in order. Each batch waits for the disk, so these are a few chosen histories.
func TestAppendHistories(t *testing.T) {
	g := newGate(t, Options{})
	plan := filePlan(1, rpc.OperationInsert, "id", "id")
	for seed := range 12 {
		dir := t.TempDir()
		format, row, want := FormatJSONL, `{"id":%d}`, ""
		if seed%2 == 1 {
			format, row, want = FormatCSV, "%d", "id\n"
		}
		name := filepath.Join(dir, "out."+format)
		s := folder(t, g, dir, format)
		next := 0
		history := histories.Example(seed)
		for at, h := range history {
			var records [][]byte
			var text string
			for range h.Records {
				next++
				records, text = append(records, fmt.Appendf(nil, `{"id":%d}`, next)), text+fmt.Sprintf(row, next)+"\n"
			}
			sent(t, s, plan, records)
			if h.Crash == "torn" {
				require.NoError(t, os.Truncate(name, int64(len(want)+h.Cut%len(text))))
			}
			if h.Crash != "" {
				s = folder(t, g, dir, format)
				split := min(h.Split, len(records))
				for _, part := range [][][]byte{records[:split], records[split:]} {
					sent(t, s, plan, part)
				}
			}
			want += text
			require.Equal(t, want, content(t, dir, "out."+format), "step %d of %+v", at, history)
		}
	}
}

// Two syncs that write one file wait for each other.
func TestOneFileTwoSyncs(t *testing.T) {
	dir := t.TempDir()
	g := newGate(t, Options{})
	var wg sync.WaitGroup
	for sync := range int64(4) {
		wg.Go(func() {
			s := folder(t, g, dir, FormatCSV)
			for i := range 5 {
				plan := filePlan(1, rpc.OperationInsert, "id", "id")
				plan.SyncID = sync
				if _, err := s.Send(t.Context(), plan, batchOf(fmt.Sprintf(`{"id":"%d-%d"}`, sync, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines, err := csv.NewReader(strings.NewReader(content(t, dir, "out.csv"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 21)
	seen := map[string]bool{}
	for _, line := range lines {
		require.False(t, seen[line[0]])
		seen[line[0]] = true
	}
}

// Refused rows are reported, and nothing of them is in the file.
func TestFileRefusals(t *testing.T) {
	dir := t.TempDir()
	s := folder(t, newGate(t, Options{}), dir, FormatCSV)
	send := func(operation string, records ...string) *CallError {
		_, err := s.Send(t.Context(), filePlan(1, operation, "id", "id"), batchOf(records...))
		failed := failedCall(t, err)
		return failed
	}
	require.Contains(t, send(rpc.OperationUpsert, `{"id":1}`).Message, "upsert is not possible: append, or replace the file")
	require.Contains(t, send(rpc.OperationInsert, `{"id":1`).Message, "read records")
	require.Contains(t, send(rpc.OperationInsert, `{"id":1},{"id":2}`).Message, "read records: they hold 2, not 1")
	require.Empty(t, shownFiles(t, dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "out.csv"), []byte("id,id\n1,2\n"), 0o644))
	require.Contains(t, send(rpc.OperationInsert, `{"id":1}`).Message, `the column "id" stands twice`)
	require.Equal(t, "id,id\n1,2\n", content(t, dir, "out.csv"))

	require.NoError(t, os.Remove(filepath.Join(dir, "out.csv")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out.csv"), 0o755))
	require.Equal(t, OutcomeNetwork, send(rpc.OperationInsert, `{"id":1}`).Outcome)
}

// A replacement: the old file stays whole until Commit, whatever happens.
func TestFileSwap(t *testing.T) {
	for _, format := range []string{FormatCSV, FormatJSONL} {
		dir := t.TempDir()
		g := newGate(t, Options{})
		plan := filePlan(1, rpc.OperationUpsert, "id", "id", "name")
		appended := filePlan(1, rpc.OperationInsert, "id", "id", "old")
		line := func(id int, name string) string {
			if format == FormatCSV {
				return fmt.Sprintf("%d,%s\n", id, name)
			}
			return fmt.Sprintf(`{"id":%d,"name":"%s"}`+"\n", id, name)
		}
		header := map[string]string{FormatCSV: "id,name\n"}[format]
		sent(t, folder(t, g, dir, format), appended, batchOf(`{"id":1,"old":"o"}`))
		old := content(t, dir, "out."+format)

		begin := func() Swap {
			w, err := folder(t, g, dir, format).(Swapper).Swap(t.Context(), plan)
			require.NoError(t, err)
			return w
		}
		send := func(w Swap, records ...string) {
			reply := sent(t, w, plan, batchOf(records...))
			require.Len(t, reply.Results, len(records))
		}
		crashed := begin() // never committed, as by kill -9
		send(crashed, `{"id":9,"name":"lost"}`)
		require.Equal(t, old, content(t, dir, "out."+format))

		aborted := begin()
		send(aborted, `{"id":8,"name":"dropped"}`)
		require.NoError(t, aborted.Abort())
		require.NoError(t, aborted.Abort())
		require.Equal(t, old, content(t, dir, "out."+format))
		_, err := aborted.Send(t.Context(), plan, batchOf(`{"id":1,"name":"x"}`))
		require.ErrorContains(t, err, "has ended")
		require.ErrorContains(t, aborted.Commit(t.Context()), "has ended")

		w := begin()
		send(w, `{"id":2,"name":"a"}`, `{"id":3,"name":"b"}`)
		send(w, `{"id":4,"name":"c"}`)
		sent(t, w, plan.With(rpc.OperationDelete), batchOf(`{"id":1}`))
		require.Equal(t, old, content(t, dir, "out."+format))
		require.NoError(t, w.Commit(t.Context()))
		require.NoError(t, w.Abort())
		want := header + line(2, "a") + line(3, "b") + line(4, "c")
		require.Equal(t, want, content(t, dir, "out."+format))

		// An append after it starts with its own journal.
		sent(t, folder(t, g, dir, format), filePlan(1, rpc.OperationInsert, "id", "id", "name"), batchOf(`{"id":1,"name":"d"}`))
		require.Equal(t, want+line(1, "d"), content(t, dir, "out."+format))

		empty := begin()
		require.NoError(t, empty.Commit(t.Context()))
		require.Equal(t, header, content(t, dir, "out."+format), "an empty source leaves an empty file")
		require.Equal(t, []string{"out." + format}, shownFiles(t, dir))
	}
}

// A rename that fails leaves the old file whole and the replacement to be
// committed again.
func TestSwapThatCannotBePlaced(t *testing.T) {
	dir := t.TempDir()
	g := newGate(t, Options{})
	plan := filePlan(1, rpc.OperationUpsert, "id", "id")
	w, err := folder(t, g, dir, FormatJSONL).(Swapper).Swap(t.Context(), plan)
	require.NoError(t, err)
	sent(t, w, plan, batchOf(`{"id":1}`))
	inTheWay := filepath.Join(dir, "out.jsonl")
	require.NoError(t, os.Mkdir(inTheWay, 0o755))
	var failed *CallError
	require.True(t, errors.As(w.Commit(t.Context()), &failed))
	require.NoError(t, os.Remove(inTheWay))
	require.NoError(t, w.Commit(t.Context()))
	require.Equal(t, "{\"id\":1}\n", content(t, dir, "out.jsonl"))
}

// No symbolic link leads out of the folder of the service.
func TestSendStaysInside(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	target := filepath.Join(outside, "secret.csv")
	require.NoError(t, os.WriteFile(target, []byte("id\n"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sub"), 0o755))
	require.NoError(t, os.Symlink(target, filepath.Join(root, "sub", "out.csv")))
	g := newGate(t, Options{FilesRoot: root})
	s := folder(t, g, "sub", FormatCSV)
	_, err := s.Send(t.Context(), filePlan(1, rpc.OperationInsert, "id", "id"), batchOf(`{"id":1}`))
	require.Error(t, err)
	require.Equal(t, "id\n", content(t, outside, "secret.csv"))
	escape := filePlan(1, rpc.OperationInsert, "id", "id")
	escape.Object.APIName = "../escape"
	_, err = s.Send(t.Context(), escape, batchOf(`{"id":1}`))
	require.Error(t, err)
	require.Empty(t, shownFiles(t, outside)[1:])
}

// TestFilesKeepTheirMode: records are their owner's alone, and a file that the owner has
// opened to others stays so when another takes its place.
func TestFilesKeepTheirMode(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	write := func(w *bufio.Writer) error { return w.WriteByte('a') }
	for _, mode := range []os.FileMode{0, 0o644, 0o640, 0o600} {
		name := fmt.Sprintf("%o.csv", mode)
		if mode != 0 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
			require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
		}
		require.NoError(t, replaceFile(root, name, "test", write))
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		if mode == 0 {
			mode = 0o600
		}
		require.Equal(t, mode, info.Mode().Perm())
	}
}
