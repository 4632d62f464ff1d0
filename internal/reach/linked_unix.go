//go:build unix

package reach

import (
	"os"
	"syscall"
)

// linked reports whether a file has more than one name.
func linked(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 1
}
