package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source/internal/fileformat"
	"github.com/destkit/destkit/internal/testkit"
)

// folder writes files into a new folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func TestFolderOfFiles(t *testing.T) {
	dir := folder(t, map[string]string{
		"users.csv": "id\n1\n", "größe 表.CSV": "a\nx\n", "tabs.tsv": "a\tb\n1\t2\n", "same.csv": "c\n", "same.tsv": "t\n",
		"notes.txt": "no table", ".hidden.csv": "h\n", "no.extension": "",
	})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "nested.csv"), 0o700))
	src := open(t, "csv", map[string]any{"path": dir}, Options{})
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"main.main.größe 表", "main.main.same.csv", "main.main.same.tsv", "main.main.tabs", "main.main.users"}, names(tables))
	require.Equal(t, []string{"a integer integer", "b integer integer"}, short(tables[3].Columns))

	for _, o := range []Object{{Name: "users"}, {Name: "users.csv"}, {Catalog: "main", Schema: "main", Name: "users"}} {
		columns, err := src.Columns(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, []string{"id integer integer"}, short(columns))
	}
	for _, o := range []Object{{Name: "same"}, {Name: "notes"}, {Name: ".hidden"}, {Name: "nested"}, {Name: "../x"}, {Name: "us\x00ers"}, {Name: ""}, {Schema: "x", Name: "users"}} {
		_, err := src.Columns(t.Context(), o)
		require.ErrorIs(t, err, ErrNoTable, o)
	}

	require.NoError(t, os.WriteFile(filepath.Join(dir, "zz.csv"), nil, 0o600))
	_, err = src.Tables(t.Context())
	require.EqualError(t, err, "read "+filepath.Join(dir, "zz.csv")+": the file is empty: its first line must name the columns", "one bad file is not left out silently")
	tables, err = open(t, "jsonl", map[string]any{"path": dir}, Options{}).Tables(t.Context())
	require.NoError(t, err)
	require.Empty(t, tables)
}

func TestOneFile(t *testing.T) {
	path := testkit.WriteFile(t, "export.2024.data", "id,name\n1,x\n")
	src := open(t, "csv", map[string]any{"path": path}, Options{})
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"main.main.export.2024"}, names(tables))
	require.Equal(t, []string{`[1,"x"]`}, readAll(t, src, Object{Name: "export.2024.data"}, nil, nil))
	require.NoError(t, os.Remove(path))
	_, err = src.Tables(t.Context())
	require.EqualError(t, err, "open "+path+": there is no such file")
}

func TestFilesThatCannotBeRead(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, typ := range []string{"csv", "jsonl", "parquet"} {
		for path, says := range map[string]string{
			missing:               "open " + missing + ": there is no such file",
			"/dev/zero":           "open /dev/zero: it is not a regular file",
			missing + "/under":    "open " + missing + "/under: there is no such file",
			os.Args[0] + "/under": "open " + os.Args[0] + "/under: not a directory",
		} {
			_, err := Open(t.Context(), typ, credentials(map[string]any{"path": path}), Options{})
			require.EqualError(t, err, "open "+typ+" source: "+says)
		}
	}
	if os.Geteuid() != 0 {
		dir := folder(t, map[string]string{"a.csv": "a\n"})
		require.NoError(t, os.Chmod(filepath.Join(dir, "a.csv"), 0))
		_, err := open(t, "csv", map[string]any{"path": dir}, Options{}).Tables(t.Context())
		require.ErrorContains(t, err, "the service may not read it")
	}
}

// TestFileChangedWhileRead: rows of two moments are never mixed silently.
func TestFileChangedWhileRead(t *testing.T) {
	for typ, line := range map[string]string{"csv": "1\n", "jsonl": `{"a":1}` + "\n"} {
		head := map[string]string{"csv": "a\n"}[typ]
		path := testkit.WriteFile(t, "a."+typ, head+strings.Repeat(line, 100_000))
		src := open(t, typ, map[string]any{"path": path}, Options{})
		rows, err := src.(Reader).Rows(t.Context(), Object{Name: "a"}, nil, nil)
		require.NoError(t, err)
		_, err = rows.Next()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(head+strings.Repeat(line, 10)), 0o600))
		for err == nil {
			_, err = rows.Next()
		}
		require.ErrorIs(t, err, fileformat.ErrChanged)
		require.NoError(t, rows.Close())
	}
}
