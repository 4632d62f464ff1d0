package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/matrixtest"
)

var updateFiles = flag.Bool("update", false, "write what is made here in docs/ again")

const (
	pictureColumns = 84 // of the window; the report has 80
	pictureFailure = 16 // lines of the first failure that are shown, at most
)

// TestTerminalPicture runs the two commands of docs/terminal.svg and compares their
// output with the text in the picture; -update draws it again.
func TestTerminalPicture(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	folder := t.TempDir()
	g := &guide{t: t, folder: folder, env: append(os.Environ(), "HOME="+folder)}
	address := g.background("breaking", "destsim", "--addr", "127.0.0.1:0", "--violate", "RES-002")
	// A seed makes the keys and the number of open checks those of every run.
	cmd := exec.Command("destkit", "conform", "http://"+address+"/", "--write", "--object", "contact",
		"--readback-url", "http://"+address+"/_control/readback", "--seed", "7", "--report", "json=report.json")
	cmd.Dir, cmd.Env = g.folder, g.env
	printed, err := cmd.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())

	// The output on a terminal is the same text with colours.
	read, err := os.Open(filepath.Join(folder, "report.json"))
	require.NoError(t, err)
	defer func() { _ = read.Close() }()
	judged, err := report.Read(read)
	require.NoError(t, err)
	var coloured bytes.Buffer
	require.NoError(t, report.WriteText(&coloured, judged, report.Options{Color: true, ReportFile: "report.json"}))
	require.Equal(t, string(printed), colourCode.ReplaceAllString(coloured.String(), ""))

	screen := pictureScreen(strings.ReplaceAll(coloured.String(), address, "127.0.0.1:8090"))
	picture := filepath.Join(repository, "docs", "terminal.svg")
	if *updateFiles {
		require.NoError(t, os.WriteFile(picture, []byte(drawTerminal(screen)), 0o644))
	}
	drawn, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Equal(t, pictureText(drawTerminal(screen)), pictureText(string(drawn)),
		"run go test ./cmd/destkit -run TestTerminalPicture -update")
}

