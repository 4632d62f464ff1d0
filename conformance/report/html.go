package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
	pagestyle "github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/quantity"
)

var (
	//go:embed html/report.gohtml
	htmlPage string
	//go:embed html/report.css
	htmlStyle string
	//go:embed html/report.js
	htmlScript string
)

// maxHTMLBody bounds one body in the page, in bytes.
const maxHTMLBody = 64 << 10

// page is what the template sees: the report, grouped for reading.
type page struct {
	*c.Report
	Tone      string      // of the verdict: good, part, bad, open
	Index     []htmlEntry // failures and warnings at a glance
	IndexMore []htmlEntry
	IndexSays string
	Failures  []htmlResult
	Warnings  []htmlResult
	Waived    []htmlResult
	OwnFull   []htmlResult
	Open      []openGroup
	Areas     []htmlArea
	Reasons   []c.Problem
	Choices   []setting
	AllNotes  []setting
}

// HTMLPolicy is the content security policy of an HTML report, which the page names by
// itself, too. It allows exactly the script of the page to run, so that no text of an
// endpoint can become one.
func HTMLPolicy() string {
	sum := sha256.Sum256([]byte(htmlScript))
	return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// htmlTemplate is parsed once. Style and script are put into the page before
// the parsing: they are ours and constant, everything else is escaped.
var htmlTemplate = sync.OnceValue(func() *template.Template {
	source := strings.NewReplacer("/*STYLE*/", pagestyle.Style+htmlStyle, "/*SCRIPT*/", htmlScript,
		"POLICY", HTMLPolicy()).Replace(htmlPage)
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"first": func(r []htmlResult) []htmlResult { return r[:min(len(r), maxIndex)] },
		"rest":  func(r []htmlResult) []htmlResult { return r[min(len(r), maxIndex):] },
		"said":  said, "short": func(s string) bool { return len(s) < shortCommand },
		"judged": judged, "sent": sent,
		"line": func(s any) string { return line(fmt.Sprint(s)) },
		"text": func(s string) string { return text(limit(s, maxHTMLBody)) },
		"word": word, "citations": citations, "place": place, "duration": duration, "plural": quantity.Count[int],
		"waiver": waiver, "leftovers": leftovers, "tone": tone,
		"curl":    func(s string) string { return strings.Join(command(s, 110), "\n") },
		"body":    func(b wire.Body) string { return text(limit(bodyText(b), maxHTMLBody)) },
		"note":    bodyNote,
		"residue": residueLine, "statuses": func() []c.Status { return statusOrder },
		"count": func(p page, s c.Status) int { return area{Checks: p.Checks}.Count(s) },
		"card":  func(r c.CheckResult) bool { return stopsGate(r) || isWarning(r) || r.Status == c.Waived },
		"musts": func(g openGroup) string {
			if g.Musts() == 0 {
				return ""
			}
			return fmt.Sprintf(", %d MUST", g.Musts())
		},
	}).Parse(source))
})

// writeHTML writes one page that loads nothing from outside. Its links lead to the
// sentences of the specification.
func writeHTML(w io.Writer, r *c.Report, opt Options) error {
	p := page{Report: r, Tone: verdictTone(r), Open: openGroups(r), Areas: htmlAreas(r), Choices: settings(r), Reasons: problems(r), AllNotes: allNotes(r),
		Failures: htmlResults(opt, r, failures(r.Checks), true),
		Warnings: htmlResults(opt, r, lists.Where(r.Checks, isWarning), true),
		Waived:   htmlResults(opt, r, lists.Where(r.Checks, hasStatus(c.Waived)), true),
		OwnFull:  htmlResults(opt, r, r.Own, false)}
	p.index()
	// Rendering first: a page that is cut in the middle is worse than none.
	var b bytes.Buffer
	if err := htmlTemplate().Execute(&b, p); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}

// verdictTone is the colour of a verdict by its meaning.
func verdictTone(r *c.Report) string {
	switch {
	case r.Verdict == c.NonConformant:
		return "bad"
	case r.Verdict == c.Unknown || r.ExitStatus != 0:
		return "open"
	case r.Verdict == c.ConformantInPart:
		return "part"
	}
	return "good"
}

// tone is the colour of a status; the word always stands beside it.
func tone(s c.Status) string {
	switch s {
	case c.Pass:
		return "good"
	case c.Fail, c.Flaky, c.HarnessError:
		return "bad"
	case c.Warn, c.Waived:
		return "warn"
	case c.NotApplicable:
		return "none"
	}
	return "open"
}

