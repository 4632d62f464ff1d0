package ledger

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that is resumed after invalid rows lists every other record.
func TestRecordsAfterInvalidRowsAndAResumption(t *testing.T) {
	l := open(t, Options{})
	s := l.Sync(3)
	r := begin(t, s, 1, Meta{})
	var records []Record
	for i := range 70 {
		records = append(records, ack(fmt.Sprint(100+i), 1))
	}
	records = append(records, Record{Verdict: Invalid})
	require.NoError(t, r.Append(Batch{Records: records}))
	require.NoError(t, r.Close())
	_ = begin(t, s, 1, Meta{})
	_, total, err := s.Records(1, Filter{}, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 70, total)
	require.NoError(t, l.Close())
}

// TestHistory: every append of a key is there, with the calls of its batch, and
// the sums are those that the run itself had.
func TestHistory(t *testing.T) { everywhere(t, testHistory) }

func testHistory(t *testing.T, p place) {
	s := p.open(t).Sync(3)
	r := begin(t, s, 1, Meta{})
	for _, b := range []Batch{
		{Operation: "upsert", Records: []Record{reject("1"), reject("2")}},
		{Operation: "upsert", Calls: []string{"aa", "bb"}, Records: []Record{ack("1", 5), reject("2")}},
		{Operation: "upsert", Calls: []string{"cc"}, Records: []Record{reject("2")}},
		{Operation: "delete", Calls: []string{"dd"}, Records: []Record{remove(ack("3", 0))}, Skipped: 2},
	} {
		require.NoError(t, r.Append(b))
	}
	told, err := historyOf(s, 1, "1")
	require.NoError(t, err)
	require.Len(t, told, 2)
	require.Equal(t, Rejected, told[0].Verdict)
	require.Empty(t, told[0].Batch.Calls)
	require.Equal(t, Acknowledged, told[1].Verdict)
	require.Equal(t, "upsert", told[1].Batch.Operation)
	require.Equal(t, []string{"aa", "bb"}, told[1].Batch.Calls)
	sums, err := s.Sums(1)
	require.NoError(t, err)
	require.Equal(t, r.Counters(), sums)
	require.NoError(t, r.Finish(Meta{}))
	sums, err = s.Sums(1)
	require.NoError(t, err)
	require.Equal(t, Counters{Updated: 2, Deleted: 1, Failed: 1, Invalid: 2}, sums)
	found, total, err := s.Records(1, Filter{Key: []byte(`"3"`), OrKey: []byte("3"), Operation: "delete"}, 0, 10)
	require.NoError(t, err)
	require.EqualValues(t, 1, total)
	require.Equal(t, []string{"dd"}, found[0].Batch.Calls)
	_, err = historyOf(s, 9, "1")
	require.ErrorIs(t, err, ErrNoRun)
	_, err = s.Sums(9)
	require.ErrorIs(t, err, ErrNoRun)
}

// historyOf is every record of a key in the log of a run.
func historyOf(s *Sync, run int64, key string) (told []Logged, err error) {
	err = s.Each(run, func(l *Logged) error {
		if string(l.Key) == key {
			one := *l
			one.Record = l.Clone()
			told = append(told, one)
		}
		return nil
	})
	return told, err
}

// Whatever is wrong with an archive leaves the books as they were.
func TestRestoreRefuses(t *testing.T) { everywhere(t, restoreRefuses) }

func restoreRefuses(t *testing.T, p place) {
	s := twoRuns(t)
	state := contentOf(t, s, stateFile)
	log := contentOf(t, s, "run-2.open")
	damaged := bytes.Clone(state)
	damaged[20] ^= 1
	badLog := bytes.Clone(log)
	badLog[len(badLog)-1] ^= 1
	tests := map[string]struct {
		header tar.Header
		data   []byte
		want   string
	}{
		"path":          {tar.Header{Name: "../state"}, state, `"../state" does not belong there`},
		"other file":    {tar.Header{Name: "notes"}, state, `"notes" does not belong there`},
		"link":          {tar.Header{Name: "state", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, nil, `"state" does not belong there`},
		"damaged state": {tar.Header{Name: "state"}, damaged, "restore state: the file is damaged"},
		"damaged log":   {tar.Header{Name: "run-2.log"}, badLog, "restore run-2.log: the file is damaged"},
		"empty meta":    {tar.Header{Name: "meta"}, nil, "restore meta: the file is damaged"},
	}
	o := p.empty(t)
	l := open(t, o)
	s = l.Sync(4)
	ran(t, s, 1, []Record{ack("1", 1)})
	for name, test := range tests {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		test.header.Size, test.header.Mode = int64(len(test.data)), 0o600
		require.NoError(t, w.WriteHeader(&test.header))
		_, err := w.Write(test.data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.ErrorContains(t, s.Restore(&archive), test.want, name)
		require.ErrorContains(t, s.Restore(bytes.NewReader([]byte("no archive at all, but long enough to be read as one"))), "read archive", name)
		require.Equal(t, []string{"1"}, keysOf(scan(t, s)), "what was there stays")
	}
	if o.Dir != "" {
		entries, err := os.ReadDir(o.Dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
}
