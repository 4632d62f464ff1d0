package destination

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// FuzzJournal: whatever stands in the journal beside a file, with a good checksum too,
// opening it neither makes the file longer nor takes bytes of another file.
func FuzzJournal(f *testing.F) {
	for _, body := range []string{
		`{"sequence":1,"From":0,"To":5,"Before":""}`, `{"sequence":1,"From":-5,"To":5}`, `{"sequence":9223372036854775807,"From":3,"To":1}`,
		`{"sequence":1,"From":9223372036854775807,"To":9223372036854775807,"Before":"YWJj"}`, `{"sequence":2,"From":0,"To":900,"Syncs":{"1":{"Run":1,"Keys":"AAA="}}}`, `[]`, ``,
	} {
		f.Add([]byte(body), true, []byte("email\na@b.test\n"))
		f.Add([]byte(body), false, []byte{})
	}
	f.Fuzz(func(t *testing.T, body []byte, summed bool, content []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "out.csv")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		defer root.Close()
		text := body
		if summed {
			text = append([]byte(checksum(body)+"\n"), body...)
		}
		slot := (&journal{root: root, name: "out.csv"}).slotName(1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, slot), text, 0o600))
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		defer file.Close()
		j, err := openJournal(root, "out.csv", file)
		left, readErr := os.ReadFile(path)
		require.NoError(t, readErr)
		require.LessOrEqual(t, len(left), len(content))
		require.Equal(t, string(content[:len(left)]), string(left))
		if !summed {
			require.Equal(t, string(content), string(left), "a journal that is not whole cuts nothing off")
		}
		if err != nil {
			return
		}
		j.keys(&Plan{SyncPlan: rpc.SyncPlan{SyncID: 1, SyncRunID: 1}})
	})
}