// pictureScreen is what the picture shows of a run: the commands, the table, the first
// failure and the verdict.
func pictureScreen(text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	plain := make([]string, len(lines))
	tableEnd, failure := 0, 0
	for i, line := range lines {
		plain[i] = colourCode.ReplaceAllString(line, "")
		switch {
		case tableEnd == 0 && strings.HasPrefix(plain[i], "all "):
			tableEnd = i + 1
		case failure == 0 && strings.HasPrefix(plain[i], "FAIL "):
			failure = i
		}
	}
	screen := []string{
		prompt + "destkit destsim --violate RES-002 &",
		"listening http://127.0.0.1:8090",
		"breaking RES-002: upsert leaves out the result of the last record of a batch",
		"  of three or more",
		prompt + `destkit conform http://127.0.0.1:8090/ --write --object contact \`,
		"    --readback-url http://127.0.0.1:8090/_control/readback --report json=report.json",
	}
	screen = append(screen, lines[:tableEnd]...)
	screen = append(screen, "", elided, "")
	screen = append(screen, firstFailure(lines[failure:], plain[failure:])...)
	screen = append(screen, "      "+elided, "")
	return append(screen, wrapColoured(lines[len(lines)-1], pictureColumns)...)
}

// firstFailure is a failure up to its curl line, without the body of the response.
func firstFailure(lines, plain []string) (shown []string) {
	inBody := false
	for i, line := range plain {
		switch deeper := strings.HasPrefix(line, "        "); {
		case strings.HasPrefix(line, "      curl "), len(shown) == pictureFailure:
			return shown
		case inBody && deeper:
			continue
		case inBody:
			shown = append(shown, "        "+elided)
		}
		inBody = strings.HasPrefix(line, "      response")
		shown = append(shown, lines[i])
	}
	return shown
}

const (
	prompt = "\x1b[32m$\x1b[0m "
	elided = "\x1b[2m⋮\x1b[0m"
)

// wrapColoured breaks a line that has one colour from its start to its end.
func wrapColoured(line string, width int) (out []string) {
	codes := colourCode.FindAllString(line, -1)
	part := ""
	for word := range strings.FieldsSeq(colourCode.ReplaceAllString(line, "")) {
		if part != "" && len(part)+1+len(word) > width {
			out, part = append(out, codes[0]+part+codes[1]), ""
		}
		part = strings.TrimSpace(part + " " + word)
	}
	return append(out, codes[0]+part+codes[1])
}

var (
	colourCode = regexp.MustCompile(`\x1b\[([0-9;]*)m`)
	inPicture  = regexp.MustCompile(`(?s)<text[^>]*>(.*?)</text>`)
	markup     = regexp.MustCompile(`<[^>]*>`)
	// Values that differ from run to run: how many calls were needed, and how long they took.
	volatile = regexp.MustCompile(`\b\d+ (calls|records)\b|\b\d+(\.\d+)? m?s\b`)
)

// pictureText is the text of a picture, without what differs from run to run.
func pictureText(svg string) string {
	var out strings.Builder
	for _, line := range inPicture.FindAllStringSubmatch(svg, -1) {
		out.WriteString(html.UnescapeString(markup.ReplaceAllString(line[1], "")) + "\n")
	}
	return volatile.ReplaceAllString(out.String(), "N $1")
}

const (
	cellWidth, cellHeight = 8.4, 19.0
	pictureMargin         = 18.0
	pictureBar            = 30.0
)

// pictureColours are those of a dark terminal; each has a contrast of 4.5 or more.
var pictureColours = map[string]string{"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "36": "#76e3ea", "2": "#8b949e"}

// drawTerminal draws lines with colour codes as a window of a terminal. Each run of one
// colour has its own place, so that columns stay in line in every font.
func drawTerminal(lines []string) string {
	width := 2*pictureMargin + pictureColumns*cellWidth
	height := pictureBar + 2*pictureMargin + float64(len(lines))*cellHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-labelledby="title">`+"\n", width, height, width, height)
	b.WriteString("<title id=\"title\">destkit conform finds that a destination leaves out results</title>\n" +
		"<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;white-space:pre}.b{font-weight:bold}</style>\n")
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="8" fill="#0d1117"/>`+"\n", width, height)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="18" r="6" fill="%s"/>`+"\n", 22+20*i, colour)
	}
	for i, line := range lines {
		y := pictureBar + pictureMargin + float64(i+1)*cellHeight - 5
		fmt.Fprintf(&b, `<text y="%.0f">%s</text>`+"\n", y, drawLine(line))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawLine draws one line: a span for each colour.
func drawLine(line string) string {
	var b strings.Builder
	column, code := 0, ""
	span := func(text string) {
		if text == "" {
			return
		}
		style := ""
		for part := range strings.SplitSeq(code, ";") {
			if part == "1" {
				style += ` class="b"`
			} else if colour := pictureColours[part]; colour != "" {
				style += ` style="fill:` + colour + `"`
			}
		}
		fmt.Fprintf(&b, `<tspan x="%.1f"%s>%s</tspan>`, pictureMargin+float64(column)*cellWidth, style, html.EscapeString(text))
		column += len([]rune(text))
	}
	at := 0
	for _, m := range colourCode.FindAllStringSubmatchIndex(line, -1) {
		span(line[at:m[0]])
		code, at = line[m[2]:m[3]], m[1]
	}
	span(line[at:])
	return b.String()
}

// TestReadbackSnippets runs the hooks of the guide on what SQLite keeps: 1 for true and
// text for a list. They give true, false and lists.
func TestReadbackSnippets(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "judge.md"))
	require.NoError(t, err)
	question := `{"object": "contact", "identifier_field": "email", "identifiers": ["a@x.io", "b@x.io", "c@x.io"]}`
	rows := `[["a@x.io", "Ada", 7, 1, "[\"x\", \"y\"]"], ["b@x.io", null, null, 0, null]]`
	for language, tt := range map[string]struct {
		program, before, after string
		want                   string
	}{
		"python": {"python3", `import json, sqlite3
made = sqlite3.connect("records.db")
made.execute("CREATE TABLE contact (email TEXT, last_name TEXT, age INTEGER, active INTEGER, tags TEXT)")
made.executemany("INSERT INTO contact VALUES (?, ?, ?, ?, ?)", json.loads('''` + strings.ReplaceAll(rows, `\`, `\\`) + `'''))
made.commit()
`, "", `{"records": [{"identifier": "a@x.io", "count": 1, "fields": {"email": "a@x.io", "last_name": "Ada", "age": 7, "active": true, "tags": ["x", "y"]}},
			{"identifier": "b@x.io", "count": 1, "fields": {"email": "b@x.io", "last_name": null, "age": null, "active": false, "tags": null}}], "complete": true}`},
		"js": {"node", "const stored = " + rows + ".map(([email, , , active, tags]) => ({ email, active, tags }));\n",
			"\nconsole.log(JSON.stringify(readback(" + question + ")));\n",
			`{"records": [{"identifier": "a@x.io", "count": 1, "fields": {"email": "a@x.io", "active": true, "tags": ["x", "y"]}},
			{"identifier": "b@x.io", "count": 1, "fields": {"email": "b@x.io", "active": false, "tags": null}}], "complete": true}`},
	} {
		t.Run(language, func(t *testing.T) {
			needTools(t, tt.program)
			found := regexp.MustCompile("(?s)```" + language + "\n(.*?readback.*?)```").FindStringSubmatch(string(page))
			require.NotNil(t, found)
			snippet, _, _ := strings.Cut(found[1], "createServer(async") // it would listen
			snippet = strings.Replace(snippet, "import { createServer } from 'node:http';\n", "", 1)
			dir := t.TempDir()
			file := filepath.Join(dir, "hook."+language)
			require.NoError(t, os.WriteFile(file, []byte(tt.before+snippet+tt.after), 0o600))
			cmd := exec.Command(tt.program, file)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(question)
			out, err := cmd.Output()
			require.NoError(t, err, "%s", out)
			require.JSONEq(t, tt.want, string(out))
		})
	}
}

// TestStartKeepsTheToken: who follows the page step by step gives the token to each
// command that calls an endpoint; that of the simulator needs none.
func TestStartKeepsTheToken(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "start.md"))
	require.NoError(t, err)
	n := 0
	for _, line := range regexp.MustCompile(`(?m)^(?:\$ |.*again:  )destkit (?:conform|plan|replay|load) .*$`).FindAllString(string(page), -1) {
		if !strings.Contains(line, ":8090") {
			require.Contains(t, line, "--token-env TOKEN", line)
			n++
		}
	}
	require.GreaterOrEqual(t, n, 6)
}
