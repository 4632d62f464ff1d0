package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHistory: every append of a key is there, with the calls of its batch, and
// the sums are those that the run itself had.
func TestHistory(t *testing.T) { everywhere(t, testHistory) }

func testHistory(t *testing.T, p place) {
	s := p.open(t).Sync(3)
	r, err := s.Begin(1, Meta{})
	require.NoError(t, err)
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
