package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// choosing holds what every judgement has in common, of a destination and of a
// service: what is judged, by which measure, and how it is reported.
type choosing struct {
	options conformance.Options

	config, waivers, features, profile string
	verbose                            bool
}

// register adds the flags; a judgement takes the time that it needs.
func (c *choosing) register(cmd *cobra.Command, timeout time.Duration, glob, config string) {
	o, f := &c.options, cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.profile, "profile", string(conformance.ProfileV1), "`spec|v1|strict`: rules that decide the verdict")
	f.StringSliceVarP(&o.Select, "select", "s", nil, "`GLOB`: only the checks that match, as "+glob+" (repeatable)")
	f.StringSliceVar(&o.Skip, "skip", nil, "leave out the checks that match `GLOB` (repeatable)")
	f.StringVar(&c.waivers, "waivers", "", "YAML `FILE` of accepted failures")
	f.StringVar(&c.features, "features", "", "`DIR` of your own feature files; shown, never scored")

	f.DurationVar(&o.Timeout, "timeout", timeout, "bound of the run; the rest is NOT_RUN")
	f.BoolVar(&o.Serial, "serial", false, "one check at a time, easier to follow in a log")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of values and keys (0: chosen, and printed)")

	f.StringVarP(&c.config, "config", "c", "", config)
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

// Commands that a run shows work when they are pasted into a new shell in the same
// folder: they carry the flags that matter, and the files that they name exist.

// shownCommands are the words of the commands that a run shows.
type shownCommands struct {
	access, rerun string
	private       bool // reports of it can be read by their owner alone
	secrets       secretWords
}

// commands are those of a run.
func (j *judging) commands(cmd *cobra.Command, target destination.Target) shownCommands {
	secrets := j.secrets(target)
	return shownCommands{
		access:  secrets.in(accessWords(cmd, j.settings, j.TokenVariable(), target.URL)),
		rerun:   secrets.in(rerunWords(cmd, target.URL)),
		secrets: secrets,
	}
}

// unrepeated are the flags that a command shown by a run leaves out:
// selection and output, and files of that run alone.
var unrepeated = []string{
	"select", "skip", "report", "verbose", "quiet", "no-color", "journal", "require-complete", "require-clean",
	"profile-cpu", "profile-mem", "profile-trace", "header", "waivers", "watch", "watch-path", "exec",
}

// accessFlags are those that every call of an endpoint needs.
var accessFlags = []string{"token-env", "tls-roots", "development", "url-secret"}

// accessWords are the flags by which the run of cmd got in: those of its settings, too,
// for the commands that take them read no file of settings. They name the URL where
// neither the report nor $DESTKIT_URL does.
func accessWords(cmd *cobra.Command, settings configfile.Settings, token, url string) string {
	set := func(f *pflag.Flag) bool { return f.Changed || settings.Sets(f.Name) }
	words := flagWords(cmd, func(f *pflag.Flag) bool { return set(f) && slices.Contains(accessFlags, f.Name) })
	if flag := cmd.Flags().Lookup("token-env"); token == command.TokenVariable && flag != nil && !set(flag) && !command.OnThisSide(url) {
		words += " --token-env " + token
	}
	held := os.Getenv(command.URLVariable)
	switch shown := command.ShownURL(url); {
	case held == url:
	case shown == "" || secretInPath(cmd):
		words += ` --url "$DESTKIT_URL"`
	case held != "":
		words += " --url " + foreign.ShellWord(shown)
	}
	return words + headerWords(cmd, set)
}

// secretInPath reports whether a part of the URL is said to be a secret.
func secretInPath(cmd *cobra.Command) bool {
	secret := cmd.Flags().Lookup("url-secret")
	return secret != nil && secret.Value.String() != ""
}

func changed(f *pflag.Flag) bool { return f.Changed }

// rerunWords is the command line of cmd with its URL, $DESTKIT_URL where that holds a
// secret.
func rerunWords(cmd *cobra.Command, url string) string {
	words := cmd.CommandPath()
	if shown := command.ShownURL(url); shown != "" && !secretInPath(cmd) {
		words += " " + foreign.ShellWord(shown)
	} else if url != "" {
		words += ` "$DESTKIT_URL"`
	}
	return words + flagWords(cmd, func(f *pflag.Flag) bool { return f.Changed && !slices.Contains(unrepeated, f.Name) }) + headerWords(cmd, changed)
}

// flagWords are the flags that are wanted. A variable replaces a URL that holds
// a secret.
func flagWords(cmd *cobra.Command, wanted func(*pflag.Flag) bool) string {
	var words strings.Builder
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !wanted(f) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case f.Value.Type() == "bool" && value == "true":
				words.WriteString(" --" + f.Name)
			case strings.Contains(value, "://") && command.ShownURL(value) == "":
				held := cmp.Or(variableOf(value), "DESTKIT_"+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")))
				words.WriteString(" --" + f.Name + ` "$` + held + `"`)
			default:
				words.WriteString(" --" + f.Name + " " + foreign.ShellWord(value))
			}
		}
	})
	return words.String()
}

// headerWords are the headers with the names of variables in the place of values.
func headerWords(cmd *cobra.Command, wanted func(*pflag.Flag) bool) string {
	f := cmd.Flags().Lookup("header")
	if f == nil || !wanted(f) {
		return ""
	}
	words := ""
	for _, line := range f.Value.(pflag.SliceValue).GetSlice() {
		name, _, _ := strings.Cut(line, ":")
		words += fmt.Sprintf(` --header "%s: $%s"`, strings.TrimSpace(name), headerVariable(name))
	}
	return words
}

// prepare makes the commands of a report work in the shell and in the folder of the run.
func (s shownCommands) prepare(result *conformance.Report) {
	for i := range result.Checks {
		for k := range result.Checks[i].Findings {
			writeBody(&result.Checks[i].Findings[k])
		}
	}
	s.secrets.name(result)
}

// writeBody writes the files that the command of a finding names into the folder of the
// run. Where that is not possible the body is in the command.
func writeBody(f *conformance.Finding) {
	for name, body := range f.BodyFiles() {
		name = filepath.FromSlash(name)
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if err == nil {
			err = os.WriteFile(name, body, 0o600)
		}
		if err == nil {
			continue
		}
		if whole := f.Exchanges[0].Curl(); whole != "" {
			f.Curl = whole
		}
		return
	}
}
