package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
)

// choosing holds what every judgement has in common, of a destination and of a
// service: what is judged, by which measure, and how it is told.
type choosing struct {
	options conformance.Options

	config, waivers, features, profile string
	verbose                            bool
}

// register adds the flags; a judgement takes the time that it needs.
func (c *choosing) register(cmd *cobra.Command, timeout time.Duration, glob string) {
	o, f := &c.options, cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.profile, "profile", string(conformance.ProfileV1), "which failures decide the verdict: `spec|v1|strict` (spec: MUSTs of the specification and of JSON-RPC; v1: published MUSTs too; strict: everything)")
	f.StringSliceVarP(&o.Select, "select", "s", nil, "run only the checks that match `GLOB`, for example "+glob+" (repeatable, or with commas)")
	f.StringSliceVar(&o.Skip, "skip", nil, "leave out the checks that match `GLOB` (repeatable, or with commas)")
	f.StringVar(&c.waivers, "waivers", "", "YAML `FILE` of accepted failures, a list under 'waivers:'")
	f.StringVar(&c.features, "features", "", "`DIR` of your own feature files; shown, never scored")

	f.DurationVar(&o.Timeout, "timeout", timeout, "bound of the whole run; what is not reached is NOT_RUN")
	f.BoolVar(&o.Serial, "serial", false, "judge one check at a time, slower and easier to follow in a log")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of generated values and keys (0: chosen, and printed)")

	f.StringVarP(&c.config, "config", "c", "", "YAML `FILE`; every flag can stand there under its own name, and 'fixtures:'")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "list what would else be summed up, with its evidence")
}

// resolve reads what the flags name.
func (c *choosing) resolve() error {
	c.options.Profile = conformance.Profile(c.profile)
	c.options.Version = command.ReadBuild().Version
	if c.options.Timeout <= 0 {
		return exit.Usagef("--timeout must be longer than nothing, not %s", c.options.Timeout)
	}
	return c.resolveFiles()
}

// resolveFiles reads the waivers and opens the folder of features.
func (c *choosing) resolveFiles() error {
	if c.waivers != "" {
		waivers, err := configfile.ReadWaivers(c.waivers)
		if err != nil {
			return err
		}
		c.options.Waivers = waivers
	}
	if c.features == "" {
		return nil
	}
	info, err := os.Stat(c.features)
	if err != nil {
		return exit.Usagef("open --features: %w", err)
	}
	if !info.IsDir() {
		return exit.Usagef("--features %s is a file; give the folder that holds the .feature files", c.features)
	}
	// A file system, not a path: the library opens nothing by itself.
	c.options.Features = os.DirFS(c.features)
	return nil
}
