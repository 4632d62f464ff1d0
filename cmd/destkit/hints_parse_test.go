package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/internal/matrixtest"
)

// Every command that a message offers is looked at wherever a transcript prints one: it
// must be the command line of this program, and name files that are there.

// hint is a command that a line of output offers, with the words before it.
var hint = regexp.MustCompile(`^\s*(?:(?:[a-z]+|to delete them):?\s+)?((?:destkit|curl) .*)$`)

// hintLabels are the words before a command on its line.
var hintLabels = []string{"again", "explain", "replay", "next", "run", "try", "see", "data", "verify", "judge", "to delete them"}

// inWords is a command in the middle of a sentence, at its end after a colon, or in JSON.
var inWords = regexp.MustCompile(`'(destkit [a-z-][^']*)'|: (destkit [a-z-].*)$|: "(destkit [a-z-](?:[^"\\\\]|\\\\.)*)"`)

// besides separates two commands on a line.
var besides = regexp.MustCompile(`\s{2,}explain:\s+`)

// bare is a command outside of a hint whose end is not clear: one with a flag, or one that
// the reader should run. Others, such as "decided by destkit conform", name a command.
var bare = regexp.MustCompile(`\bdestkit [a-z][a-z -]* --[a-z]|\b(?:run|call|try) destkit [a-z]`)

// code is a span of Markdown.
var code = regexp.MustCompile("`[^`]*`")

// hintsIn lists the commands that an output offers. A line that ends with a backslash
// goes on in the next.
func hintsIn(output string) []string {
	all, _ := offers(output)
	return all
}

// offers lists the commands that an output offers, and the lines that name a command
// without offering one: it is not clear where it ends there.
func offers(output string) (all, unclear []string) {
	output = strings.ReplaceAll(output, "\\\n", "")
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "usage: ") {
			continue
		}
		if m := hint.FindStringSubmatchIndex(line); m != nil {
			label := strings.TrimRight(strings.TrimSpace(line[:m[2]]), ":")
			command := line[m[2]:m[3]]
			if slices.Contains(hintLabels, label) || label == "" && (strings.HasPrefix(line, " ") || isCommand(command)) {
				for _, part := range besides.Split(command, -1) {
					all = append(all, strings.TrimSpace(part))
				}
				continue
			}
		}
		for _, m := range inWords.FindAllStringSubmatch(line, -1) {
			if m[1] != "" || isCommand(cmp.Or(m[2], m[3])) {
				all = append(all, cmp.Or(m[1], m[2], m[3]))
			}
		}
		if bare.MatchString(code.ReplaceAllString(inWords.ReplaceAllString(line, ""), "")) {
			unclear = append(unclear, strings.TrimSpace(line))
		}
	}
	return all, unclear
}

// isCommand reports whether a line begins as one of the program, or of curl.
func isCommand(line string) bool {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "destkit" {
		return len(words) > 1 && words[0] == "curl"
	}
	return slices.ContainsFunc(newRoot().Commands(), func(c *cobra.Command) bool { return c.Name() == words[1] })
}

// placeholder is a word that the reader replaces, such as URL, FILE or RESULT.json….
var placeholder = regexp.MustCompile(`^\[?[A-Z]{2,}[A-Z0-9]*(?:\.json)?…?\]?(?:\.\.\.)?$`)

// parseHint holds a command line against the program: the command and its flags exist,
// their values can be read, required ones are there, and so are the files that it
// reads, seen from dir ("" for a page, where they are the reader's). Only where the
// program cannot know a value may a word such as URL replace it.
func parseHint(line, dir string, placeholders bool) (*cobra.Command, []string, error) {
	words, err := command.Split(line)
	if err != nil {
		return nil, nil, err
	}
	if len(words) < 2 || words[0] != "destkit" {
		return nil, nil, errors.New("not a command of destkit")
	}
	root := newRoot()
	cmd, rest, err := root.Find(words[1:])
	if err != nil {
		return nil, nil, err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, nil, err
	}
	args := cmd.Flags().Args()
	if help, _ := cmd.Flags().GetBool("help"); help {
		return cmd, args, nil
	}
	if v := cmd.Flags().Lookup("version"); v != nil && v.Changed {
		return cmd, args, nil
	}
	if err := cmd.ValidateArgs(args); err != nil {
		return nil, nil, err
	}
	if cmd.HasSubCommands() && cmd.RunE == nil && cmd.Run == nil || cmd == root {
		return nil, nil, fmt.Errorf("%q does nothing without a command", cmd.CommandPath())
	}
	if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
		return nil, nil, err
	}
	if !placeholders {
		for i, word := range words[1:] {
			if placeholder.MatchString(word) && words[i] != "--token-env" { // of which a name is the value
				return nil, nil, fmt.Errorf("%s stands for a value that a run knows", word)
			}
		}
	}
	return cmd, args, errors.Join(hintedURL(cmd, args, placeholders), hintedValues(cmd), hintedFiles(cmd, args, dir))
}

