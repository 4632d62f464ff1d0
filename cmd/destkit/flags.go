package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/internal/foreign"
)

// judging holds what `conform` and `plan` have in common: the target and the
// options of a run. Most flags bind onto conformance.Options; resolve turns the
// rest into it.
type judging struct {
	command.Connection
	choosing

	command.Reading
	replicas        []string
	leftovers       bool
	hooks, keyRange string
	settings        configfile.Settings
}

// register adds the flags that decide what is sent and how it is judged. Every
// one of them can be set in the configuration file under its own name.
func (j *judging) register(cmd *cobra.Command) {
	o, f := &j.options, cmd.Flags()
	f.SortFlags = false
	j.Connection.Register(cmd, o)
	f.StringArrayVar(&j.replicas, "replica", nil, "`URL` of a further process, called in turn (repeatable)")

	f.BoolVar(&o.Write, "write", false, "allow writing into the objects named by --object")
	f.StringSliceVarP(&o.Objects, "object", "o", nil, "`NAME` to look at; with --write, to fill (repeatable)")
	f.BoolVar(&j.leftovers, "allow-leftovers", false, "write also where what is written cannot be deleted")
	f.IntVar(&o.MaxRecords, "max-records", 5000, "write at most `N` records in all")
	f.StringVar(&o.KeyTemplate, "key-template", "zz-conf-{run}-{check}-{n}", "`TEMPLATE`: string keys")
	f.StringVar(&j.keyRange, "key-range", "", "`FROM:TO`: integer keys (default: above 2^32, chosen)")
	f.StringVar(&o.SkipConvention, "skip-convention", "", "`WORD`: a skip is failure, success, success-with-message")
	f.StringVar(&o.Journal, "journal", "", "keys written (default `FILE`: destkit-journal-….ndjson)")

	j.Reading.Register(cmd, o)
	f.StringVar(&j.hooks, "hooks", "", "YAML `FILE` of cleanup, restart and three other hooks")
	f.BoolVar(&o.Load, "load", false, "allow checks at the full declared speed, 30 s and more")

	f.IntVar(&o.ProbePlainHTTP, "probe-plain-http", 0, "`PORT`: must not answer plain http (0: not probed)")
	j.choosing.register(cmd, 2*time.Minute, "'RES-*'", configfile.Flag)
}

// resolve reads the configuration file and all files that flags name, and
// returns the options of the judge. Every error of it is exit 2. It does not
// repeat the library's checks of its options.
func (j *judging) resolve(cmd *cobra.Command, url string) (destination.Target, conformance.Options, error) {
	var err error
	if j.settings, err = configfile.Load(cmd, j.config, keysOfOthers(cmd)...); err != nil {
		return destination.Target{}, j.options, err
	}
	j.options.Fixtures = j.settings.Fixtures
	target, err := j.Connection.Resolve(url, &j.options)
	target.Replicas = command.Replicas(cmd, j.replicas)
	for _, replica := range target.Replicas {
		if err == nil {
			err = command.CheckScheme("replica", replica)
		}
	}
	j.options.RefuseLeftovers = !j.leftovers
	for i, name := range j.options.Objects { // as in 'a, b'
		j.options.Objects[i] = strings.TrimSpace(name)
	}
	for _, step := range []func() error{j.resolveBounds, j.resolveHooks, j.choosing.resolve} {
		if err == nil {
			err = step()
		}
	}
	return target, j.options, j.settings.Placed(err)
}

// secrets are the words for the secrets of the run in the commands that it shows.
func (j *judging) secrets(target destination.Target) secretWords {
	s := secretWords{}
	if name := j.TokenVariable(); name != "" {
		s[command.TokenVariable] = "${" + name + "}"
	}
	if os.Getenv(command.URLVariable) != target.URL {
		s[command.URLVariable] = "${" + command.URLVariable + ":?}" // what it holds is another URL
	}
	s.holding(command.URLVariable, target.URL)
	for _, line := range j.Headers {
		s.header(line)
	}
	return s
}

// keysOfOthers are the settings of conform that a command does not have: one file is
// for both.
func keysOfOthers(cmd *cobra.Command) (keys []string) {
	if cmd.Name() == "conform" {
		return nil
	}
	for _, key := range settingKeys() {
		if cmd.Flags().Lookup(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// settingKeys are all keys of a configuration of conform.
func settingKeys() (keys []string) {
	newConform().Flags().VisitAll(func(f *pflag.Flag) {
		if configfile.Configurable(f) {
			keys = append(keys, f.Name)
		}
	})
	return keys
}

// resolveBounds refuses what the library would read as "not set", and parses
// the range of keys.
func (j *judging) resolveBounds() error {
	o := &j.options
	switch {
	case o.ProbePlainHTTP < 0 || o.ProbePlainHTTP > 65535:
		return exit.Usagef("--probe-plain-http %d is no port (1 to 65535)", o.ProbePlainHTTP)
	case o.MaxRecords < 1:
		return exit.Usagef("--max-records must be 1 or more, not %d", o.MaxRecords)
	}
	return command.ResolveKeyRange(j.keyRange, o)
}

// resolveHooks builds the read-back hook and reads the file of the others.
func (j *judging) resolveHooks() error {
	err := j.Reading.Resolve(&j.options)
	if err != nil {
		return err
	}
	if j.hooks != "" {
		j.options.Hooks, err = configfile.ReadHooks(j.hooks)
	}
	return err
}

// replayedURL takes the URL out of the arguments behind the report; without one it is
// that of --url, of the environment or of the report.
func replayedURL(cmd *cobra.Command, flag string, args []string, old *conformance.Report) (ids []string, address string, err error) {
	for _, word := range args[1:] {
		if strings.Contains(word, "://") && flag == "" {
			flag = word
			continue
		}
		ids = append(ids, word)
	}
	address, err = command.EndpointURLOr(cmd, flag, args[0], old.Target)
	return ids, address, err
}

// cleanedURL is the URL of --url, of the argument, of the environment or of the
// journal.
func cleanedURL(cmd *cobra.Command, flag string, args []string, journal string) (string, error) {
	if flag == "" && len(args) > 0 {
		flag = args[0]
		if info, err := os.Stat(flag); err == nil && info.Mode().IsRegular() {
			return "", exit.Usagef("%s is a file, and the URL of the endpoint goes here: did you mean --journal %s?", flag, foreign.ShellWord(flag))
		}
	}
	named := ""
	if journal != "" {
		_, named, _ = conformance.ReadJournal(journal) // one that cannot be read is refused later
	}
	return command.EndpointURLOr(cmd, flag, journal, named)
}
