package report

import (
	"html/template"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	pagestyle "github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/quantity"
)

// htmlResult is a result with its findings by their cause. Again is the command that
// shows it once more, which needs an exchange and a place in the catalogue.
type htmlResult struct {
	c.CheckResult
	Suite     string
	Again     string
	Groups    []htmlGroup
	Exchanges []wire.Exchange // of all findings, each once
}

// htmlArea is an area with the suite that its checks belong to.
type htmlArea struct {
	area
	Suite string
}

// htmlAreas prepares areas for the template.
func htmlAreas(of *c.Report) []htmlArea {
	var out []htmlArea
	for _, a := range areas(of.Checks) {
		out = append(out, htmlArea{a, of.Suite})
	}
	return out
}

// htmlGroup is the findings of one cause: three are shown, the others folded.
type htmlGroup struct {
	findingGroup
	Shown, Folded  []htmlExample
	FoldedFindings int
}

// htmlExample is a finding with what differs in its values.
type htmlExample struct {
	findingExample
	In, At htmlPieces
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
		result := htmlResult{CheckResult: r, Suite: of.Suite}
		if known {
			result.Again = opt.again(of, r)
		}
		for _, g := range findingGroups(r, len(r.Findings), htmlExcerptRoom) {
			result.Groups = append(result.Groups, newHTMLGroup(g))
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

func newHTMLGroup(g findingGroup) htmlGroup {
	out := htmlGroup{findingGroup: g}
	for i, e := range g.Examples {
		example := htmlExample{findingExample: e, In: htmlPieces{Before: limit(e.Expected, maxHTMLBody)}, At: htmlPieces{Before: limit(e.Actual, maxHTMLBody)}}
		if in, at, ok := differ(e.Expected, e.Actual); ok {
			example.In, example.At = piecesOf(e.Expected, in), piecesOf(e.Actual, at)
		}
		if i < maxExamples {
			out.Shown = append(out.Shown, example)
			continue
		}
		out.Folded = append(out.Folded, example)
		out.FoldedFindings += e.Times
	}
	return out
}

func piecesOf(s string, span [2]int) htmlPieces {
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
