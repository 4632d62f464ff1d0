package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var header = Header{Run: "7f3a", Target: "http://127.0.0.1:80/?key=$DESTKIT_URL", Started: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}

func raws(texts ...string) []json.RawMessage {
	list := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		list[i] = json.RawMessage(text)
	}
	return list
}

func states(keys []Key) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = fmt.Sprintf("%s %s %s", key.Object, key.Identifier, key.State)
	}
	return list
}

func begin1(t *testing.T, j *Journal, operation string, identifiers ...string) int64 {
	t.Helper()
	seq, err := j.Begin("contact", "email", operation, raws(identifiers...))
	require.NoError(t, err)
	return seq
}

// fill writes one batch of every fate.
func fill(t *testing.T, j *Journal) {
	t.Helper()
	one := begin1(t, j, "upsert", `"a<&>@x"`, `"b@x"`, `"c@x"`)
	require.NoError(t, j.Finish(one, raws(`"a<&>@x"`), raws(`"b@x"`)))
	two := begin1(t, j, "delete", `"a<&>@x"`)
	require.NoError(t, j.Finish(two, raws(`"a<&>@x"`), nil))
	three := begin1(t, j, "insert", `9007199254740993`, `"d@x"`)
	require.NoError(t, j.Finish(three, raws(`"d@x"`, `9007199254740993`), nil))
	begin1(t, j, "upsert", `"e@x"`)
	require.NoError(t, j.Cleaned([]Key{{Object: "contact", Field: "email", Identifier: json.RawMessage(`"d@x"`)}}))
}

var filled = []string{
	`contact "a<&>@x" deleted`, `contact "b@x" refused`, `contact "c@x" unknown`,
	`contact 9007199254740993 written`, `contact "e@x" unknown`,
}

func TestPendingIsTheSameInMemoryAndAfterReading(t *testing.T) {
	memory := Memory(header)
	fill(t, memory)
	require.Equal(t, filled, states(memory.Pending()))

	path := filepath.Join(t.TempDir(), "run.ndjson")
	file, err := Create(path, header)
	require.NoError(t, err)
	fill(t, file)
	require.Equal(t, filled, states(file.Pending()))
	require.NoError(t, file.Close())
	require.NoError(t, file.Close(), "closing twice")

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	read, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, header, read.Header())
	require.Equal(t, filled, states(read.Pending()))
}

func TestStateOfAKey(t *testing.T) {
	type step struct {
		operation string
		answer    State // "" leaves the batch under way
	}
	cases := []struct {
		name  string
		steps []step
		want  State
	}{
		{"acknowledged", []step{{"upsert", Written}}, Written},
		{"refused", []step{{"insert", Refused}}, Refused},
		{"no answer", []step{{"insert", Unknown}}, Unknown},
		{"under way", []step{{"insert", ""}}, Unknown},
		{"refused after written", []step{{"insert", Written}, {"insert", Refused}}, Written},
		{"no answer after written", []step{{"upsert", Written}, {"upsert", Unknown}}, Unknown},
		{"under way after deleted", []step{{"delete", Written}, {"upsert", ""}}, Unknown},
		{"deleted", []step{{"upsert", Written}, {"delete", Written}}, Deleted},
		{"deleted again without answer", []step{{"delete", Written}, {"delete", Unknown}}, Deleted},
		{"delete without answer", []step{{"upsert", Written}, {"delete", Unknown}}, Unknown},
		{"delete refused", []step{{"upsert", Written}, {"delete", Refused}}, Written},
		{"written after deleted", []step{{"delete", Written}, {"upsert", Written}}, Written},
		{"write refused after deleted", []step{{"delete", Written}, {"update", Refused}}, Deleted},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			j := Memory(header)
			for _, step := range c.steps {
				seq := begin1(t, j, step.operation, `"k"`)
				switch step.answer {
				case Written:
					require.NoError(t, j.Finish(seq, raws(`"k"`), nil))
				case Refused:
					require.NoError(t, j.Finish(seq, nil, raws(`"k"`)))
				case Unknown:
					require.NoError(t, j.Finish(seq, nil, nil))
				}
			}
			require.Equal(t, []string{`contact "k" ` + string(c.want)}, states(j.Pending()))
		})
	}
}

func TestAKeyCleanedWhileItsBatchIsUnderWayComesBack(t *testing.T) {
	j := Memory(header)
	seq := begin1(t, j, "upsert", `"k"`)
	require.NoError(t, j.Cleaned(j.Pending()))
	require.Empty(t, j.Pending())
	require.NoError(t, j.Finish(seq, raws(`"k"`), nil))
	require.Equal(t, []string{`contact "k" written`}, states(j.Pending()))
}

func TestCreateContinuesTheSameRunOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.ndjson")
	first, err := Create(path, header)
	require.NoError(t, err)
	begin1(t, first, "upsert", `"a"`)
	require.NoError(t, first.Close())

	_, err = Create(path, Header{Run: "other"})
	require.ErrorContains(t, err, "belongs to run 7f3a")
	require.ErrorContains(t, err, path)

	again, err := Create(path, header)
	require.NoError(t, err)
	require.Equal(t, int64(2), begin1(t, again, "upsert", `"b"`))
	require.NoError(t, again.Close())
	read, err := Read(path)
	require.NoError(t, err)
	require.Len(t, read.Pending(), 2)

	_, err = Create(filepath.Join(t.TempDir(), "none", "run.ndjson"), header)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestBadCallsAreRefusedAndLeaveTheJournalReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.ndjson")
	j, err := Create(path, header)
	require.NoError(t, err)
	_, err = j.Begin("contact", "email", "upsert", raws(`{not json`))
	require.ErrorContains(t, err, "not a JSON value")
	_, err = j.Begin("", "email", "upsert", raws(`1`))
	require.ErrorContains(t, err, "without an object")
	seq := begin1(t, j, "upsert", `1`)
	require.ErrorContains(t, j.Finish(seq, raws(`2`), nil), "not in batch 1")
	require.ErrorContains(t, j.Finish(9, nil, nil), "not under way")
	require.NoError(t, j.Finish(seq, raws(`1`), nil))
	require.ErrorContains(t, j.Finish(seq, raws(`1`), nil), "not under way")
	require.NoError(t, j.Close())
	_, err = j.Begin("contact", "email", "upsert", raws(`1`))
	require.ErrorIs(t, err, os.ErrClosed)
	read, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, []string{`contact 1 written`}, states(read.Pending()))
}

func TestParallelBatchesKeepLinesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.ndjson")
	j, err := Create(path, header)
	require.NoError(t, err)
	var group sync.WaitGroup
	for worker := range 16 {
		group.Go(func() {
			for n := range 8 {
				key := raws(fmt.Sprintf(`"w%d-%d"`, worker, n))
				seq, err := j.Begin("contact", "email", "upsert", key)
				if err == nil {
					err = j.Finish(seq, key, nil)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, j.Close())
	read, err := Read(path)
	require.NoError(t, err)
	require.Len(t, read.Pending(), 128)
	for _, key := range read.Pending() {
		require.Equal(t, Written, key.State)
	}
}

// fullDisk writes half of every line once it is full.
type fullDisk struct {
	*os.File
	full, stuck bool
	failSync    bool
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if !d.full {
		return d.File.Write(p)
	}
	n, _ := d.File.Write(p[:len(p)/2])
	return n, syscall.ENOSPC
}

func (d *fullDisk) Truncate(size int64) error {
	if d.stuck {
		return syscall.EIO
	}
	return d.File.Truncate(size)
}

func (d *fullDisk) Sync() error {
	if d.failSync {
		return syscall.EIO
	}
	return d.File.Sync()
}

func TestAFullDiskStopsTheBatchAndKeepsTheJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.ndjson")
	j, err := Create(path, header)
	require.NoError(t, err)
	full := &fullDisk{File: j.disk.(*os.File)}
	j.disk = full
	begin1(t, j, "upsert", `"a"`)

	full.full = true
	_, err = j.Begin("contact", "email", "upsert", raws(`"b"`))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, path)
	require.Len(t, j.Pending(), 1, "nothing was sent")
	require.ErrorIs(t, j.Finish(1, raws(`"a"`), nil), syscall.ENOSPC)
	require.Equal(t, []string{`contact "a" written`}, states(j.Pending()), "known although not written down")

	full.full = false
	begin1(t, j, "upsert", `"c"`)
	require.NoError(t, j.Close())
	read, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, []string{`contact "a" unknown`, `contact "c" unknown`}, states(read.Pending()))
}

func TestAJournalThatCannotBeTrustedStaysBroken(t *testing.T) {
	cases := map[string]*fullDisk{
		"half a line that cannot be taken back": {full: true, stuck: true},
		"fsync fails":                           {failSync: true},
	}
	for name, disk := range cases {
		t.Run(name, func(t *testing.T) {
			j, err := Create(filepath.Join(t.TempDir(), "run.ndjson"), header)
			require.NoError(t, err)
			disk.File = j.disk.(*os.File)
			j.disk = disk
			_, first := j.Begin("contact", "email", "upsert", raws(`"a"`))
			require.Error(t, first)
			disk.full, disk.failSync = false, false
			_, again := j.Begin("contact", "email", "upsert", raws(`"b"`))
			require.True(t, errors.Is(again, syscall.EIO) || errors.Is(again, syscall.ENOSPC), "%v", again)
			require.Empty(t, j.Pending())
		})
	}
}
