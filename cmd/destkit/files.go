package main

import (
	"os"

	"github.com/destkit/destkit/conformance"
)

// readWaivers reads a waiver file: a list under `waivers:`. What a waiver must
// say, and whether its check exists and still fails, is for the judge to look
// at.
func readWaivers(file string) ([]conformance.Waiver, error) {
	var content struct {
		Waivers []conformance.Waiver `yaml:"waivers"`
	}
	err := readYAML(file, &content)
	return content.Waivers, err
}

// readHooks reads the file of the author's hooks. Each has a URL or a command.
func readHooks(file string) (conformance.Hooks, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return conformance.Hooks{}, usagef("read hooks: %w", err)
	}
	return decodeHooks(file, src)
}

// decodeHooks is readHooks on bytes; file is used in messages only.
func decodeHooks(file string, src []byte) (conformance.Hooks, error) {
	var hooks conformance.Hooks
	if err := decodeYAML(file, src, &hooks); err != nil {
		return hooks, err
	}
	for _, h := range []struct {
		name string
		spec conformance.HookSpec
	}{
		{"cleanup", hooks.Cleanup},
		{"restart", hooks.Restart},
		{"alter_schema", hooks.AlterSchema},
		{"break_downstream", hooks.BreakDownstream},
		{"rotate_token", hooks.RotateToken},
	} {
		if h.spec.URL != "" && len(h.spec.Command) > 0 {
			return hooks, usagef("%s: the hook %s has both a url and a command; give one", file, h.name)
		}
		if h.spec.URL == "" {
			continue
		}
		if err := checkURL("hook "+h.name, h.spec.URL); err != nil {
			return hooks, usagef("%s: %w", file, err)
		}
	}
	if hooks.Timeout < 0 {
		return hooks, usagef("%s: timeout cannot be negative", file)
	}
	return hooks, nil
}
