package report

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/matrixtest"
)

// harmless replaces the hostile text in the other report, so that both must have the same
// structure.
const harmless = "harmless words"

// requirePrintable demands that no character acts on a terminal.
func requirePrintable(t require.TestingT, s string) {
	for _, r := range s {
		if r != '\n' && foreign.Hidden(r) {
			require.Failf(t, "hidden character", "%U", r)
		}
	}
}

func TestHostileText(t *testing.T) {
	for _, opt := range []Options{{}, {Verbose: true}, {Verbose: true, Width: 40, ReportFile: hostile}} {
		var b strings.Builder
		require.NoError(t, WriteText(&b, poisoned(hostile), opt))
		requirePrintable(t, b.String())
		for l := range strings.Lines(b.String()) {
			require.False(t, strings.HasPrefix(strings.TrimSpace(l), "::"), l)
			require.NotContains(t, l, "##[")
			require.NotContains(t, l, "##vso[")
			require.False(t, strings.HasPrefix(l, "PASS"), l)
		}
	}
	var b strings.Builder
	require.NoError(t, WriteText(&b, poisoned(hostile), Options{Color: true, Verbose: true}))
	requirePrintable(t, regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(b.String(), ""))
	require.NotContains(t, b.String(), "\x1b[2J")
}

func TestHostileJSON(t *testing.T) {
	for _, format := range []string{JSON, SARIF, HAR, Badge} {
		t.Run(format, func(t *testing.T) {
			b := render(t, format, poisoned(hostile))
			requirePrintable(t, string(b))
			require.True(t, json.Valid(b))
			require.NotContains(t, string(b), "<script")
			require.Equal(t, shape(t, render(t, format, poisoned(harmless))), shape(t, b))
		})
	}
}

// shape is a JSON value without its strings: hostile text must not change it.
func shape(t *testing.T, b []byte) any {
	var v any
	require.NoError(t, json.Unmarshal(b, &v))
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return ""
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				// Sizes and fingerprints follow from the text.
				v[k] = walk(v[k])
			}
		}
		return v
	}
	return walk(v)
}

func TestHostileJUnit(t *testing.T) {
	var hurt, calm junitSuites
	b := render(t, JUnit, poisoned(hostile))
	requirePrintable(t, string(b))
	require.NoError(t, xml.Unmarshal(b, &hurt))
	require.NoError(t, xml.Unmarshal(render(t, JUnit, poisoned(harmless)), &calm))
	require.Len(t, hurt.Suites, len(calm.Suites))
	for i, s := range hurt.Suites {
		require.Len(t, s.Cases, len(calm.Suites[i].Cases))
		require.Equal(t, []int{calm.Suites[i].Failures, calm.Suites[i].Errors, calm.Suites[i].Skipped}, []int{s.Failures, s.Errors, s.Skipped})
	}
}

var tag = regexp.MustCompile(`<!--.*?-->|<[!/a-zA-Z](?:"[^"]*"|[^">])*>`)

// tags lists the names of all tags of a page.
func tags(b []byte) []string {
	var out []string
	for _, m := range tag.FindAllString(string(b), -1) {
		out = append(out, strings.Fields(strings.Trim(m, "<>"))[0])
	}
	return out
}

func TestHostileHTML(t *testing.T) {
	b := render(t, HTML, poisoned(hostile))
	requirePrintable(t, string(b))
	// Which lines of a response are marked follows from its text.
	unmarked := func(b []byte) []string {
		return slices.DeleteFunc(tags(b), func(s string) bool { return strings.HasSuffix(s, "mark") })
	}
	require.Equal(t, unmarked(render(t, HTML, poisoned(harmless))), unmarked(b))
}

func TestHostileMarkdown(t *testing.T) {
	hurt, calm := structureOf(t, render(t, Markdown, poisoned(hostile))), structureOf(t, render(t, Markdown, poisoned(harmless)))
	require.Equal(t, calm, hurt)
}

// structureOf lists what Markdown makes of a text besides the words: headings, fences, table rows
// with their cells, HTML tags.
func structureOf(t *testing.T, b []byte) []string {
	requirePrintable(t, string(b))
	var out []string
	fence := ""
	escaped := regexp.MustCompile(`\\[[:punct:]]`)
	for l := range strings.Lines(string(b)) {
		l = strings.TrimRight(l, "\n")
		trimmed := strings.TrimLeft(l, " ")
		ticks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence != "":
			if len(ticks) >= len(fence) && strings.TrimSpace(trimmed) == ticks {
				fence = ""
			}
			continue
		case len(ticks) >= 3 && !strings.Contains(trimmed[len(ticks):], "`"):
			fence = ticks
			out = append(out, "fence")
			continue
		}
		require.NotRegexp(t, `@($|[^<])`, regexp.MustCompile("`[^`]*`").ReplaceAllString(l, ""), "a mention")
		l = escaped.ReplaceAllString(l, "")
		l = regexp.MustCompile(`\]\(`+sentencesURL+`\)`).ReplaceAllString(l, "]")
		for _, bad := range []string{"](", "![", "$$", "://", "<script", "<img"} {
			require.NotContains(t, l, bad)
		}
		out = append(out, tags([]byte(strings.ReplaceAll(l, "<!-- -->", "")))...)
		switch {
		case strings.HasPrefix(l, "#"):
			out = append(out, strings.Fields(l)[0])
		case strings.HasPrefix(l, "|"):
			out = append(out, strings.Repeat("|", strings.Count(l, "|")))
		}
	}
	require.Empty(t, fence, "every fence is closed")
	// One line values become spans and others fences, which is not a breach.
	var kept []string
	for _, o := range out {
		if o != "fence" {
			kept = append(kept, o)
		}
	}
	return kept
}

