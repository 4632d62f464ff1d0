package reach

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree is an open folder next to a closed one, with files of the service in both.
type tree struct {
	t                        *testing.T
	root, open, closed, data string
	files                    *Files
}

func newTree(t *testing.T) *tree {
	root := t.TempDir()
	w := &tree{t: t, root: root, open: filepath.Join(root, "open"), closed: filepath.Join(root, "closed"), data: filepath.Join(root, "open", "data")}
	for name, text := range map[string]string{
		"open/a.csv": "a\n1\n", "open/sub/b.csv": "b\n", "open/.hidden/c.csv": "c\n", "open/master.key": "key", "open/master.key.old": "old", "open/data/store.db": "db",
		"open/data/files/out.csv": "mine\n", "closed/secret.csv": "s3cret\n", "open/copy.csv": "MAGIC\n",
	} {
		w.write(name, text)
	}
	w.files = &Files{
		Folders: func() ([]Folder, error) { return []Folder{{Path: w.open}}, nil },
		Private: []string{filepath.Join(w.open, "master.key")}, Kept: []string{w.data}, Lent: []string{filepath.Join(w.data, "files")},
		Secret: func(head []byte, _ int64) bool { return strings.HasPrefix(string(head), "MAGIC") },
	}
	return w
}

func (w *tree) write(name, text string) string {
	path := filepath.Join(w.root, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *tree) link(to, name string) string {
	path := filepath.Join(w.root, name)
	require.NoError(w.t, os.Symlink(to, path))
	return path
}

// read opens a path as a source does.
func (w *tree) read(path string) (string, error) {
	place, err := w.files.Find(path)
	if err != nil {
		return "", err
	}
	f, err := place.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

func TestFilesThatAreOpen(t *testing.T) {
	w := newTree(t)
	t.Chdir(w.open)
	for path, want := range map[string]string{
		filepath.Join(w.open, "a.csv"): "a\n1\n",
		"a.csv":                        "a\n1\n",
		"./sub/../a.csv":               "a\n1\n",
		w.link(filepath.Join(w.open, "a.csv"), "open/l"):    "a\n1\n",
		w.link("sub", "open/folder") + "/b.csv":             "b\n",
		w.link(w.open, "closed/way") + "/a.csv":             "a\n1\n",
		filepath.Join(w.data, "files", "out.csv"):           "mine\n",
		filepath.Join(w.open, ".hidden/c.csv"):              "c\n",
		filepath.Join(w.open, "data", "..", "sub", "b.csv"): "b\n",
	} {
		text, err := w.read(path)
		require.NoError(t, err, path)
		require.Equal(t, want, text, path)
	}
}

// TestFilesThatAreNot: whatever name leads there.
func TestFilesThatAreNot(t *testing.T) {
	w := newTree(t)
	hard := func(of, name string) string {
		path := filepath.Join(w.root, name)
		require.NoError(t, os.Link(of, path))
		return path
	}
	secret, key, db := filepath.Join(w.closed, "secret.csv"), filepath.Join(w.open, "master.key"), filepath.Join(w.data, "store.db")
	for name, path := range map[string]string{
		"outside":                     secret,
		"above":                       filepath.Join(w.open) + "/../closed/secret.csv",
		"link out":                    w.link(secret, "open/out"),
		"relative link out":           w.link("../closed/secret.csv", "open/relative"),
		"folder that leads out":       w.link(w.closed, "open/leads") + "/secret.csv",
		"link to a link":              w.link(filepath.Join(w.open, "out"), "open/twice"),
		"through a link and back":     w.link(w.closed, "open/back") + "/../closed/secret.csv",
		"key":                         key,
		"old key":                     key + ".old",
		"older key that is not there": key + ".old7",
		"link to the key":             w.link(key, "open/k"),
		"hard link to the key":        hard(key, "open/hard.csv"),
		"hard link to an old key":     hard(key+".old", "open/hardold.csv"),
		"key in other letters":        filepath.Join(w.open, "Master.Key"),
		"database":                    db,
		"database that is not there":  filepath.Join(w.data, "nothing.db"),
		"hard link to the database":   hard(db, "open/db.csv"),
		"link to the data":            w.link(w.data, "open/d") + "/store.db",
		"out of what is lent":         filepath.Join(w.data, "files") + "/../store.db",
		"copy of something secret":    filepath.Join(w.open, "copy.csv"),
		"environment":                 "/proc/self/environ",
		"root of this process":        "/proc/self/root" + filepath.Join(w.open, "a.csv"),
		"descriptor":                  "/proc/self/fd/0",
		"link to the environment":     w.link("/proc/self/environ", "open/env"),
		"system":                      "/sys/kernel/notes",
		"empty":                       "",
		"NUL":                         filepath.Join(w.open, "a.csv") + "\x00",
	} {
		text, err := w.read(path)
		require.Error(t, err, name)
		require.True(t, Refused(err), "%s: %v", name, err)
		require.Empty(t, text, name)
	}
}

// TestNothingTellsWhatIsOutside: the answer about a path that is not open does not
// depend on its existence.
func TestNothingTellsWhatIsOutside(t *testing.T) {
	w := newTree(t)
	lead := w.link(w.closed, "open/lead")
	for _, pair := range [][2]string{
		{filepath.Join(w.closed, "secret.csv"), filepath.Join(w.closed, "nothing.csv")},
		{filepath.Join(lead, "secret.csv"), filepath.Join(lead, "nothing.csv")},
		{lead + "/../closed/secret.csv", lead + "/../closed/nothing.csv"},
		{w.link(filepath.Join(w.closed, "secret.csv"), "open/there"), w.link(filepath.Join(w.closed, "nothing"), "open/gone")},
		{filepath.Join(w.open, "master.key.old"), filepath.Join(w.open, "master.key.old9")},
		{filepath.Join(w.closed), filepath.Join(w.root, "nowhere", "deep", "down")},
		{"/etc/passwd", "/etc/no-such-file"},
		{"/etc/passwd/", "/etc/passwd/x"},
	} {
		_, there := w.read(pair[0])
		_, gone := w.read(pair[1])
		var a, b *FileError
		require.ErrorAs(t, there, &a, pair[0])
		require.ErrorAs(t, gone, &b, pair[1])
		require.Equal(t, a.Why, b.Why, pair)
	}
	// Within an open folder the error reports it.
	_, err := w.read(filepath.Join(w.open, "nothing.csv"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// relative is the target of a link to somewhere; one that begins at the root is
// followed by no os.Root.
func relative(t *testing.T, link, to string) string {
	path, err := filepath.Rel(filepath.Dir(link), to)
	require.NoError(t, err)
	return path
}

// TestReplacedWhileOpened: a name that leads elsewhere when the file is opened than
// when it was found does not open what it leads to.
func TestReplacedWhileOpened(t *testing.T) {
	for name, to := range map[string]func(w *tree) string{
		"outside":      func(w *tree) string { return filepath.Join(w.closed, "secret.csv") },
		"another file": func(w *tree) string { return filepath.Join(w.open, "a.csv") },
		"the database": func(w *tree) string { return filepath.Join(w.data, "store.db") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTree(t)
			place, err := w.files.Find(w.write("open/x/y.csv", "y\n"))
			require.NoError(t, err)
			require.NoError(t, os.Remove(place.Real()))
			require.NoError(t, os.Symlink(relative(t, place.Real(), to(w)), place.Real()))
			_, err = place.Open()
			require.Error(t, err)
			// The folder on the way, too.
			place, err = w.files.Find(w.write("open/z/"+filepath.Base(to(w)), "z\n"))
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(filepath.Dir(place.Real())))
			way := filepath.Dir(place.Real())
			require.NoError(t, os.Symlink(relative(t, way, filepath.Dir(to(w))), way))
			_, err = place.Open()
			require.Error(t, err)
			_, err = place.Stat()
			require.Error(t, err)
		})
	}
}

// TestPlainFolder shows nothing that is hidden, by whatever name.
func TestPlainFolder(t *testing.T) {
	w := newTree(t)
	w.files.Folders = func() ([]Folder, error) { return []Folder{{Path: w.open, Plain: true}}, nil }
	_, err := w.read(filepath.Join(w.open, "a.csv"))
	require.NoError(t, err)
	for _, path := range []string{filepath.Join(w.open, ".hidden", "c.csv"), w.link(".hidden/c.csv", "open/shown"), filepath.Join(w.open, ".nothing")} {
		_, err := w.read(path)
		require.True(t, Refused(err), "%s: %v", path, err)
	}
	_, err = w.files.Folder(filepath.Join(w.open, ".made", "x"))
	require.True(t, Refused(err), "%v", err)
	require.NoDirExists(t, filepath.Join(w.open, ".made"))
}

// TestFolderToWriteTo is made where it may be, and nowhere else.
func TestFolderToWriteTo(t *testing.T) {
	w := newTree(t)
	for _, path := range []string{filepath.Join(w.open, "new", "deep"), filepath.Join(w.open, "sub"), w.open} {
		root, err := w.files.Folder(path)
		require.NoError(t, err)
		require.NoError(t, root.WriteFile("written", nil, 0o600))
		require.NoError(t, root.Close())
		require.FileExists(t, filepath.Join(path, "written"))
	}
	for _, path := range []string{
		w.closed, filepath.Join(w.closed, "new"), w.link(w.closed, "open/out") + "/new", filepath.Join(w.open, "..", "closed", "new"), w.data,
		filepath.Join(w.data, "new"), w.link(filepath.Join(w.root, "nowhere"), "open/dangling"), w.link(filepath.Join(w.root, "nowhere"), "open/dangling2") + "/x",
	} {
		_, err := w.files.Folder(path)
		require.True(t, Refused(err), "%s: %v", path, err)
	}
	require.NoDirExists(t, filepath.Join(w.closed, "new"))
	require.NoDirExists(t, filepath.Join(w.root, "nowhere"))
}

// TestReplacedBetweenLookAndOpening: the open file counts, and not the one found
// before.
func TestReplacedBetweenLookAndOpening(t *testing.T) {
	w := newTree(t)
	for name, to := range map[string]string{
		"the database": filepath.Join(w.data, "store.db"), "another file": filepath.Join(w.open, "a.csv"), "outside": filepath.Join(w.closed, "secret.csv"),
	} {
		place, err := w.files.Find(w.write("open/turn.csv", "plain\n"))
		require.NoError(t, err)
		place.turn = func() {
			require.NoError(t, errors.Join(os.Remove(place.Real()), os.Symlink(relative(t, place.Real(), to), place.Real())))
		}
		_, err = place.Open()
		require.Error(t, err, name)
		require.NoError(t, os.Remove(place.Real()))
	}
}
