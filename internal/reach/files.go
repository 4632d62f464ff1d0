package reach

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files selects the files that may be opened for a user of the API. Nil
// opens all but what the system shows of processes.
type Files struct {
	// Folders are those that are open at this moment, with all below them.
	Folders func() ([]Folder, error)
	// Private are files of the service itself: never opened, nor any other name of
	// theirs, nor an older or newer version next to one (master.key.old2).
	Private []string
	// Kept are folders of the service itself, never opened with all below them but
	// for those in Lent.
	Kept, Lent []string
	// Secret reports by its beginning, and its size, whether a file is one of the
	// service's own, wherever it was copied to. Nil: none is.
	Secret func(head []byte, size int64) bool
	// Database is the application id of the service's own SQLite databases; 0: none.
	Database uint32
}

// Folder is open with all below it; where Plain, without hidden files: names that
// begin with a point.
type Folder struct {
	Path  string
	Plain bool
}

// FileError is a file that is not opened. It is the same even if there is none.
type FileError struct{ Path, Why string }

func (e *FileError) Error() string { return "open " + e.Path + ": " + e.Why }

// Private is the error of a file that is the service's own.
func Private(path string) error { return &FileError{path, whyPrivate} }

const (
	whySystem  = "files of the system's own are not read"
	whyPrivate = "the service keeps this for itself; name a file outside of its data directory"
	whyFolder  = "it is in no folder that is open to sources and destinations (--allow-files)"
)

// systemFolders show the inside of processes as files: the environment of this
// one may hold the master key.
var systemFolders = []string{"/proc", "/sys"}

// system reports whether a path is one of those; not all links there can be
// followed, so that the path as it was given counts, too.
func system(path string) bool {
	return slices.ContainsFunc(systemFolders, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
}

// Place is a file or folder that may be opened, if it has not changed since it was
// found: that is checked again after opening.
type Place struct {
	files  *Files
	given  string   // for messages
	real   string   // absolute, without links
	folder string   // one that is open; "" where all are
	below  []string // the names from there to the place
	turn   func()   // tests: what happens between the look at a file and its opening
}

// Real is the path without links.
func (p *Place) Real() string { return p.real }

// Find returns where a path leads, or why that must not be opened: a *FileError,
// or the system's error for a path within a folder that is open.
func (f *Files) Find(path string) (*Place, error) {
	refuse := func(why string) (*Place, error) { return nil, &FileError{path, why} }
	if strings.ContainsRune(path, 0) {
		return refuse("a path must not hold a NUL")
	}
	lexical, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// Not cleaned before: the meaning of ".." depends on the links before it.
	real, missing := resolve(path)
	if system(lexical) || missing == nil && system(real) {
		return refuse(whySystem)
	}
	if f == nil {
		return &Place{given: path, real: real}, missing
	}
	if f.private(lexical) || missing == nil && f.private(real) {
		return refuse(whyPrivate)
	}
	if missing != nil {
		// Without access to a folder the error does not reveal what is missing there.
		real, known := nearest(path)
		if _, err := f.within(path, real); !known || err != nil || f.private(real) {
			return refuse(whyFolder)
		}
		return nil, missing
	}
	return f.within(path, real)
}

// resolve follows all links of a path.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// nearest is where a path that is not there would be: the nearest folder above that
// is there, without links, and the rest of the path. known is false where a link on
// the way leads to nothing: it is unknown where.
func nearest(path string) (real string, known bool) {
	const slash = string(filepath.Separator)
	rest := ""
	for {
		path = strings.TrimRight(path, slash)
		if _, err := os.Lstat(path); err == nil && path != "" {
			real, err := resolve(path)
			return filepath.Join(real, rest), err == nil
		}
		at := strings.LastIndex(path, slash)
		rest = path[at+1:] + slash + rest
		switch {
		case at > 0:
			path = path[:at]
		case at == 0:
			return filepath.Join(slash, rest), true
		default:
			real, err := resolve(".")
			return filepath.Join(real, rest), err == nil
		}
	}
}

// within finds the open folder that holds a path without links.
func (f *Files) within(given, real string) (*Place, error) {
	folders, err := f.Folders()
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		base, err := resolve(folder.Path)
		if err != nil {
			continue
		}
		rest, ok := under(base, real)
		if !ok || folder.Plain && hidden(rest) {
			continue
		}
		return &Place{files: f, given: given, real: real, folder: base, below: rest}, nil
	}
	return nil, &FileError{given, whyFolder}
}

