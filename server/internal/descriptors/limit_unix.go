//go:build unix

package descriptors

import "syscall"

// limit is how many files this process may have open.
func limit() int64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return most
	}
	if l.Cur > most { // also one without a limit
		return most
	}
	return int64(l.Cur)
}
