package serve

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// checkFolder refuses a data directory that is none, or that cannot be read, before
// anything is made in it. One that is not there yet is made later.
func checkFolder(dir string) error {
	if dir == "" {
		return nil
	}
	for above := dir; ; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err == nil && !info.IsDir() {
			return exit.Usagef("--data %s: %s is a file; give a folder", dir, above)
		} else if err == nil || above == filepath.Dir(above) {
			break
		}
	}
	switch _, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrPermission):
		return exit.Usagef("--data %s: this user has no permission to read the folder; give another, or change its permissions", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("--data %s: the folder cannot be read: %w", dir, err)
	}
	return nil
}
