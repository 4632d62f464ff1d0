package shelf_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/cluster/shelf"
	"github.com/destkit/destkit/server/internal/cluster/shelf/shelftest"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunWithPostgres(m)) }

// room is a shelf, its connections, and the number of a sync that is free.
func room(t testing.TB) (*shelf.Shelf, *pgxpool.Pool, int64) {
	t.Helper()
	r := shelftest.Take(t)
	pool, err := r.Pool()
	require.NoError(t, err)
	return shelf.New(pool, nil), pool, r.First
}

// Short forms of changes.
func makes(file int64, name string) ledger.Change {
	return ledger.Change{Kind: ledger.MakeFile, File: file, Name: name}
}

func writes(file, at int64, data string) ledger.Change {
	return ledger.Change{Kind: ledger.WriteFile, File: file, At: at, Data: []byte(data)}
}

func cuts(file, at int64) ledger.Change {
	return ledger.Change{Kind: ledger.CutFile, File: file, At: at}
}

func names(file int64, name string) ledger.Change {
	return ledger.Change{Kind: ledger.NameFile, File: file, Name: name}
}

func removes(file int64, name string) ledger.Change {
	return ledger.Change{Kind: ledger.RemoveFile, File: file, Name: name}
}

// content reads a file in pieces of an odd size.
func content(t require.TestingT, s ledger.Shelf, file int64, piece int) string {
	var all []byte
	for p := make([]byte, piece); ; {
		n, err := s.Read(file, p, int64(len(all)))
		all = append(all, p[:n]...)
		if err == io.EOF { //nolint:errorlint // as io.ReaderAt says
			return string(all)
		}
		require.NoError(t, err)
		require.Equal(t, piece, n)
	}
}

// model is what a shelf must do, with maps.
type model struct {
	names map[string]int64
	data  map[int64]string
}

func (m *model) named(file int64) bool {
	for _, one := range m.names {
		if one == file {
			return true
		}
	}
	return false
}

func (m *model) rename(file int64, name string) {
	for was, one := range m.names {
		if one == file {
			delete(m.names, was)
		}
	}
	m.names[name] = file
}

// change does one; false: it cannot be done, and nothing of the others is.
func (m *model) change(c ledger.Change) bool {
	switch c.Kind {
	case ledger.MakeFile:
		if _, there := m.data[c.File]; !there {
			m.names[c.Name], m.data[c.File] = c.File, ""
		}
		return true
	case ledger.RemoveFile:
		if m.names[c.Name] == c.File {
			delete(m.names, c.Name)
		}
		return true
	case ledger.NameFile:
		if m.named(c.File) {
			m.rename(c.File, c.Name)
			return true
		}
		return false
	}
	if !m.named(c.File) || c.At > int64(len(m.data[c.File])) {
		return false
	}
	m.data[c.File] = m.data[c.File][:c.At] + string(c.Data)
	return true
}

func (m *model) all(changes []ledger.Change) bool {
	return !slices.ContainsFunc(changes, func(c ledger.Change) bool { return !m.change(c) })
}

func (m *model) clone() *model {
	c := &model{map[string]int64{}, map[int64]string{}}
	for name, file := range m.names {
		c.names[name] = file
	}
	for file, data := range m.data {
		c.data[file] = data
	}
	return c
}

// TestLikeAModel compares random changes with the model: all of a change or
// nothing, the same when it is done twice, and every file can be read that ever
// was.
func TestLikeAModel(t *testing.T) {
	s, _, first := room(t)
	base := int64(1) << 40
	rapid.Check(t, func(t *rapid.T) {
		first, base = first+1, base+1000
		m := &model{map[string]int64{}, map[int64]string{}}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			changes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledger.Change {
				file := base + rapid.Int64Range(0, 4).Draw(t, "file")
				c := ledger.Change{
					Kind: rapid.SampledFrom([]ledger.ChangeKind{
						ledger.MakeFile, ledger.MakeFile, ledger.WriteFile, ledger.WriteFile, ledger.WriteFile, ledger.CutFile, ledger.NameFile, ledger.RemoveFile,
					}).Draw(t, "kind"),
					File: file, Name: rapid.SampledFrom([]string{"state", "meta", "log"}).Draw(t, "name"),
					At: min(rapid.Int64Range(0, 30).Draw(t, "at"), int64(len(m.data[file]))+rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, "beyond")),
				}
				if c.Kind == ledger.WriteFile {
					c.Data = []byte(strings.Repeat(rapid.SampledFrom([]string{"a", "bc", "def"}).Draw(t, "data"), rapid.IntRange(0, 9).Draw(t, "times")))
				}
				return c
			}), 1, 3).Draw(t, "change")
			once := m.clone()
			err := s.Change(first, 0, changes)
			if !once.all(changes) {
				require.Error(t, err)
				same(t, s, first, m)
				continue
			}
			require.NoError(t, err)
			m = once
			// Some cannot be done twice, such as a write and a cut before it.
			if twice := once.clone(); twice.all(changes) && reflect.DeepEqual(once, twice) {
				require.NoError(t, s.Change(first, 0, changes))
			}
			same(t, s, first, m)
		}
	})
}