// under gives the names from a folder to a path below it; none for the folder.
func under(folder, path string) (names []string, ok bool) {
	rest, err := filepath.Rel(folder, path)
	if err != nil || rest == ".." || strings.HasPrefix(rest, ".."+string(filepath.Separator)) {
		return nil, false
	}
	if rest == "." {
		return nil, true
	}
	return strings.Split(rest, string(filepath.Separator)), true
}

func hidden(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") })
}

// private reports by its name alone whether a path is the service's own, so that
// the answer is the same for one that does not exist.
func (f *Files) private(path string) bool {
	for _, own := range f.Private {
		for _, own := range spellings(own) {
			name, file := filepath.Base(path), filepath.Base(own)
			if filepath.Dir(path) == filepath.Dir(own) && (strings.EqualFold(name, file) || len(name) > len(file) && strings.EqualFold(name[:len(file)+1], file+".")) {
				return true
			}
		}
	}
	for _, kept := range f.Kept {
		for _, kept := range spellings(kept) {
			if _, ok := under(kept, path); ok && !f.lent(path) {
				return true
			}
		}
	}
	return false
}

func (f *Files) lent(path string) bool {
	for _, lent := range f.Lent {
		for _, lent := range spellings(lent) {
			if _, ok := under(lent, path); ok {
				return true
			}
		}
	}
	return false
}

// spellings are a path as it is given and without links, of which the last may
// lead to nothing yet.
func spellings(path string) []string {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	all := []string{path}
	if real, err := resolve(path); err == nil && real != path {
		all = append(all, real)
	}
	if folder, err := resolve(filepath.Dir(path)); err == nil {
		if beside := filepath.Join(folder, filepath.Base(path)); beside != path {
			all = append(all, beside)
		}
	}
	return all
}

// own reports whether something that is there is a private file by another name: a
// hard link, or a name in other letters where the system does not distinguish them.
func (f *Files) own(info os.FileInfo) bool {
	for _, path := range f.Private {
		versions, err := filepath.Glob(globbed(path) + ".*")
		if err != nil {
			versions = nil
		}
		for _, path := range append(versions, path) {
			if kept, err := os.Stat(path); err == nil && os.SameFile(kept, info) {
				return true
			}
		}
	}
	if info.IsDir() || !linked(info) {
		return false
	}
	return f.ownLinked(info)
}

// ownLinked looks through the folders of the service for another name of a file.
func (f *Files) ownLinked(info os.FileInfo) bool {
	found := false
	for _, kept := range f.Kept {
		_ = filepath.WalkDir(kept, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || found {
				return nil // a file that is gone meanwhile is no other name
			}
			if entry.IsDir() {
				if real, err := resolve(path); err == nil && f.lent(real) {
					return filepath.SkipDir
				}
				return nil
			}
			if other, err := entry.Info(); err == nil && os.SameFile(other, info) {
				found = true
			}
			return nil
		})
	}
	return found
}

// globbed takes the meaning from what a pattern would read otherwise.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// ownFolder reports whether an open folder is one of the service's own, or, where
// the one above it is, has not been lent.
func (f *Files) ownFolder(at *os.Root, above bool) (bool, error) {
	info, err := at.Stat(".")
	if err != nil {
		return false, err
	}
	is := func(paths []string) bool {
		for _, path := range paths {
			if other, err := os.Stat(path); err == nil && os.SameFile(other, info) {
				return true
			}
		}
		return false
	}
	return !is(f.Lent) && (above || is(f.Kept)), nil
}

var errChanged = errors.New("it was replaced while it was opened")
