//go:build !unix

package main

import (
	"os/exec"
	"strconv"
)

// leadGroup does nothing where there are no process groups.
func leadGroup(*exec.Cmd) {}

// endGroup ends the command and its children.
func endGroup(cmd *exec.Cmd) { killGroup(cmd) }

// killGroup ends the tree of processes below the command.
func killGroup(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	_ = cmd.Process.Kill()
}
