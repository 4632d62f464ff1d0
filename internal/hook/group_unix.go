//go:build unix

package hook

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the leader of its own process group, which is
// killed as a whole when the context ends: a hook is often a script, and its
// children would live on.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
