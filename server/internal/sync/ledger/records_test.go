package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that is resumed after invalid rows lists every other record.
func TestRecordsAfterInvalidRowsAndAResumption(t *testing.T) {
	l, err := Open(Options{})
	require.NoError(t, err)
	s := l.Sync(3)
	r, err := s.Begin(1, Meta{})
	require.NoError(t, err)
	var records []Record
	for i := range 70 {
		records = append(records, ack(fmt.Sprint(100+i), 1))
	}
	records = append(records, Record{Verdict: Invalid})
	require.NoError(t, r.Append(Batch{Records: records}))
	require.NoError(t, r.Close())
	_, err = s.Begin(1, Meta{})
	require.NoError(t, err)
	_, total, err := s.Records(1, Filter{}, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 70, total)
	require.NoError(t, l.Close())
}
