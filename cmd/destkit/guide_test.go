package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/matrixtest"
)

// guide is a page whose commands are run as written there.
type guide struct {
	t       *testing.T
	folder  string
	replace *strings.Replacer // the addresses of the page, and those of this run
	env     []string
}

// console is one command of a page, and its output on the page.
type console struct{ command, output string }

// consoles are the commands of a page, in their order.
func consoles(text string) (list []console) {
	for _, block := range blocksOf(text, "console") {
		for line := range strings.Lines(block) {
			if command, is := strings.CutPrefix(line, "$ "); is {
				list = append(list, console{command: strings.TrimSpace(command)})
				continue
			}
			list[len(list)-1].output += line
		}
	}
	return list
}

// blocksOf are the fenced blocks of one kind.
func blocksOf(text, kind string) (blocks []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+kind+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// said is an output of a page as a pattern: … matches anything, on a separate line any
// lines.
func said(output string) *regexp.Regexp {
	var b strings.Builder
	for line := range strings.Lines(output) {
		if strings.TrimSpace(line) == "…" {
			b.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, "\n")), "…", `[^\n]*`) + "\n")
	}
	return regexp.MustCompile("^" + b.String() + "$")
}

// background starts a server of the page and returns its address, once it has said a
// word.
func (g *guide) background(until string, args ...string) string {
	cmd := exec.Command("destkit", args...)
	cmd.Dir, cmd.Env = g.folder, g.env
	out, err := cmd.StdoutPipe()
	require.NoError(g.t, err)
	require.NoError(g.t, cmd.Start())
	lines := bufio.NewReader(out)
	var rest sync.WaitGroup
	g.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		rest.Wait()
		_ = cmd.Wait()
	})
	first, err := lines.ReadString('\n')
	require.NoError(g.t, err)
	address, listening := strings.CutPrefix(strings.TrimSpace(first), "listening http://")
	require.True(g.t, listening, first)
	for line := first; !strings.HasPrefix(line, until); {
		line, err = lines.ReadString('\n')
		require.NoError(g.t, err)
	}
	rest.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	return address
}

// TestGuideOfFailures runs every command of docs/guide-failures.md, in one shell, and
// compares the output with the page. The two servers listen on other ports.
func TestGuideOfFailures(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			matrixtest.Missing(t, program, "%s is not installed", program)
		}
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "guide-failures.md"))
	require.NoError(t, err)
	const key = "guide-workspace-key-1234567890"
	g := &guide{t: t, folder: t.TempDir(), env: append(os.Environ(), "HOME="+t.TempDir(), command.WorkspaceKeyVariable+"="+key)}
	simulator := g.background("listening", "destsim", "--addr", "127.0.0.1:0", "--preset", "crm")
	seed := strings.ReplaceAll(blocksOf(string(page), "yaml")[0], "127.0.0.1:8081", simulator)
	require.NoError(t, os.WriteFile(filepath.Join(g.folder, "seed.yaml"), []byte(seed), 0o600))
	service := g.background("seeded:", "serve", "--addr", "127.0.0.1:0", "--seed", "seed.yaml", "--log-level", "off")
	g.replace = strings.NewReplacer("127.0.0.1:8081", simulator, "127.0.0.1:8080", service)

	// The last line of the output of each command is a mark.
	var script strings.Builder
	commands := consoles(string(page))
	servers := 0
	for i := range commands {
		c := &commands[i]
		switch {
		case regexp.MustCompile(` &( +#.*)?$`).MatchString(c.command): // started above
			servers++
			c.command = ""
			continue
		case strings.HasPrefix(c.command, "destkit "):
			c.command = regexp.MustCompile(`destkit ((?:sync \w+|explain-record))`).ReplaceAllString(c.command, "destkit $1 --url http://127.0.0.1:8080")
		}
		fmt.Fprintf(&script, "%s\necho '#end of %d'\n", g.replace.Replace(c.command), i)
	}
	require.Equal(t, 2, servers)
	shell := exec.Command("bash", "-c", script.String())
	shell.Dir, shell.Env = g.folder, g.env
	output, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", output)
	rest := string(output)
	for i, c := range commands {
		if c.command == "" {
			continue
		}
		got, after, found := strings.Cut(rest, fmt.Sprintf("#end of %d\n", i))
		require.True(t, found, "$ %s\n%s", c.command, rest)
		rest = after
		require.Regexp(t, said(g.replace.Replace(c.output)), got, "$ %s", c.command)
	}
}