func same(t require.TestingT, s *shelf.Shelf, sync int64, m *model) {
	list, err := s.List(sync)
	require.NoError(t, err)
	got := map[string]int64{}
	for _, one := range list {
		got[one.Name] = one.File
		require.EqualValues(t, len(m.data[one.File]), one.Size)
	}
	require.Equal(t, m.names, got)
	for file, data := range m.data {
		require.Equal(t, data, content(t, s, file, 7))
	}
}

// A write of more than a row takes is one change, and read in any pieces.
func TestManyParts(t *testing.T) {
	s, pool, sync := room(t)
	data := bytes.Repeat([]byte("0123456789abcdefg"), (2*shelf.PartSize+99)/17)
	file := sync
	require.NoError(t, s.Change(sync, 0, []ledger.Change{makes(file, "log"), writes(file, 0, "head"), {Kind: ledger.WriteFile, File: file, At: 4, Data: data}}))
	require.NoError(t, s.Change(sync, 0, []ledger.Change{writes(file, 4+int64(len(data)), "tail")}))
	require.True(t, "head"+string(data)+"tail" == content(t, s, file, 1<<20+5))
	var parts int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM ledger_parts WHERE file = $1", file).Scan(&parts))
	require.Equal(t, 5, parts)
	// What is cut is cut in the middle of a row, and written on from there.
	require.NoError(t, s.Change(sync, 0, []ledger.Change{cuts(file, shelf.PartSize+10)}))
	require.NoError(t, s.Change(sync, 0, []ledger.Change{writes(file, shelf.PartSize+10, "end")}))
	require.True(t, ("head" + string(data))[:shelf.PartSize+10]+"end" == content(t, s, file, 1<<19))
}

// Where rows are missing the file has zeros, up to the size that it had.
func TestHoles(t *testing.T) {
	s, pool, sync := room(t)
	file := sync
	require.NoError(t, s.Change(sync, 0, []ledger.Change{makes(file, "log"), writes(file, 0, "abc"), writes(file, 3, "def"), writes(file, 6, "ghi")}))
	for at, want := range map[int64]string{0: "\x00\x00\x00defghi", 3: "abc\x00\x00\x00ghi", 6: "abcdef\x00\x00\x00"} {
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		var data []byte
		require.NoError(t, tx.QueryRow(t.Context(), "DELETE FROM ledger_parts WHERE file = $1 AND at = $2 RETURNING data", file, at).Scan(&data))
		require.NoError(t, tx.Commit(t.Context()))
		for _, piece := range []int{1, 2, 4, 9, 20} {
			require.Equal(t, want, content(t, s, file, piece))
		}
		_, err = pool.Exec(t.Context(), "INSERT INTO ledger_parts VALUES ($1, $2, $3)", file, at, data)
		require.NoError(t, err)
	}
	require.Equal(t, "abcdefghi", content(t, s, file, 4))
	_, err := s.Read(file+1, make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A file that has lost its name is read on; it goes ten minutes after the last one
// has read it.
func TestGone(t *testing.T) {
	s, pool, sync := room(t)
	file := sync
	require.NoError(t, s.Change(sync, 0, []ledger.Change{makes(file, "state"), writes(file, 0, "old")}))
	require.NoError(t, s.Change(sync, 0, []ledger.Change{makes(file+1, "state.new"), writes(file+1, 0, "new"), names(file+1, "state")}))
	age := func(minutes int) {
		_, err := pool.Exec(t.Context(), "UPDATE ledger_files SET gone = gone - make_interval(mins => $2) WHERE file = $1", file, minutes)
		require.NoError(t, err)
	}
	age(9)
	s.SweepNow()
	require.Equal(t, "old", content(t, s, file, 2))
	age(9)
	s.SweepNow()
	require.Equal(t, "old", content(t, s, file, 2), "reading it has put it off")
	require.NoError(t, s.Change(sync, 0, []ledger.Change{removes(file, "state")}), "it has another name")
	age(11)
	s.SweepNow()
	_, err := s.Read(file, make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, s.Change(sync, 0, []ledger.Change{writes(file, 3, "more")}), fs.ErrNotExist)
	list, err := s.List(sync)
	require.NoError(t, err)
	require.Equal(t, []ledger.Shelved{{Name: "state", File: file + 1, Size: 3}}, list)
	var parts int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM ledger_parts WHERE file = $1", file).Scan(&parts))
	require.Zero(t, parts)
}
