package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/loads"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/cmd/destkit/internal/protocol"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// objectsWithin is how long a shell waits for the objects of an endpoint.
const objectsWithin = time.Second

// candidates are what a shell offers, each alone or with a tab and its description.
type candidates = []cobra.Completion

// completeWords makes the completion of every command and flag. A shell must not be
// disturbed: unknown values are not offered, without a message.
func completeWords(root *cobra.Command) {
	completeArguments(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Name() == cobra.ShellCompRequestCmd { // hundreds of flags, which nothing else completes
			completeFlags(root)
		}
		return command.RefuseEmpty(cmd)
	}
	for _, sub := range root.Commands() {
		for _, shell := range sub.Commands() {
			if sub.Name() == "completion" { // the library's texts
				shell.Long = foldLong(shell.Long)
			}
		}
	}
}

// foldLong breaks the lines of a text that are too long.
func foldLong(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > command.HelpColumns && !strings.HasPrefix(line, "\t") {
			lines = append(lines, command.FoldLines(line, command.HelpColumns)...)
			continue
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// completeArguments completes the arguments of each command.
func completeArguments(root *cobra.Command) {
	arguments := map[string]cobra.CompletionFunc{
		"destkit explain":      oneOf(func(*cobra.Command) candidates { return checkWords("") }),
		"destkit schema":       onlyFirst(oneOf(schemaNames)),
		"destkit protocol":     oneOf(protocolMethods),
		"destkit replay":       replayArguments,
		"destkit diff":         filesOf(2, "json"),
		"destkit load compare": filesOf(2, "json"),
		"destkit load merge":   filesOf(-1, "json"),
		"destkit init":         foldersOnly,
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if complete := arguments[cmd.CommandPath()]; complete != nil {
			cmd.ValidArgsFunction = complete
			delete(arguments, cmd.CommandPath())
		} else if !cmd.HasSubCommands() || cmd.Runnable() {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for path := range arguments {
		panic("there is no command " + path + " whose arguments could be completed")
	}
}

// choiceKind is the kind of a flag that lists its values: `spec|v1|strict`.
var choiceKind = regexp.MustCompile(`^[a-z0-9-]+(\|[a-z0-9-]+)+$`)

// completeFlags completes the values of each flag: by its name where that
// decides, else by the kind of value that its help text names.
func completeFlags(root *cobra.Command) {
	byName := map[string]cobra.CompletionFunc{
		"select":          listed(selectors),
		"skip":            listed(selectors),
		"object":          listed(objectNames),
		"preset":          oneOf(func(*cobra.Command) candidates { return destsim.Presets() }),
		"report":          reportWords,
		"operation":       listed(func(*cobra.Command) candidates { return candidates{"upsert", "insert", "update", "delete"} }),
		"skip-convention": oneOf(func(*cobra.Command) candidates { return candidates{"failure", "success", "success-with-message"} }),
		"config":          filesOf(-1, "yaml", "yml"), "hooks": filesOf(-1, "yaml", "yml"), "waivers": filesOf(-1, "yaml", "yml"), "seed": filesOf(-1, "yaml", "yml"),
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			kind, _ := pflag.UnquoteUsage(f)
			complete := byName[f.Name]
			switch {
			case f.Name == "violate":
				complete = listed(simulatorViolations)
			case f.Name == "seed" && f.Value.Type() != "string":
				complete = cobra.NoFileCompletions
			case complete != nil:
			case choiceKind.MatchString(kind):
				complete = oneOf(func(*cobra.Command) candidates { return strings.Split(kind, "|") })
			case strings.HasSuffix(f.Name, "-env"):
				complete = oneOf(variables)
			case kind == "DIR":
				complete = foldersOnly
			case kind == "FILE" || f.Value.Type() == "bool":
				return // any file; none
			default:
				complete = cobra.NoFileCompletions
			}
			if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
				panic(err) // a flag that has one already
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// oneOf completes one word.
func oneOf(list func(*cobra.Command) candidates) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) (candidates, cobra.ShellCompDirective) {
		return without(list(cmd), begun, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// listed completes the last of several words with commas between them.
func listed(list func(*cobra.Command) candidates) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) (candidates, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndex(begun, ",")+1]
		var all candidates
		for _, word := range without(list(cmd), begun[len(before):], strings.Split(before, ",")) {
			all = append(all, before+word)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// without leaves out the words that are there, and those that begin otherwise.
func without(list candidates, begun string, given []string) candidates {
	return slices.DeleteFunc(slices.Clone(list), func(word string) bool {
		name, _, _ := strings.Cut(word, "\t")
		return slices.Contains(given, name) || !strings.HasPrefix(name, begun)
	})
}

// onlyFirst completes the first argument.
func onlyFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) (candidates, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, begun)
	}
}

// filesOf completes so many files (-1: any number) with one of the extensions.
func filesOf(most int, extensions ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) (candidates, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}

func foldersOnly(*cobra.Command, []string, string) (candidates, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// candidate is a word with its description, which may come from outside.
func candidate(word, description string) cobra.Completion {
	return cobra.CompletionWithDesc(foreign.Line(word), foreign.Clip(foreign.Line(description), 100))
}

// checkWords are the checks of a suite, of both with "".
func checkWords(suite string) candidates {
	checks, err := catalogues(suite)
	if err != nil {
		return nil
	}
	return lists.Of(checks, func(c *conformance.Check) string { return candidate(c.ID, c.Title) })
}

// selectors are the checks that a command can run, and the areas that they are in.
func selectors(cmd *cobra.Command) candidates {
	suite := conformance.SuiteDestination
	if cmd.Name() == conformance.SuiteService {
		suite = conformance.SuiteService
	}
	checks, err := catalogues(suite)
	if err != nil {
		return nil
	}
	var all candidates
	area := ""
	for _, check := range checks {
		if prefix, _, _ := strings.Cut(check.ID, "-"); prefix != area {
			area = prefix
			all = append(all, candidate(prefix+"-*", "all "+prefix+" checks"))
		}
		all = append(all, candidate(check.ID, check.Title))
	}
	return all
}

func simulatorViolations(*cobra.Command) candidates {
	return lists.Of(destsim.Violations(), func(v destsim.Violation) string { return candidate(v.ID, v.Changes) })
}

func schemaNames(*cobra.Command) candidates {
	list, err := readSchemas()
	if err != nil {
		return nil
	}
	return lists.Of(list, func(s namedSchema) string { return candidate(s.name, s.title) })
}

func protocolMethods(*cobra.Command) candidates {
	book, err := protocol.NewBook()
	if err != nil {
		return nil
	}
	return lists.Of(book.Methods, func(m protocol.Method) string { return candidate(m.Name, m.Summary) })
}

// variables are the names of the variables of the environment; their values may be
// secret.
func variables(*cobra.Command) candidates {
	var all candidates
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); command.VariableName.MatchString(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// reportWords completes the format of a --report; behind it any file can be named.
func reportWords(cmd *cobra.Command, _ []string, begun string) (candidates, cobra.ShellCompDirective) {
	if strings.ContainsAny(begun, "=./") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	formats := outputs.JudgeFormats()
	if cmd.Name() == "load" || cmd.HasParent() && cmd.Parent().Name() == "load" {
		formats = loads.FormatsOf(cmd)
	}
	all := lists.Of(formats, func(f outputs.Format) string {
		return cobra.CompletionWithDesc(f.Name+"=", strings.Join(f.Extensions, ", "))
	})
	return without(all, begun, nil), cobra.ShellCompDirectiveNoSpace
}

// replayArguments are a report and then the checks that failed in it.
func replayArguments(_ *cobra.Command, args []string, begun string) (candidates, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return candidates{"json"}, cobra.ShellCompDirectiveFilterFileExt
	}
	r, err := readReport(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all candidates
	for _, check := range r.Checks {
		if len(check.Findings) > 0 {
			all = append(all, candidate(check.ID, check.Title))
		}
	}
	return without(all, begun, args), cobra.ShellCompDirectiveNoFileComp
}

// plainName is a word that no shell takes for more than itself.
var plainName = regexp.MustCompile(`^[\p{L}\p{N}_.:/@+-]+$`)

// objectNames are those of the endpoint that the command line names, none when it does
// not answer in time.
func objectNames(cmd *cobra.Command) candidates {
	list, err := askObjects(cmd)
	if err != nil {
		return nil
	}
	var all candidates
	for _, object := range list {
		if !plainName.MatchString(object.APIName) {
			continue
		}
		all = append(all, candidate(object.APIName, object.Label))
	}
	return all
}

// askObjects calls list_objects with the flags of the command line.
func askObjects(cmd *cobra.Command) ([]rpc.Object, error) {
	e := &existing{timeout: objectsWithin}
	for _, word := range cmd.Flags().Args() {
		if command.CheckScheme("endpoint", word) == nil {
			e.url = word
		}
	}
	e.url = cmp.Or(e.url, os.Getenv(command.URLVariable))
	if e.url == "" {
		return nil, errors.New("no endpoint is named")
	}
	for name, value := range map[string]*string{"token-env": &e.token.Variable, "tls-roots": &e.roots} {
		if f := cmd.Flags().Lookup(name); f != nil {
			*value = f.Value.String()
		}
	}
	if f := cmd.Flags().Lookup("header"); f != nil {
		e.headers = f.Value.(pflag.SliceValue).GetSlice()
	}
	e.token.FallBack()
	client, err := e.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), objectsWithin)
	defer cancel()
	return client.ListObjects(ctx)
}