func TestHostileGitHub(t *testing.T) {
	lines := func(s string) []string {
		var kinds []string
		for l := range strings.Lines(string(render(t, GitHub, poisoned(s)))) {
			requirePrintable(t, l)
			m := regexp.MustCompile(`^::(error|warning|notice) title=[^,:]*::[^\r\n]*\n$`).FindStringSubmatch(l)
			require.NotNil(t, m, l)
			kinds = append(kinds, m[1])
		}
		return kinds
	}
	require.Equal(t, lines(harmless), lines(hostile))
	require.Equal(t, "a%25%0A\\::b:,", data("a%\r\n::b:,"))
	require.Equal(t, "50%25%3A a%2C b", property("50%: a, b"))
}

func TestHostileComparison(t *testing.T) {
	d := Compare(poisoned(harmless), poisoned(hostile))
	for _, format := range []string{Text, Markdown} {
		var b strings.Builder
		require.NoError(t, WriteComparison(format, &b, d))
		requirePrintable(t, b.String())
		require.NotContains(t, strings.ReplaceAll(b.String(), `\<`, ""), map[string]string{Text: "\n::", Markdown: "<script"}[format])
	}
}

// TestWritersAddNothing looks for what a writer could leak by itself: the
// environment, this machine, this user, this folder.
func TestWritersAddNothing(t *testing.T) {
	t.Setenv("DESTKIT_TOKEN", "s3cret-token")
	t.Setenv("DESTKIT_URL", "https://s3cret-url.example/hook")
	r := sample()
	r.Target = "$DESTKIT_URL"
	r.Notes = append(r.Notes, "$DESTKIT_TOKEN %s %!d(MISSING) {{env}} ${DESTKIT_TOKEN}")
	foreign := []string{"s3cret-token", "s3cret-url"}
	if host, err := os.Hostname(); err == nil && len(host) > 4 && host != "localhost" {
		foreign = append(foreign, host)
	}
	if dir, err := os.Getwd(); err == nil {
		foreign = append(foreign, dir)
	}
	if u, err := user.Current(); err == nil && len(u.Username) > 4 {
		foreign = append(foreign, u.Username)
	}
	for _, format := range Formats() {
		out := string(render(t, format, r))
		for _, s := range foreign {
			require.NotContains(t, out, s, format)
		}
	}
	var b strings.Builder
	require.NoError(t, WriteText(&b, r, Options{Verbose: true, Color: true}))
	for _, s := range foreign {
		require.NotContains(t, b.String(), s)
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain – ünïcödé 👩‍💻": "plain – ünïcödé 👩‍💻",
		"a\r\nb\tc":           `a\x0d b c`,
		"\x1b[31m":            `\x1b[31m`,
		"\u009b1m":            `\x9b1m`,
		"a\u202eb":            `a\u202eb`,
		"\xff":                `\xff`,
		"\ufffd":              "\ufffd",
		"::error::x":          `\::error::x`,
		"  \n ::error::x":     `\::error::x`,
		"##[error]":           `#\#[error]`,
		"\U000e0041":          `\U000e0041`,
	} {
		require.Equal(t, want, line(in), "%q", in)
	}
}

func TestLineProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		requirePrintable(t, line(s))
		require.NotContains(t, line(s), "\n")
		for _, l := range append(foreign.Block(s), foreign.Wrap(line(s), 20)...) {
			requirePrintable(t, l)
			require.NotContains(t, l, "\n")
			require.False(t, strings.HasPrefix(strings.TrimSpace(l), "::"))
		}
	})
}

// TestCommandMeansTheSame gives broken lines to a shell and compares the
// words that arrive with those of the command in one piece.
func TestCommandMeansTheSame(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		matrixtest.Missing(t, "bash", "bash is not installed")
	}
	run := func(script string) string {
		cmd := exec.Command(bash, "-c", "curl() { printf '<%s>' \"$@\"; }\n"+script)
		cmd.Env = []string{"DESTKIT_URL=https://x.example/a b", "DESTKIT_TOKEN=t", "LC_ALL=C.UTF-8"}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	// A shell takes no zero byte, and the recorder keeps text that is UTF-8.
	dirty := strings.NewReplacer("'", `'\''`, "\x00", "").Replace(strings.ToValidUTF8(hostile, ""))
	for _, s := range []string{
		sample().Checks[3].Findings[0].Curl,
		`curl -sS "$DESTKIT_URL" -d '` + dirty + `'`,
		"curl -sS \"$DESTKIT_URL\" -H \"X: a\x1bb\nc \\\" \\\\ ##[x] \\$DESTKIT_TOKEN\" -d @f.json",
		"curl a \\\n  b 'c\\\nd'\n",
		`curl '' "" a\ b`,
	} {
		for _, n := range []int{20, 74, 1000} {
			lines := command(s, n)
			for _, l := range lines {
				requirePrintable(t, l)
			}
			require.Equal(t, run(s), run(strings.Join(lines, "\n")), "%d: %s", n, strings.Join(lines, "\n"))
		}
	}
}

func TestStatusesAreAllShown(t *testing.T) {
	seen := map[c.Status]bool{}
	for _, r := range sample().Checks {
		seen[r.Status] = true
	}
	require.Len(t, seen, len(statusOrder), "the sample has one of each")
}
