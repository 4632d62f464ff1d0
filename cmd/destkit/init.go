package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/skeletons"
	"github.com/destkit/destkit/internal/suggest"
)

// initialising holds the flags of init.
type initialising struct {
	choice   skeletons.Choice
	force    bool
	existing existing
}

// newInit is the first command of whoever has nothing yet.
func newInit() *cobra.Command {
	var i initialising
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write an endpoint that passes, or the configuration for yours",
		Long: `Write a small custom destination into DIR (this folder when left out): an
endpoint in the language of your choice, its store, its own test, a Dockerfile,
the configuration of the judge with a read-back hook, and a file for your
pipeline. It passes 'destkit conform' as it is; change its schema and its
store, and judge again. Node, Python and Go need nothing but their runtime with
the stores memory and sqlite.

With --existing URL the endpoint there is asked what it offers (planning calls
that read; nothing is written into it), and what is written is the
configuration of the judge, with a place for values that it accepts, and the
file for your pipeline.

A file that exists is never overwritten without --force. At the end the commands
are printed that start the endpoint and judge it.`,
		Example: `  destkit init my-destination --lang python
  destkit init my-destination --lang node --store sqlite --ci gitlab
  destkit init my-destination --lang go --store postgres --ci none
  destkit init judge --existing https://example.com/destination \
      --token-env TOKEN`,
		Args: command.Arguments(0, 1, "the folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := "."
			if len(args) > 0 {
				folder = args[0]
			}
			folder, err := filepath.Abs(folder)
			if err != nil {
				return exit.Untested(err)
			}
			if i.existing.url != "" {
				return i.fromExisting(cmd, folder)
			}
			return i.fromSkeleton(cmd, folder)
		},
	}
	f := cmd.Flags()
	f.StringVar(&i.choice.Language, "lang", "", "`"+strings.Join(skeletons.Languages, "|")+"`: of the endpoint")
	f.StringVar(&i.choice.Store, "store", skeletons.Stores[0], "`"+strings.Join(skeletons.Stores, "|")+"`: of records")
	f.StringVar(&i.choice.Pipeline, "ci", skeletons.Pipelines[0], "`"+strings.Join(skeletons.Pipelines, "|")+"`: pipeline")
	f.IntVar(&i.choice.Port, "port", 8080, "`PORT` of the endpoint; hooks: the next one")
	f.BoolVar(&i.force, "force", false, "overwrite files that exist")
	i.existing.register(f)
	for _, flag := range []string{"lang", "store", "port"} {
		cmd.MarkFlagsMutuallyExclusive("existing", flag)
	}
	return cmd
}

// fromSkeleton writes an endpoint and prints how to start and judge it.
func (i *initialising) fromSkeleton(cmd *cobra.Command, folder string) error {
	if i.choice.Language == "" {
		return exit.Usagef("choose the language with --lang: %s; or give the URL of your endpoint with --existing", strings.Join(skeletons.Languages, ", "))
	}
	if err := i.checkChoices(); err != nil {
		return err
	}
	if i.choice.Port < 1 || i.choice.Port > 65534 {
		return exit.Usagef("--port %d is no port: use 1 to 65534", i.choice.Port)
	}
	files, err := skeletons.Files(i.choice)
	if err != nil {
		return exit.Untested(err)
	}
	if err := writeFiles(cmd.OutOrStdout(), folder, files, i.force); err != nil {
		return err
	}
	commands, err := skeletons.CommandsOf(i.choice)
	if err != nil {
		return exit.Untested(err)
	}
	printCommands(cmd.OutOrStdout(), "Start the endpoint ("+commands.Needs+"):", folder, commands.Start)
	printCommands(cmd.OutOrStdout(), "Judge it, in another terminal:", folder, commands.Judge)
	return nil
}

// checkChoices refuses words that are no choice, with those that are.
func (i *initialising) checkChoices() error {
	for _, c := range []struct {
		flag, value string
		choices     []string
	}{{"lang", i.choice.Language, skeletons.Languages}, {"store", i.choice.Store, skeletons.Stores}, {"ci", i.choice.Pipeline, skeletons.Pipelines}} {
		if err := checkChoice(c.flag, c.value, c.choices); err != nil {
			return err
		}
	}
	return nil
}

func checkChoice(flag, value string, choices []string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	if near := suggest.Word(value, choices); near != "" {
		return exit.Usagef("--%s %q: did you mean %s? Choose %s", flag, value, near, strings.Join(choices, ", "))
	}
	return exit.Usagef("--%s %q: choose %s", flag, value, strings.Join(choices, ", "))
}

// writeFiles writes all files or none: it looks for existing ones first.
func writeFiles(w io.Writer, folder string, files []skeletons.File, force bool) error {
	var there []string
	for _, file := range files {
		if _, err := os.Lstat(filepath.Join(folder, filepath.FromSlash(file.Name))); err == nil {
			there = append(there, file.Name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return exit.Untested(fmt.Errorf("look for %s: %w", file.Name, err))
		}
	}
	if len(there) > 0 && !force {
		exist := "exist"
		if len(there) == 1 {
			exist = "exists"
		}
		return exit.Usagef("%s %s already in %s; nothing was written: choose another folder, or overwrite with --force", strings.Join(there, ", "), exist, folder)
	}
	for _, file := range files {
		name := filepath.Join(folder, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return exit.Untested(fmt.Errorf("make folder: %w", err))
		}
		if err := writeFile(name, file.Content, force); err != nil {
			return exit.Untested(fmt.Errorf("write %s: %w", file.Name, err))
		}
	}
	foreign.Printf(w, "wrote %s into %s\n", quantity.Count(len(files), "file"), folder)
	for _, file := range files {
		foreign.Printf(w, "  %s\n", file.Name)
	}
	return nil
}

// writeFile makes one file. Without force it must not exist, also when it came
// about a moment ago.
func writeFile(name string, content []byte, force bool) (err error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(content)
	return err
}

// printCommands shows what to paste into a fresh shell.
func printCommands(w io.Writer, title, folder string, commands []string) {
	foreign.Printf(w, "\n%s\n  cd %s\n", title, foreign.ShellWord(folder))
	for _, command := range commands {
		foreign.Printf(w, "  %s\n", command)
	}
}
