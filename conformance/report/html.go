package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
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

const (
	maxHTMLBody  = 64 << 10 // bytes of one body
	shortCommand = 300      // bytes of a command that is shown unasked
	maxIndex     = 20       // lines of the index that are shown unasked
)

// page is what the template sees: the report, grouped for reading.
type page struct {
	*c.Report
	Tone                                string // of the verdict: good, part, bad, open
	Failures, Warnings, Waived, OwnFull []htmlResult
}

// Index is failures and warnings, all on the first screen.
func (p page) Index() []htmlResult { return slices.Concat(p.Failures, p.Warnings) }

// HTMLPolicy is the content security policy of an HTML report. It allows exactly the script
// of the page to run, so that no text of an endpoint can become one.
func HTMLPolicy() string {
	sum := sha256.Sum256([]byte(htmlScript))
	return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// htmlTemplate has style and script put in before the parsing: they are ours, everything else is escaped.
var htmlTemplate = sync.OnceValue(func() *template.Template {
	source := strings.NewReplacer("/*STYLE*/", pagestyle.Style+htmlStyle, "/*SCRIPT*/", htmlScript,
		"POLICY", HTMLPolicy()).Replace(htmlPage)
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"first": func(r []htmlResult) []htmlResult { return r[:min(len(r), maxIndex)] },
		"rest":  func(r []htmlResult) []htmlResult { return r[min(len(r), maxIndex):] },
		// The verdict is the heading already.
		"said": func(summary string, verdict c.Verdict) template.HTML {
			return pagestyle.Sentence(line(strings.TrimPrefix(summary, string(verdict)+": ")))
		},
		"short": func(s string) bool { return len(s) < shortCommand },
		"sent":  sent, "areas": areas, "open": openGroups, "problems": problems, "settings": settings, "notes": allNotes,
		"line": func(s any) string { return line(fmt.Sprint(s)) },
		"text": func(s string) string { return text(limit(s, maxHTMLBody)) },
		"word": word, "citations": citations, "duration": duration, "plural": quantity.Count[int],
		"waiver": waiver, "leftovers": leftovers, "tone": tone,
		"curl":    func(s string) string { return strings.Join(command(s, 110), "\n") },
		"body":    func(b wire.Body) string { return text(limit(bodyText(b), maxHTMLBody)) },
		"note":    bodyNote,
		"residue": residueLine, "statuses": func() []c.Status { return statusOrder },
		"count": func(p page, s c.Status) int { return area{Checks: p.Checks}.Count(s) },
		"card":  func(r c.CheckResult) bool { return stopsGate(r) || isWarning(r) || r.Status == c.Waived },
	}).Parse(source))
})

// writeHTML writes one page that loads nothing from outside.
func writeHTML(w io.Writer, r *c.Report, opt Options) error {
	p := page{Report: r, Tone: verdictTone(r),
		Failures: htmlResults(opt, r, failures(r.Checks), true),
		Warnings: htmlResults(opt, r, lists.Where(r.Checks, isWarning), true),
		Waived:   htmlResults(opt, r, lists.Where(r.Checks, hasStatus(c.Waived)), true),
		OwnFull:  htmlResults(opt, r, r.Own, false)}
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

// tone is the colour of a status; the word is always next to it.
func tone(s c.Status) string {
	tones := map[c.Status]string{
		c.Pass: "good", c.Fail: "bad", c.Flaky: "bad", c.HarnessError: "bad", c.Warn: "warn", c.Waived: "warn", c.NotApplicable: "none",
	}
	return cmp.Or(tones[s], "open")
}

// htmlResult is a result with its findings by their cause.
type htmlResult struct {
	c.CheckResult
	Suite     string
	Again     string
	Weight    string // how much hangs on it
	Groups    []findingGroup
	Exchanges []wire.Exchange // of all findings, each once
}

// htmlPieces is a text with the part of it that is marked.
type htmlPieces struct{ Before, Marked, After string }

// htmlResults prepares results. known reports whether they are in the catalogue, unlike checks of the author.
func htmlResults(opt Options, of *c.Report, checks []c.CheckResult, known bool) []htmlResult {
	return lists.Of(checks, func(r c.CheckResult) htmlResult {
		result := htmlResult{CheckResult: r, Suite: of.Suite, Groups: findingGroups(r, len(r.Findings), htmlExcerptRoom), Exchanges: exchangesOf(r)}
		if known {
			result.Again = opt.again(of, r)
		}
		waits := func(other c.CheckResult) bool { return slices.Contains(other.BlockedBy, r.ID) }
		if n := len(lists.Where(of.Checks, waits)); n > 0 {
			result.Weight = "blocks " + quantity.Count(n, "check")
		} else if n := len(r.Findings); n > 1 {
			result.Weight = quantity.Count(n, "finding")
		}
		return result
	})
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

// Pieces are what was expected and what was seen, with the parts that differ.
func (e findingExample) Pieces() [2]htmlPieces {
	in, at, ok := differ(e.Expected, e.Actual)
	if !ok {
		return [2]htmlPieces{{Before: limit(e.Expected, maxHTMLBody)}, {Before: limit(e.Actual, maxHTMLBody)}}
	}
	return [2]htmlPieces{
		{e.Expected[:in[0]], e.Expected[in[0]:in[1]], e.Expected[in[1]:]}, {e.Actual[:at[0]], e.Actual[at[0]:at[1]], e.Actual[at[1]:]},
	}
}