// urlFirst are the commands whose first argument is a URL. Without one it comes from
// the environment or a file.
var urlFirst = []string{"conform", "conform service", "plan", "load", "load clean", "clean"}

// hintedURL reads the URL of a command; where it may be a placeholder it may come from
// the environment, too.
func hintedURL(cmd *cobra.Command, args []string, placeholders bool) error {
	path := strings.TrimPrefix(cmd.CommandPath(), "destkit ")
	if !slices.Contains(urlFirst, path) {
		return nil
	}
	if len(args) > 0 {
		if placeholder.MatchString(args[0]) || strings.HasPrefix(args[0], "$") {
			return nil
		}
		return command.CheckScheme("endpoint", args[0])
	}
	for _, name := range []string{"url", "config", "journal", "from"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return nil
		}
	}
	if placeholders {
		return nil
	}
	return errors.New("the URL is missing")
}

// hintedValues reads the values that a flag takes as text and a command reads later.
func hintedValues(cmd *cobra.Command) error {
	var all error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if placeholder.MatchString(value) || value == "GLOB" {
				continue
			}
			var err error
			switch {
			case (f.Name == "select" || f.Name == "skip") && value != lastFailed:
				_, err = selectChecks([]string{value}, "")
			case f.Name == "report" && strings.HasPrefix(cmd.CommandPath(), "destkit conform"):
				_, _, err = outputs.JudgeFormats().Parse(value)
			case f.Name == "url" && !strings.HasPrefix(value, "$"):
				err = command.CheckScheme("endpoint", value)
			case f.Name == "token-env" && strings.ContainsAny(value, "$. "):
				err = fmt.Errorf("--token-env %q is no name of a variable", value)
			}
			all = errors.Join(all, err)
		}
	})
	return all
}

// madeFlags name files that the command writes.
var madeFlags = map[string][]string{
	"journal": {"conform", "load", "demo", "proxy"}, "report": nil, "caller-report": nil, "data": nil, "dir": nil, "to": nil, "har": nil,
	"profile-cpu": nil, "profile-mem": nil, "profile-trace": nil, "save": nil, "out": nil, "output": nil, "record": nil,
}

// readArgs are the commands whose arguments are files: the first, or all of them.
var readArgs = map[string]bool{"replay": false, "diff": true, "validate": true, "load compare": true, "load merge": true}

// hintedFiles looks whether the files that a command reads are in dir.
func hintedFiles(cmd *cobra.Command, args []string, dir string) error {
	if dir == "" {
		return nil
	}
	path := strings.TrimPrefix(cmd.CommandPath(), "destkit ")
	var files []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		makers, made := madeFlags[f.Name]
		if made && (makers == nil || slices.Contains(makers, strings.Fields(path)[0])) || !strings.Contains(name, "FILE") && !strings.Contains(name, "DIR") {
			return
		}
		files = append(files, f.Value.String())
	})
	if all, reads := readArgs[path]; reads && len(args) > 0 {
		if !all {
			args = args[:1]
		}
		files = append(files, args...)
	}
	var all error
	for _, file := range files {
		if placeholder.MatchString(file) || file == "-" {
			continue
		}
		file = strings.TrimPrefix(file, "sqlite:")
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if _, err := os.Stat(file); err != nil {
			all = errors.Join(all, fmt.Errorf("names a file that is not there: %w", err))
		}
	}
	return all
}

// pure are the commands that read nothing but the program: their output is the same
// everywhere, so each line is run once. local ones read files of the folder.
var (
	pure     = []string{"explain", "checks", "protocol", "schema", "version"}
	local    = []string{"validate", "diff", "load compare"}
	pastedMu sync.Mutex
	pasted   = map[string]error{}
)

// runPure runs a command that needs nothing.
func runPure(line string, cmd *cobra.Command, words []string) error {
	help, _ := cmd.Flags().GetBool("help")
	if slices.ContainsFunc(words, placeholder.MatchString) {
		return nil
	}
	if !help && !slices.Contains(pure, strings.TrimPrefix(cmd.CommandPath(), "destkit ")) {
		return nil
	}
	pastedMu.Lock()
	defer pastedMu.Unlock()
	if err, run := pasted[line]; run {
		return err
	}
	root := newRoot()
	var out bytes.Buffer
	root.SetArgs(words)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.Execute()
	if err == nil && out.Len() == 0 {
		err = errors.New("prints nothing")
	}
	pasted[line] = err
	return err
}

