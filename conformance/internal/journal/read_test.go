package journal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodHeader = `{"entry":"run","header":{"run":"r","target":"t","started":"2026-01-02T03:04:05Z"}}` + "\n"

const goodBatch = `{"entry":"batch","batch":{"seq":1,"object":"o","field":"f","operation":"upsert","identifiers":["a"]}}` + "\n"

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.ndjson")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestATornLastLineIsLeftOut(t *testing.T) {
	second := strings.Replace(goodBatch, `"seq":1`, `"seq":2`, 1)
	for cut := range len(second) {
		path := write(t, goodHeader+goodBatch+second[:cut])
		read, err := Read(path)
		require.NoError(t, err, "cut at %d", cut)
		require.Len(t, read.Pending(), 1)
	}
	path := write(t, goodHeader+goodBatch+second[:40]+"\x00\x00")
	j, err := Open(path)
	require.NoError(t, err)
	seq, err := j.Begin("o", "f", "upsert", raws(`"b"`))
	require.NoError(t, err)
	require.Equal(t, int64(2), seq)
	require.NoError(t, j.Close())
	read, err := Read(path)
	require.NoError(t, err)
	require.Len(t, read.Pending(), 2)
}

func TestATornHeaderIsAnEmptyJournal(t *testing.T) {
	for _, text := range []string{"", goodHeader[:20]} {
		path := write(t, text)
		_, err := Read(path)
		require.ErrorContains(t, err, "no header; expected the journal of a run of destkit conform")
		j, err := Create(path, Header{Run: "r"})
		require.NoError(t, err)
		require.NoError(t, j.Close())
		_, err = Read(path)
		require.NoError(t, err)
	}
}

func TestReadIsStrictBeforeTheLastLine(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"not JSON":          {goodHeader + "oops\n" + goodBatch, "line 2, column 1: not JSON: not the start of a value; expected the journal of a run of destkit conform"},
		"unknown member":    {goodHeader + `{"entry":"batch","more":1}` + "\n", `line 2: unknown member "more"; expected the journal of a run of destkit conform`},
		"two values":        {goodHeader + strings.TrimSpace(goodBatch) + "{}\n", ": not JSON: more than one value"},
		"unknown entry":     {goodHeader + `{"entry":"batsh"}` + "\n", `line 2: unknown entry "batsh"`},
		"no member":         {goodHeader + `{"entry":"batch"}` + "\n", `line 2: entry "batch" without its member`},
		"no header":         {goodBatch, "line 1: the first line"},
		"second header":     {goodHeader + goodHeader, "line 2: the first line"},
		"header names none": {`{"entry":"run","header":{"run":"","target":"","started":"2026-01-02T03:04:05Z"}}` + "\n", "line 1: the header names no run"},
		"gap":               {goodHeader + strings.Replace(goodBatch, `"seq":1`, `"seq":3`, 1), "line 2: batch 3 follows batch 0"},
		"twice":             {goodHeader + goodBatch + goodBatch, "line 3: batch 1 follows batch 1"},
		"no object":         {goodHeader + strings.Replace(goodBatch, `"o"`, `""`, 1), "line 2: batch without an object"},
		"stray outcome":     {goodHeader + `{"entry":"outcome","outcome":{"seq":4,"acknowledged":[],"refused":[],"unknown":[]}}` + "\n", "line 2: outcome of batch 4"},
		"strange outcome":   {goodHeader + goodBatch + `{"entry":"outcome","outcome":{"seq":1,"acknowledged":["z"],"refused":[],"unknown":[]}}` + "\n", `line 3: outcome of "z", which is not in batch 1`},
		"empty line":        {goodHeader + "\n" + goodBatch, "line 2 is empty"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := write(t, c.text)
			_, err := Read(path)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
		})
	}
	_, err := Read(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

const childVariable = "DESTKIT_JOURNAL_TEST_CHILD"

// TestKilledChild is the child of TestKillLosesNoAnnouncedBatch: it announces
// batches until it is killed.
func TestKilledChild(t *testing.T) {
	path := os.Getenv(childVariable)
	if path == "" {
		t.Skip("runs as a child process only")
	}
	j, err := Create(path, header)
	require.NoError(t, err)
	for n := 0; ; n++ {
		key := raws(fmt.Sprintf(`"key-%d"`, n))
		seq, err := j.Begin("contact", "email", "upsert", key)
		require.NoError(t, err)
		fmt.Println(n)
		require.NoError(t, j.Finish(seq, key, nil))
	}
}

func TestKillLosesNoAnnouncedBatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.ndjson")
	child := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	child.Env = append(os.Environ(), childVariable+"="+path)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	announced := 0
	for announced < 25 && lines.Scan() {
		announced++
	}
	require.NoError(t, child.Process.Kill())
	for lines.Scan() {
		announced++ // what it wrote before it died
	}
	require.Error(t, child.Wait())
	require.GreaterOrEqual(t, announced, 25)

	j, err := Open(path)
	require.NoError(t, err)
	keys := map[string]bool{}
	for _, key := range j.Pending() {
		keys[string(key.Identifier)] = true
	}
	for n := range announced {
		require.True(t, keys[fmt.Sprintf(`"key-%d"`, n)], "key %d", n)
	}
	require.NoError(t, j.Cleaned(j.Pending()))
	require.NoError(t, j.Close())
	read, err := Read(path)
	require.NoError(t, err)
	require.Empty(t, read.Pending())
}

func FuzzRead(f *testing.F) {
	f.Add(goodHeader + goodBatch)
	f.Add(goodHeader + `{"entry":"cleaned","cleaned":{"object":"o","field":"f","identifiers":["a"]}}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		j, err := load("fuzz", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, key := range j.Pending() {
			if !json.Valid(key.Identifier) {
				t.Fatalf("pending key %q", key.Identifier)
			}
		}
	})
}
