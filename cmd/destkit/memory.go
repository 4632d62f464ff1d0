package main

import (
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// judgeMemory is what the garbage collector of a judge keeps to. What an endpoint can
// make it hold is counted and lower; without the limit as much again could be
// garbage.
const judgeMemory = 160 << 20

// frugal is a command that reads what others wrote, and stays below 256 MiB of memory
// whatever that is. GOMEMLIMIT wins.
func frugal(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if os.Getenv("GOMEMLIMIT") == "" {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(judgeMemory))
		}
		return run(cmd, args)
	}
	return cmd
}
