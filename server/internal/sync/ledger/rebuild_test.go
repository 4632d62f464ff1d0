package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// noted is a Meta whose keys mean something to its caller.
func noted(run int) Meta {
	return Meta{Mapping: Fingerprint{byte(run)}, Notes: json.RawMessage(`{"object":"people"}`), HighWater: json.RawMessage(fmt.Sprint(run))}
}

// lives makes runs that add, change and remove keys, each to its end.
func lives(t *testing.T, s *Sync, runs int) {
	t.Helper()
	for run := 1; run <= runs; run++ {
		r := begin(t, s, int64(run), noted(run-1))
		var some []Record
		for key := run; key < run+6; key++ {
			one := Record{Key: fmt.Appendf(nil, "%03d", key), Verdict: Acknowledged, Print: Fingerprint{byte(run)}, Payload: fmt.Appendf(nil, "%d", run), Keep: true}
			switch key % 6 {
			case 0:
				one.Verdict, one.Message = Rejected, "no"
			case 1:
				one.Delete, one.Print = true, Fingerprint{}
			}
			some = append(some, one)
		}
		require.NoError(t, r.Append(Batch{Operation: "upsert", Records: some}))
		require.NoError(t, r.Finish(noted(run)))
	}
}

// TestStateIsRebuiltFromItsLogs: a state that is gone, damaged or an older one has
// afterwards every entry that it had, and reports what was lost.
func TestStateIsRebuiltFromItsLogs(t *testing.T) {
	for name, c := range map[string]struct {
		harm   func(t *testing.T, s *Sync, older []byte)
		reason string
		whole  bool
	}{
		"removed":                  {func(t *testing.T, s *Sync, _ []byte) { require.NoError(t, s.files.remove(stateFile)) }, stateMissing + "; " + fmt.Sprintf(rebuiltWhole, 5), true},
		"flipped":                  {func(t *testing.T, s *Sync, _ []byte) { flip(t, s, stateFile) }, stateDamaged + "; " + fmt.Sprintf(rebuiltWhole, 5), true},
		"cut":                      {func(t *testing.T, s *Sync, _ []byte) { change(t, s, stateFile, contentOf(t, s, stateFile)[:40]) }, stateDamaged + "; " + fmt.Sprintf(rebuiltWhole, 5), true},
		"empty":                    {func(t *testing.T, s *Sync, _ []byte) { change(t, s, stateFile, nil) }, stateDamaged + "; " + fmt.Sprintf(rebuiltWhole, 5), true},
		"an older one":             {func(t *testing.T, s *Sync, older []byte) { change(t, s, stateFile, older) }, stateOlder + "; " + fmt.Sprintf(rebuiltWhole, 3), true},
		"removed, and an old log":  {func(t *testing.T, s *Sync, _ []byte) { take(t, s, stateFile, "run-1.log") }, stateMissing + "; " + fmt.Sprintf(rebuiltPart, 4), false},
		"removed, and a later log": {func(t *testing.T, s *Sync, _ []byte) { take(t, s, stateFile, "run-3.log") }, stateMissing + "; " + fmt.Sprintf(rebuiltPart, 4), false},
		"an older one, and a log":  {func(t *testing.T, s *Sync, older []byte) { change(t, s, stateFile, older); take(t, s, "run-4.log") }, stateOlder + "; " + fmt.Sprintf(rebuiltPart, 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			o := small(onDisk.empty(t), nil)
			l := open(t, o)
			lives(t, l.Sync(1), 2)
			older := contentOf(t, l.Sync(1), stateFile)
			l = open(t, o)
			s := l.Sync(1)
			more(t, s, 3, 5)
			want := scan(t, s)
			c.harm(t, s, older)

			found, err := s.Survey()
			require.NoError(t, err)
			require.True(t, found.Meta.Damaged, "a dry run says it too")

			r := begin(t, s, 6, noted(5))
			meta := metaOf(t, s)
			require.True(t, meta.Damaged)
			require.Equal(t, c.reason, meta.Reason)
			require.JSONEq(t, `{"object":"people"}`, string(meta.Notes))
			if c.whole {
				require.Equal(t, want, scan(t, s))
			}
			runs, err := s.Runs()
			require.NoError(t, err)
			require.Contains(t, runs, int64(5), "its log is kept")
			// Killed here, the next process knows it still.
			require.NoError(t, r.Close())
			r = begin(t, s, 6, noted(5))
			again := metaOf(t, s)
			require.Equal(t, meta, again)
			require.NoError(t, r.Finish(noted(6)))
			meta = metaOf(t, s)
			require.False(t, meta.Damaged, meta.Reason)
		})
	}
}

// more goes on with runs as lives does.
func more(t *testing.T, s *Sync, from, to int) {
	t.Helper()
	for run := from; run <= to; run++ {
		r := begin(t, s, int64(run), noted(run-1))
		require.NoError(t, r.Append(Batch{Operation: "upsert", Records: []Record{
			{Key: fmt.Appendf(nil, "%03d", run*10), Verdict: Acknowledged, Print: Fingerprint{byte(run)}},
			{Key: fmt.Appendf(nil, "%03d", run), Verdict: Acknowledged, Delete: true},
		}}))
		require.NoError(t, r.Finish(noted(run)))
	}
}

func flip(t *testing.T, s *Sync, name string) {
	t.Helper()
	data := contentOf(t, s, name)
	data[len(data)/2] ^= 4
	change(t, s, name, data)
}

func take(t *testing.T, s *Sync, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, s.files.remove(name))
	}
}

// TestRebuildIsKilledAnywhere: each time that a change of the folder fails, the next
// process rebuilds what the first one would have.
func TestRebuildIsKilledAnywhere(t *testing.T) {
	for _, harm := range []string{"removed", "older"} {
		for stop := 0; ; stop++ {
			left := -1 // changes before the process is dead; below 0: it lives
			o := onDisk.empty(t)
			o.Fault = func(what, _ string, n int) (int, error) {
				if left < 0 || what == FaultRead {
					return n, nil
				}
				if left == 0 {
					return 0, errors.New("the process is dead")
				}
				left--
				return n, nil
			}
			l := open(t, small(o, nil))
			s := l.Sync(1)
			lives(t, s, 2)
			older := contentOf(t, s, stateFile)
			more(t, s, 3, 5)
			want := scan(t, s)
			if harm == "older" {
				change(t, s, stateFile, older)
			} else {
				take(t, s, stateFile)
			}
			left = stop
			_, err := s.Begin(6, noted(5))
			left = -1
			if err == nil {
				require.Greater(t, stop, 5, "the rebuild makes several changes")
				break
			}
			l = open(t, small(o, nil))
			s = l.Sync(1)
			_, err = s.Begin(6, noted(5))
			require.NoError(t, err, "%s, after %d changes", harm, stop)
			meta := metaOf(t, s)
			require.True(t, meta.Damaged, "%s, after %d changes", harm, stop)
			require.Equal(t, want, scan(t, s), "%s, after %d changes", harm, stop)
		}
	}
}
