//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// leadGroup makes the command the leader of a process group: its children end with
// it, and Ctrl-C in the terminal reaches destkit alone.
func leadGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup signals the command and its children to end.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// killGroup kills the rest of them.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
