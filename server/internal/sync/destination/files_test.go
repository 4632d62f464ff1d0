package destination

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
)

// openFolder opens a local_files destination in its own root.
func openFolder(t testing.TB, root, object string) Connection {
	t.Helper()
	g := newGate(t, Options{FilesRoot: root})
	merged, problems := g.CheckConnection(api.TypeLocalFiles, creds(t, object), nil)
	require.Empty(t, problems)
	c, err := g.Open(5, api.TypeLocalFiles, merged)
	require.NoError(t, err)
	return c
}

func TestFilesCredentials(t *testing.T) {
	root := t.TempDir()
	cases := []struct{ name, root, given, want string }{
		{"relative below the root", root, `{"path":"a/b","format":"jsonl"}`, ""},
		{"absolute below the root", root, `{"path":` + quote(filepath.Join(root, "x")) + `}`, ""},
		{"the root itself", root, `{"path":"."}`, ""},
		{"no path", root, `{}`, ""},
		{"above", root, `{"path":"../x"}`, "path: must be below the folder"},
		{"above by a detour", root, `{"path":"a/../../x"}`, "path: must be below the folder"},
		{"elsewhere", root, `{"path":"/etc"}`, "path: must be below the folder"},
		{"no root, absolute", "", `{"path":` + quote(root) + `}`, ""},
		{"no root, relative", "", `{"path":"x"}`, "path: must be an absolute path"},
		{"no root, no path", "", `{}`, "path: is required"},
		{"format", root, `{"format":"xml"}`, "format: must be csv or jsonl"},
		{"number", root, `{"path":7}`, "path: must be a string"},
		{"NUL", root, `{"path":"a\u0000b"}`, "path: must not hold control"},
		{"unknown", root, `{"folder":"x"}`, "folder: unknown credential; local_files takes path, format"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			merged, problems := newGate(t, Options{FilesRoot: c.root}).CheckConnection(api.TypeLocalFiles, creds(t, c.given), nil)
			if c.want == "" {
				require.Empty(t, problems)
				require.Contains(t, merged, "format")
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, said(problems)[0], c.want)
		})
	}
}

// The test makes the folder, writes a file, reads it back and leaves nothing.
func TestFilesTest(t *testing.T) {
	root := t.TempDir()
	results := openFolder(t, root, `{"path":"deep/down"}`).Test(t.Context())
	require.Equal(t, []string{"path passed", "write passed"}, steps(results), failure(results))
	left, err := os.ReadDir(filepath.Join(root, "deep", "down"))
	require.NoError(t, err)
	require.Empty(t, left)

	results = openFolder(t, root, `{}`).Test(t.Context())
	require.True(t, Succeeded(results), failure(results))
	require.DirExists(t, filepath.Join(root, "destination-5"))
}

func TestFilesTestFails(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
	results := openFolder(t, root, `{"path":"file"}`).Test(t.Context())
	require.Equal(t, []string{"path failed", "write skipped"}, steps(results))

	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	c := openFolder(t, root, `{"path":"link"}`)
	results = c.Test(t.Context())
	require.Equal(t, []string{"path failed", "write skipped"}, steps(results), "a symbolic link does not lead out")
	_, err := c.Objects(t.Context())
	require.Error(t, err)
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFilesObjects(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"people.csv": "\uFEFFid,\"full name\",city\n1,Ann,Ghent\n", "empty.csv": "", "twice.csv": "a,a\n", "nameless.csv": "a,,b\n", "bad.csv": "a,\"b\n",
		"events.jsonl": `{"id":1,"when":"now","tags":["a"],"n":1}` + "\n\n" + `{"id":2,"n":1.5,"ok":true,"o":{},"m":[],"z":null}` + "\n" + `{"m":[1],"id":3,"ok":"yes"}`,
		"broken.jsonl": "{\"a\":1}\nnot json\n", ".hidden.csv": "a\n", "other.txt": "a\n",
	}
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "folder.csv"), 0o700))

	list, err := openFolder(t, root, `{"path":"."}`).Objects(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"records": "", "people": "id string, full name string, city string", "empty": "",
		"twice": "!read header line: the column \"a\" stands twice", "nameless": "!read header line: column 2 has no name", "bad": "!read header line: parse error on line 1, column 6: extraneous or missing \" in quoted-field",
	}, summary(list))
	require.Equal(t, "records", list[0].FullName)
	people := list[4]
	require.Equal(t, "people.csv", people.Label)
	require.Equal(t, []string{"append", "insert", "mirror"}, people.SupportedOperations)
	require.True(t, people.AllowCustomFields)
	require.True(t, people.SupportsFieldOrdering)
	require.Len(t, *people.SupportedCustomFieldTypes, 7)
	require.Equal(t, api.DestinationField{
		Label: "id", FullName: "id", Createable: true, Operations: []string{"overwrite"}, CanBeInsertKey: true, Type: "string",
	}, people.Fields[0])

	list, err = openFolder(t, root, `{"path":".","format":"jsonl"}`).Objects(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"records": "", "broken": "!read line 2: not a JSON object",
		"events": "id integer, when string, tags string[], n float, ok string, o string, m integer[], z string",
	}, summary(list))
	require.Len(t, *list[0].SupportedCustomFieldTypes, 14)
	require.False(t, list[0].SupportsFieldOrdering)
}

// summary gives the columns of each object, or its problem after "!".
func summary(list []*api.DestinationObject) map[string]string {
	all := map[string]string{}
	for _, o := range list {
		var parts []string
		for _, f := range o.Fields {
			part := f.FullName + " " + f.Type
			if f.Array {
				part += "[]"
			}
			parts = append(parts, part)
		}
		all[o.FullName] = strings.Join(parts, ", ")
		if !o.CanBeSyncDestination {
			_, why, _ := strings.Cut(*o.PrimaryIdentifierMappingAttributes.Upsert.Notes, "written to: ")
			all[o.FullName] = "!" + why
		}
	}
	return all
}

// Only the beginning of a long file is read, and its last line may be cut off.
func TestLongFile(t *testing.T) {
	line := `{"id":1,"text":"` + strings.Repeat("x", 1000) + `"}` + "\n"
	columns, err := jsonColumns([]byte(strings.Repeat(line, 3)[:2500]), false)
	require.NoError(t, err)
	require.Len(t, columns, 2)
	_, err = jsonColumns([]byte(strings.Repeat(line, 3)[:2500]), true)
	require.Error(t, err)
}

func FuzzColumns(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n"))
	f.Add([]byte(`{"a":[1,[2]],"b":{}}` + "\n" + `{"a":null}`))
	f.Fuzz(func(t *testing.T, head []byte) {
		for _, read := range []func() ([]column, error){
			func() ([]column, error) { return csvColumns(head) },
			func() ([]column, error) { return jsonColumns(head, true) },
		} {
			columns, err := read()
			if err != nil {
				continue
			}
			seen := map[string]bool{}
			for _, c := range columns {
				require.NotEmpty(t, c.name)
				require.NotEmpty(t, c.typ)
				require.False(t, seen[c.name])
				seen[c.name] = true
			}
		}
	})
}
