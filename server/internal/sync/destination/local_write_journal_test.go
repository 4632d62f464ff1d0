package destination

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// TestDamagedJournal: a batch comes again after a crash, and the journal that would say
// that it is in the file, or half of it, was harmed. It is written once, or refused with
// what to do; the file is not touched.
func TestDamagedJournal(t *testing.T) {
	plan := filePlan(1, rpc.OperationInsert, "id", "id", "name")
	one, two := batchOf(`{"id":1,"name":"one"}`), batchOf(`{"id":2,"name":"two"}`, `{"id":3,"name":"three"}`)
	const start, whole = "id,name\n1,one\n", "id,name\n1,one\n2,two\n3,three\n"
	harms := map[string]func(text []byte) []byte{
		"emptied":        func([]byte) []byte { return nil },
		"cut":            func(text []byte) []byte { return text[:len(text)/2] },
		"cut by a byte":  func(text []byte) []byte { return text[:len(text)-1] },
		"flipped":        func(text []byte) []byte { text[len(text)/2] ^= 4; return text },
		"its sum":        func(text []byte) []byte { text[0] ^= 1; return text },
		"something else": func([]byte) []byte { return []byte("{}") },
	}
	for name, harm := range harms {
		for slot := range 2 { // 1 is that of the first batch, 0 that of the second
			for _, size := range []int{len(whole), len(whole) - 5, len(start)} {
				dir := t.TempDir()
				file := filepath.Join(dir, "out.csv")
				open := func() Sender { return folder(t, newGate(t, Options{}), dir, FormatCSV) }
				first := open()
				for _, batch := range [][][]byte{one, two} {
					sent(t, first, plan, batch)
				}
				path := filepath.Join(dir, ".out.csv.destkit-journal-"+string(rune('0'+slot)))
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, harm(text), 0o600))
				require.NoError(t, os.Truncate(file, int64(size)))
				before := content(t, dir, "out.csv")
				_, err = open().Send(t.Context(), plan, two)
				if slot == 1 || size == len(start) { // the other one is complete, or nothing was written yet
					require.NoError(t, err, name)
					require.Equal(t, whole, content(t, dir, "out.csv"), name)
					continue
				}
				require.ErrorContains(t, err, "the journal .out.csv.destkit-journal-0 of out.csv is damaged", name)
				require.ErrorContains(t, err, "then remove the journal", name)
				require.Equal(t, before, content(t, dir, "out.csv"), name)
				require.NoError(t, os.Remove(path))
				require.NoError(t, os.WriteFile(file, []byte(start), 0o600))
				_, err = open().Send(t.Context(), plan, two)
				require.NoError(t, err, "as it said: %s", name)
				require.Equal(t, whole, content(t, dir, "out.csv"), name)
			}
		}
	}
}

// FuzzJournal: with any content of a file's journal, even with a good checksum,
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
