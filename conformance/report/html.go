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
	Tone      string // of the verdict: good, part, bad, open
	Counts    []htmlCount
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

// htmlCount is one status with its share of all checks.
type htmlCount struct {
	Status c.Status
	N      int
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
		"residue": residueLine,
		"card":    func(r c.CheckResult) bool { return stopsGate(r) || isWarning(r) || r.Status == c.Waived },
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
	p := page{Report: r, Tone: verdictTone(r), Open: openGroups(r), Areas: htmlAreas(r), Choices: settings(r), Reasons: problems(r),
		Failures: htmlResults(opt, r, failures(r.Checks), true),
		Warnings: htmlResults(opt, r, filter(r.Checks, isWarning), true),
		Waived:   htmlResults(opt, r, filter(r.Checks, hasStatus(c.Waived)), true),
		OwnFull:  htmlResults(opt, r, r.Own, false)}
	all := area{Checks: r.Checks}
	p.index()
	for _, s := range statusOrder {
		if n := all.Count(s); n > 0 {
			p.Counts = append(p.Counts, htmlCount{s, n})
		}
	}
	for _, n := range r.Notes {
		p.AllNotes = append(p.AllNotes, setting{"", n})
	}
	for _, check := range r.Checks {
		for _, n := range check.Notes {
			p.AllNotes = append(p.AllNotes, setting{check.ID, n})
		}
	}
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
