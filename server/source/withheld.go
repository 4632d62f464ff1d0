package source

import (
	"fmt"
	"path/filepath"
	"strings"
)

// systemFolders show the inside of processes as files: the environment of this
// one may hold the master key.
var systemFolders = []string{"/proc", "/sys"}

// readable tells why a source must not read a path, wherever links on the way
// lead; nil when it may. A path that does not exist is for the caller to miss.
func (o Options) readable(path string) error {
	// Not cleaned before: what ".." means depends on the links before it.
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	for _, folder := range systemFolders {
		for _, name := range []string{real, filepath.Clean(path)} { // not all links there can be followed
			if name == folder || strings.HasPrefix(name, folder+"/") {
				return fmt.Errorf("open %s: files of the system's own are not read", path)
			}
		}
	}
	if err != nil {
		return nil
	}
	if o.Withheld != nil && o.Withheld(real) {
		return fmt.Errorf("open %s: the service keeps this for itself; name a file outside of its data directory", path)
	}
	return nil
}
