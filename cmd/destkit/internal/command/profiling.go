package command

import (
	"fmt"
	"os"

	"github.com/pkg/profile"
	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// Profiling holds the flags --profile-cpu DIR and so on. One profile can be
// taken at a time.
type Profiling struct {
	dirs map[string]*string
}

// modes are the profiles on offer, by the last part of their flag.
var modes = []struct {
	name, what string
	mode       func(*profile.Profile)
}{
	{"cpu", "where the processor's time goes", profile.CPUProfile},
	{"mem", "the memory in use", profile.MemProfileHeap},
	{"allocs", "all memory ever allocated", profile.MemProfileAllocs},
	{"mutex", "contended locks", profile.MutexProfile},
	{"block", "where goroutines wait", profile.BlockProfile},
	{"trace", "an execution trace", profile.TraceProfile},
}

// Register adds the flags to a long-running command and keeps them apart from
// each other.
func (p *Profiling) Register(cmd *cobra.Command) {
	p.dirs = map[string]*string{}
	var names []string
	for _, m := range modes {
		name := "profile-" + m.name
		p.dirs[m.name] = cmd.Flags().String(name, "", "write a profile of "+m.what+" into `DIR` (for go tool pprof or trace)")
		names = append(names, name)
	}
	cmd.MarkFlagsMutuallyExclusive(names...)
}

// Start begins the profile that was asked for; the function that it returns
// ends it and is never nil. Signals stay with the command.
func (p *Profiling) Start() (stop func(), err error) {
	for _, m := range modes {
		dir := *p.dirs[m.name]
		if dir == "" {
			continue
		}
		// The library ends the process when it cannot write; look first.
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return func() {}, exit.Usage(fmt.Errorf("make profile folder: %w", err))
		}
		probe, err := os.CreateTemp(dir, ".probe")
		if err != nil {
			return func() {}, exit.Usage(fmt.Errorf("write into profile folder: %w", err))
		}
		probe.Close()
		os.Remove(probe.Name())
		return profile.Start(m.mode, profile.ProfilePath(dir), profile.NoShutdownHook, profile.Quiet).Stop, nil
	}
	return func() {}, nil
}