// changesFolder is the line that leads into the folder in which the commands work.
var changesFolder = regexp.MustCompile(`(?m)^\s+cd (.+)$`)

// teaching are the commands whose output names others in general.
var teaching = []string{"protocol", "checks", "explain", "schema"}

// checkHints holds every command that the last output offers against the program, and
// runs those that call no endpoint. A run that ended with a mistake (status 2) may not
// know what its command lacks.
func checkHints(ts *testscript.TestScript, args []string, status int) {
	if slices.Contains(args, "--help") || slices.Contains(args, "__complete") {
		return // TestExamplesAreCommands
	}
	teaches := status == exit.BadUsage || len(args) > 1 && slices.Contains(teaching, args[1])
	checkOffers(ts, ts.ReadFile("stdout")+"\n"+ts.ReadFile("stderr"), teaches)
}

// checkOffers does that with any output. Where it teaches, placeholders may replace values.
func checkOffers(ts *testscript.TestScript, output string, teaches bool) {
	lines, unclear := offers(output)
	dir := ts.MkAbs(".")
	if m := changesFolder.FindStringSubmatch(output); m != nil {
		words, err := command.Split(m[1])
		ts.Check(err)
		dir = ts.MkAbs(words[0])
	}
	if len(unclear) > 0 {
		ts.Fatalf("a command in a sentence needs quotes, so that its end is clear: %s", unclear[0])
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "destkit ") {
			continue
		}
		cmd, _, err := parseHint(line, dir, teaches)
		if err == nil {
			words, _ := command.Split(line)
			err = runPure(line, cmd, words[1:])
			if slices.Contains(local, strings.TrimPrefix(cmd.CommandPath(), "destkit ")) {
				run := program(ts, words[1:]...)
				if out, failed := run.CombinedOutput(); run.ProcessState.ExitCode() > exit.GateFailed {
					err = fmt.Errorf("%w\n%s", failed, out)
				}
			}
		}
		if err != nil {
			ts.Fatalf("the output offers %q: %v", line, err)
		}
	}
}

// unscanned is a line of a transcript that runs the program past exits: its output would not be
// checked.
var unscanned = regexp.MustCompile(`(?m)^\s*(?:\[[^\]]*\]\s*)*[!?]?\s*exec\s.*\bdestkit\s.*$`)

// TestHintsOfAllTranscripts: each transcript runs the program by exits or another command of
// ours, which look at the hints that it prints.
func TestHintsOfAllTranscripts(t *testing.T) {
	for _, line := range []string{"exec destkit version", "! exec destkit conform $SIM", "[unix] exec sh -c 'destkit checks'"} {
		require.Regexp(t, unscanned, line)
	}
	for _, line := range []string{"exits 0 destkit version", "exec curl -sf $API", "! exec sh -c 'ls destkit-journal-*'"} {
		require.NotRegexp(t, unscanned, line)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	require.NoError(t, err)
	require.Greater(t, len(files), 40)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for _, line := range unscanned.FindAllString(string(archive.Comment), -1) {
			t.Errorf("%s: %q: write exits STATUS destkit …, which looks at the hints that it prints", file, line)
		}
	}
}

// TestExamplesAreCommands: the examples of each command's help, the pages and the texts
// of all checks.
func TestExamplesAreCommands(t *testing.T) {
	matrixtest.Long(t)
	texts := map[string]string{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		texts[cmd.CommandPath()+" --help"] = strings.Join(commandLines(cmd.Example), "\n")
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	require.NoError(t, err)
	for _, page := range append(pages, filepath.Join(repository, "README.md")) {
		b, err := os.ReadFile(page)
		require.NoError(t, err)
		texts[filepath.Base(page)] = strings.Join(commandLines(fencesOf(string(b))), "\n")
	}
	checks, err := selectChecks(nil, "")
	require.NoError(t, err)
	for _, check := range checks {
		var out bytes.Buffer
		explanation{check, violationsOf(check.ID)}.print(&out)
		texts["explain "+check.ID] = strings.Join(hintsIn(out.String()), "\n")
	}
	found := 0
	for place, text := range texts {
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "./"), " &")
			// An example of any command, or one in a picture.
			if strings.Contains(line, " … ") || strings.HasSuffix(line, " …") || strings.Contains(line, "   ") {
				continue
			}
			cmd, _, err := parseHint(line, "", true)
			if err == nil {
				words, _ := command.Split(line)
				err = runPure(line, cmd, words[1:])
			}
			assert.NoError(t, err, "%s: %s", place, line)
			found++
		}
	}
	require.Greater(t, found, 600)
}

// fencesOf returns the fenced blocks of a page.
func fencesOf(text string) string {
	var out []string
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return strings.Join(out, "\n")
}
