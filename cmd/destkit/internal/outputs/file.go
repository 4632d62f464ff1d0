package outputs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// CheckFile looks whether a file can be written later, or replaced if there is one: a
// slip must not show after minutes of work. named is the flag with its value, for messages.
func CheckFile(named, file string) error {
	folder := filepath.Dir(file)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return exit.Usagef("%s: there is no folder %s", named, folder)
	}
	switch info, err := os.Stat(file); {
	case err == nil && info.IsDir():
		return exit.Usagef("%s: that is a folder; name a file in it", named)
	case err == nil && !info.Mode().IsRegular():
		return nil // it is written where it is
	case err == nil: // where a link leads, for it is replaced there
		if real, err := filepath.EvalSymlinks(file); err == nil {
			folder = filepath.Dir(real)
		}
	}
	probe, err := os.CreateTemp(folder, ".destkit-*")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return exit.Usagef("%s: no permission to write into the folder %s", named, folder)
	} else if err != nil {
		return nil // a full disk may have room until then
	}
	probe.Close()
	os.Remove(probe.Name())
	return nil
}
