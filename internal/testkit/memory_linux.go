package testkit

import (
	"os"
	"syscall"
)

// roomInMemory is the free space in bytes that the memory must have: more than any
// test fills.
const roomInMemory = 6 << 30

// memory is a folder in memory, "" where there is none with room: a schema is
// hundreds of files, and half of the work on a disk is to make them. A configured
// folder for temporary files wins.
func memory() string {
	const folder = "/dev/shm"
	var at syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(folder, &at) != nil || at.Bavail*uint64(at.Bsize) < roomInMemory {
		return ""
	}
	return folder
}
