package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// clear empties the screen of a terminal.
func (s *watchSession) clear() {
	out := s.cmd.OutOrStdout()
	if command.Is(out) && os.Getenv("TERM") != "dumb" {
		_, _ = foreign.Raw(out).Write([]byte("\x1b[H\x1b[2J")) // our own escapes
	}
}

// head begins the screen of a run.
func (s *watchSession) head(reason string) {
	s.runs++
	s.clear()
	foreign.Printf(s.cmd.OutOrStdout(), "run %d: %s\n", s.runs, reason)
}

// unjudged reports why a run came to no result, unless it was interrupted.
func (s *watchSession) unjudged(ctx context.Context, reason string, err error) {
	if ctx.Err() != nil || err == nil {
		return
	}
	s.status = exit.NotTested
	clear(s.echoes)
	s.head(reason)
	foreign.Print(s.cmd.OutOrStdout(), "not judged: "+err.Error()+"\n")
}

// show writes the reports of a run and its screen.
func (s *watchSession) show(reason string, r *conformance.Report) {
	s.status = r.ExitStatus
	if s.last == nil || changeLines(report.Compare(s.last, r))[0] != unchanged {
		clear(s.echoes) // its owner edits the endpoint
	}
	s.head(reason)
	s.shown.prepare(r)
	if err := s.outputs.Write(s.cmd.OutOrStdout(), r, report.Options{Access: s.shown.access, Rerun: s.shown.rerun}); err != nil {
		foreign.Println(s.cmd.ErrOrStderr(), "destkit: "+err.Error())
		s.status = exit.Worst(s.status, exit.NotTested)
	}
	for _, line := range s.lines(r) {
		foreign.Println(s.cmd.OutOrStdout(), line)
	}
}

// linesOfFinding is how many lines of the screen a failure takes at most.
const linesOfFinding = 6

// lines are the screen of a run: the changes, the first failures, the verdict.
func (s *watchSession) lines(r *conformance.Report) []any {
	var lines []any
	if s.last != nil && r.Verdict != conformance.Unknown {
		d := report.Compare(s.last, r)
		lines = append(lines, changeLines(d)[0], s.paint(s.roundWords(d, r)))
	}
	for _, p := range r.Problems {
		if p.Kind == "gate" { // the failures say it
			continue
		}
		lines = append(lines, clipLine(strings.TrimSuffix("problem: "+p.Message+". Fix: "+p.Fix, ". Fix: "), 3*command.Width(s.cmd.OutOrStdout())))
	}
	room := max(1, (s.height()-len(lines)-8)/linesOfFinding)
	var more []string
	for _, check := range r.Checks {
		switch {
		case !brokenStatus(check.Status):
		case room == 0:
			more = append(more, check.ID)
		default:
			lines = append(lines, s.failure(check)...)
			room--
		}
	}
	if len(more) > 0 {
		lines = append(lines, "", "and "+shortList(more, 8))
	}
	return append(lines, "", s.paint(statusColor(r), r.Summary))
}

// The colours of the screen, as those of a report.
const (
	colorFailed  = "31;1"
	colorPartial = "33;1"
	colorPassed  = "32;1"
)

// paint colours a line of ours; --no-color, NO_COLOR, FORCE_COLOR and the terminal
// count as for a report.
func (s *watchSession) paint(color, line string) any {
	if !command.Colourful(s.cmd.OutOrStdout(), s.noColor) {
		return line
	}
	return foreign.Own("\x1b[" + color + "m" + foreign.Line(line) + "\x1b[0m")
}

// statusColor is green for a verdict without reservations only.
func statusColor(r *conformance.Report) string {
	switch {
	case r.Verdict == conformance.NonConformant:
		return colorFailed
	case r.ExitStatus != 0 || r.Verdict != conformance.Conformant:
		return colorPartial
	}
	return colorPassed
}

// roundWords count what a run has changed since the last one, with their colour: "2 fixed, 1 newly
// failing, 3 still failing". Checks that failed and are open now are none of these.
func (s *watchSession) roundWords(d report.Comparison, r *conformance.Report) (color, words string) {
	was, is := failedIn(s.last), failedIn(r)
	still, open := 0, 0
	for _, id := range was {
		switch {
		case slices.Contains(is, id):
			still++
		case !slices.ContainsFunc(d.Fixed, func(c report.Change) bool { return c.ID == id }):
			open++
		}
	}
	words = fmt.Sprintf("%d fixed, %d newly failing, %d still failing", len(d.Fixed), len(is)-still, still)
	if open > 0 {
		words += fmt.Sprintf(", %d open", open)
	}
	switch {
	case len(is) > still:
		return colorFailed, words
	case len(is)+open > 0:
		return colorPartial, words
	}
	return colorPassed, words
}

// unchanged is said of a run with the results of the one before.
const unchanged = "nothing changed since the run before"

// changeLines list the differences from the run before.
func changeLines(d report.Comparison) []string {
	ids := func(list []report.Change) string {
		out := lists.Of(list, func(change report.Change) string { return change.ID })
		return shortList(out, 8)
	}
	var said []string
	if len(d.Fixed) > 0 {
		said = append(said, "fixed: "+ids(d.Fixed))
	}
	if len(d.NewlyFailing) > 0 {
		said = append(said, "new: "+ids(d.NewlyFailing))
	}
	if len(d.Changed) > 0 {
		said = append(said, fmt.Sprintf("changed otherwise: %s", ids(d.Changed)))
	}
	if len(said) == 0 {
		return []string{unchanged}
	}
	return []string{strings.Join(said, "; ")}
}

// failure is a check with its first finding, one line for each part.
func (s *watchSession) failure(check conformance.CheckResult) []any {
	columns := command.Width(s.cmd.OutOrStdout())
	lines := []any{"", s.paint(colorFailed, clipLine(fmt.Sprintf("%s  %s  %s", check.Status, check.ID, check.Title), columns))}
	if len(check.Findings) == 0 {
		return append(lines, clipLine("      "+check.Reason, columns))
	}
	f := check.Findings[0]
	for _, part := range []struct{ label, text string }{{"expected  ", f.Expected}, {"actual    ", f.Actual}, {"Fix: ", f.Fix}} {
		if part.text != "" {
			lines = append(lines, clipLine("      "+part.label+part.text, columns))
		}
	}
	return append(lines, "      explain:  destkit explain "+check.ID)
}

// clipLine puts a text on one line of a screen. The indentation stays.
func clipLine(s string, columns int) string {
	text := strings.TrimLeft(s, " ")
	indent := len(s) - len(text)
	return s[:indent] + foreign.Clip(foreign.Line(text), max(columns-indent-1, 20))
}

// height is the number of lines of the screen, 24 without one.
func (s *watchSession) height() int {
	if file, ok := foreign.Raw(s.cmd.OutOrStdout()).(*os.File); ok {
		if _, rows, err := term.GetSize(int(file.Fd())); err == nil && rows > 0 {
			return rows
		}
	}
	return 24
}

// waitingWords say what starts the next run.
func (s *watchSession) waitingWords(keys *Keyboard) string {
	words := "waiting for changes below " + shortList(s.watching.paths, 3)
	if keys.Attached() {
		words += "; Enter judges again, q ends"
	}
	if s.child != nil {
		words += "; output of the endpoint: " + s.child.Output()
	}
	return words
}
