package ledger

import (
	"archive/tar"
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	l, err := Open(o)
	require.NoError(t, err)
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
