package server

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store"
)

// source makes a source of a file and gives the words of its failed test; "" for
// one that can be read.
func (w *world) fileSource(key, typ, path string) string {
	w.t.Helper()
	a := w.do("POST", "/sources", key, connection(map[string]any{"name": typ + " of " + path, "type": typ, "credentials": map[string]any{"path": path}})).want(201)
	if a.at("data.last_test_succeeded") == true {
		return ""
	}
	require.NotEmpty(w.t, a.header.Get("Warning"))
	objects := w.do("GET", fmt.Sprintf("/sources/%d/objects", a.id("data.id")), key, nil).want(200)
	require.Empty(w.t, objects.at("data"), string(objects.text))
	return a.header.Get("Warning")
}

// filesIn writes a file with rows into a folder.
func filesIn(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "people.csv")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(path, []byte("email\nada@example.com\n"), 0o600))
	return path
}

// TestFoldersThatAreOpen: by default files/ of the data and, without organizations
// of others, the working directory; with folders that are named only those.
func TestFoldersThatAreOpen(t *testing.T) {
	root := t.TempDir()
	dir, work, other := filepath.Join(root, "data"), filepath.Join(root, "work"), filepath.Join(root, "other")
	own, here, there := filesIn(t, filepath.Join(dir, "files", "out")), filesIn(t, work), filesIn(t, other)
	hidden := filesIn(t, filepath.Join(work, ".ssh"))
	config := func(c *Config) { c.AllowFiles, c.Dir, c.MasterKey, c.WorkFolder = nil, dir, make([]byte, 32), work }
	const refused = "in no folder that is open to sources and destinations \\(--allow-files\\)"

	w := newWorld(t, config)
	for path, want := range map[string]string{own: "", here: "", there: refused, hidden: refused, filepath.Join(other, "none.csv"): refused, "/etc/passwd": refused, "/etc/shadow": refused} {
		require.Regexp(t, "^"+strings.Repeat(".*", len(want))+want, w.fileSource(w.key, "csv", path), path)
		require.Equal(t, want == "", w.fileSource(w.key, "jsonl", path) == "" || strings.Contains(w.fileSource(w.key, "jsonl", path), "line 1"), path)
	}
	// An organization of the seed of the start is none of others.
	seed := "organizations:\n  - name: Ours\n    workspaces:\n      - name: Main\n        sources:\n          - {name: People, type: csv, credentials: {path: " + here + "}}\n"
	seeded := must(w.s.Seed(t.Context(), "seed.yaml", []byte(seed)))(t)
	require.Empty(t, w.fileSource(seeded.Organizations[0].Workspaces[0].APIKey, "csv", here))
	// One that is made later is, for all of them, until it is gone.
	made := w.control("POST", "/organizations", nil).want(201)
	for _, key := range []string{w.key, made.at("workspace_api_key").(string)} {
		require.Regexp(t, refused, w.fileSource(key, "csv", here))
		require.Empty(t, w.fileSource(key, "csv", own))
	}
	w.control("DELETE", fmt.Sprintf("/organizations/%d", made.id("organization_id")), nil).want(200)
	require.Empty(t, w.fileSource(w.key, "csv", here))
	// So is one of a later seed.
	later := strings.ReplaceAll(seed, here, own)
	w.control("POST", "/seed", later).want(201)
	require.Regexp(t, refused, w.fileSource(w.key, "csv", here))

	named := newWorld(t, config, func(c *Config) { c.Dir, c.AllowFiles = filepath.Join(root, "data2"), []string{other} })
	require.Empty(t, named.fileSource(named.key, "csv", there))
	require.Empty(t, named.fileSource(named.key, "csv", other))
	require.Regexp(t, refused, named.fileSource(named.key, "csv", here))
	none := newWorld(t, config, func(c *Config) { c.Dir, c.AllowFiles = filepath.Join(root, "data3"), []string{} })
	require.Regexp(t, refused, none.fileSource(none.key, "csv", here))
}

// TestSecretsUnderOtherNames: a copy of what the service keeps secret is none the
// less withheld, of whatever type the source is.
func TestSecretsUnderOtherNames(t *testing.T) {
	root := t.TempDir()
	dir, open := filepath.Join(root, "data"), filepath.Join(root, "open")
	filesIn(t, open)
	key := bytes.Repeat([]byte{7, 42}, 16)
	private := filepath.Join(open, "smtp.txt")
	w := newWorld(t, func(c *Config) {
		c.AllowFiles, c.Dir, c.MasterKey, c.Private, c.ControlToken = []string{open}, dir, key, []string{private}, "the control token of this service"
	})
	put := func(name string, text []byte) string {
		path := filepath.Join(open, name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	backup := filepath.Join(open, "backup.db")
	require.NoError(t, store.Backup(t.Context(), dir, backup))
	snapshot := w.saved()
	header := contentOf(t, backup)
	for name, path := range map[string]string{
		"password":              put("smtp.txt", []byte("password-of-mail\n")),
		"older password":        put("smtp.txt.old", []byte("password-of-mail\n")),
		"copy of the key":       put("notes.csv", []byte(hex.EncodeToString(key)+"\n")),
		"key among other words": put("env.csv", []byte("KEY="+hex.EncodeToString(key)+"\nX=1\n")),
		"an earlier key":        put("earlier.csv", []byte(hex.EncodeToString(bytes.Repeat([]byte{9}, 32))+"\n")),
		"private key":           put("tls.csv", []byte("-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n")),
		"control token":         put("env2.csv", []byte("A=1\nTOKEN=the control token of this service\n")),
		"snapshot":              put("world.csv", snapshot),
		"backup":                backup,
		"backup under a name":   put("people2.csv", header),
	} {
		for _, typ := range []string{"csv", "jsonl", "parquet", "sqlite"} {
			if typ == "sqlite" && !strings.HasPrefix(name, "backup") && !strings.Contains(name, "password") {
				continue // no database
			}
			require.Contains(t, w.fileSource(w.key, typ, path), "keeps this for itself", "%s as %s", name, typ)
		}
	}
	require.Empty(t, w.fileSource(w.key, "csv", filepath.Join(open, "people.csv")))
}

// TestFilesAreWrittenWhereTheyMay: a local_files destination of a service in memory
// writes where sources may read, and nowhere else.
func TestFilesAreWrittenWhereTheyMay(t *testing.T) {
	root := t.TempDir()
	open, closed := filepath.Join(root, "open"), filepath.Join(root, "closed")
	filesIn(t, open)
	filesIn(t, closed)
	require.NoError(t, os.Symlink(closed, filepath.Join(open, "way")))
	w := newWorld(t, func(c *Config) { c.AllowFiles = []string{open} })
	for path, want := range map[string]bool{
		filepath.Join(open, "exports"): true, closed: false, filepath.Join(closed, "new"): false, filepath.Join(open, "way", "new"): false, "/etc": false,
		open + "/../closed/new": false,
	} {
		a := w.do("POST", "/destinations", w.key, map[string]any{"service_connection": map[string]any{
			"name": "Files", "type": "local_files", "credentials": map[string]any{"path": path},
		}}).want(201)
		require.Equal(t, want, a.at("data.last_test_succeeded"), "%s: %s", path, a.text)
		if !want {
			require.Contains(t, string(a.text), "--allow-files", path)
		}
	}
	require.NoDirExists(t, filepath.Join(closed, "new"))
}