// htmlResult is a result with its findings by their cause. Again is the command that
// shows it once more, which needs an exchange and a place in the catalogue.
type htmlResult struct {
	c.CheckResult
	Suite     string
	Again     string
	Groups    []findingGroup
	Exchanges []wire.Exchange // of all findings, each once
}

// htmlArea is an area with the suite that its checks belong to.
type htmlArea struct {
	area
	Suite string
}

// htmlAreas prepares areas for the template.
func htmlAreas(of *c.Report) []htmlArea {
	return lists.Of(areas(of.Checks), func(a area) htmlArea { return htmlArea{a, of.Suite} })
}

// htmlPieces is a text with the part of it that is marked.
type htmlPieces struct{ Before, Marked, After string }

// htmlExcerptRoom is how much of a response is shown on the page.
var htmlExcerptRoom = room{around: 3, lines: 30}

// shortCommand is how many bytes of a command are shown unasked.
const shortCommand = 300

// htmlResults prepares results for the template. known reports whether they are in
// the catalogue, unlike checks of the author.
func htmlResults(opt Options, of *c.Report, checks []c.CheckResult, known bool) []htmlResult {
	var out []htmlResult
	for _, r := range checks {
		result := htmlResult{CheckResult: r, Suite: of.Suite, Groups: findingGroups(r, len(r.Findings), htmlExcerptRoom)}
		if known {
			result.Again = opt.again(of, r)
		}
		seen := map[int]bool{}
		for _, f := range r.Findings {
			for _, x := range f.Exchanges {
				if !seen[x.ID] {
					seen[x.ID] = true
					result.Exchanges = append(result.Exchanges, x)
				}
			}
		}
		out = append(out, result)
	}
	return out
}

// Shown are the examples of a cause that are shown at once, Folded the others.
func (g findingGroup) Shown() []findingExample { return g.Examples[:min(len(g.Examples), maxExamples)] }

// Folded are the examples that are folded away.
func (g findingGroup) Folded() []findingExample { return g.Examples[len(g.Shown()):] }

// FoldedFindings counts the findings of the folded examples.
func (g findingGroup) FoldedFindings() (n int) {
	for _, e := range g.Folded() {
		n += e.Times
	}
	return n
}

// In is what was expected, with the part that differs.
func (e findingExample) In() htmlPieces {
	in, _, ok := differ(e.Expected, e.Actual)
	return piecesOf(e.Expected, in, ok)
}

// At is what was seen, with the part that differs.
func (e findingExample) At() htmlPieces {
	_, at, ok := differ(e.Expected, e.Actual)
	return piecesOf(e.Actual, at, ok)
}

func piecesOf(s string, span [2]int, marked bool) htmlPieces {
	if !marked {
		return htmlPieces{Before: limit(s, maxHTMLBody)}
	}
	return htmlPieces{s[:span[0]], s[span[0]:span[1]], s[span[1]:]}
}

// htmlEntry is a line of the index of findings.
type htmlEntry struct {
	c.CheckResult
	Weight string // how much hangs on it
}

// maxIndex is how many lines of the index are shown unasked.
const maxIndex = 20

// index lists failures and warnings, so that all can be seen on the first screen and
// on the first sheet of paper.
func (p *page) index() {
	waiting := map[string]int{}
	for _, r := range p.Checks {
		for _, id := range r.BlockedBy {
			waiting[id]++
		}
	}
	for _, list := range [][]htmlResult{p.Failures, p.Warnings} {
		for _, r := range list {
			entry := htmlEntry{CheckResult: r.CheckResult}
			if n := waiting[r.ID]; n > 0 {
				entry.Weight = "blocks " + quantity.Count(n, "check")
			} else if n := len(r.Findings); n > 1 {
				entry.Weight = quantity.Count(n, "finding")
			}
			p.Index = append(p.Index, entry)
		}
	}
	if len(p.Index) > maxIndex {
		p.Index, p.IndexMore = p.Index[:maxIndex], p.Index[maxIndex:]
	}
	var says []string
	for _, part := range []struct {
		n    int
		noun string
	}{{len(p.Failures), "failure"}, {len(p.Warnings), "warning"}} {
		if part.n > 0 {
			says = append(says, quantity.Count(part.n, part.noun))
		}
	}
	p.IndexSays = strings.Join(says, ", ")
}

// said is the summary without the verdict, which is the heading already.
func said(summary string, verdict c.Verdict) template.HTML {
	return pagestyle.Sentence(line(strings.TrimPrefix(summary, string(verdict)+": ")))
}
