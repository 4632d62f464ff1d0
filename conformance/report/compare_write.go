package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// WriteComparison writes d as text or markdown, the formats of destkit diff.
func WriteComparison(format string, w io.Writer, d Comparison) error {
	var s string
	switch format {
	case Text:
		s = comparisonText(d)
	case Markdown:
		s = comparisonMarkdown(d)
	default:
		return fmt.Errorf("write comparison: unknown format %q, known are %s, %s", format, Text, Markdown)
	}
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// part is one list of a comparison, without its format.
type part struct {
	title string
	items []item
}

// item is one line: an id with what is said of it.
type item struct{ id, says, more string }

// unfair are the settings that differ.
func (d Comparison) unfair() []item {
	return lists.Of(d.Unfair, func(x Difference) item {
		return item{id: x.Setting, says: orWord(x.A, "unset") + " → " + orWord(x.B, "unset")}
	})
}

// findings are those that came or went.
func (d Comparison) findings() []item {
	return lists.Of(d.Findings, func(x FindingChange) item {
		says := "gone: "
		if x.New {
			says = "new: "
		}
		if p := place(x.Finding); p != "" {
			says += p + "; "
		}
		return item{id: x.ID, says: says + "expected " + limit(x.Finding.Expected, 300) + ", actual " + limit(x.Finding.Actual, 300)}
	})
}

// used are the parts that have items.
func used(all ...part) []part {
	return slices.DeleteFunc(all, func(p part) bool { return len(p.items) == 0 })
}

// parts lists what differs: what fails newly first, then what passes newly.
func (d Comparison) parts() []part {
	changed, blocked := foldBlocked(d.Changed)
	return used([]part{
		{"Newly failing", changes(d.NewlyFailing)},
		{"Newly passing", changes(d.Fixed)},
		{"Blocked by a failure", blocked},
		{"Changed", changes(changed)},
		{"Findings that changed", d.findings()},
		{"Only in the first report", bare(d.OnlyA)},
		{"Only in the second report", bare(d.OnlyB)},
		{"Settings that differ: the comparison is not fair", d.unfair()},
	}...)
}

// changes writes changes of a status as lines, with the newer reason.
func changes(list []Change) []item {
	return lists.Of(list, func(x Change) item {
		return item{x.ID, statuses(x) + ": " + line(x.Title) + " (" + line(string(x.Level)) + ")", x.Reason}
	})
}

// foldBlocked makes one line of all checks that wait for the same failure, and of
// those that waited for it before and came to the same result: what became of the
// failure is the news.
func foldBlocked(list []Change) (others []Change, blocked []item) {
	count := map[item]int{}
	for _, x := range list {
		var key item
		switch {
		case len(x.BlockedBy) > 0:
			key = item{id: strings.Join(x.BlockedBy, ", "), says: "blocked now"}
		case len(x.WasBlockedBy) > 0:
			key = item{id: strings.Join(x.WasBlockedBy, ", "), says: "no longer blocked, now " + word(x.To)}
		default:
			others = append(others, x)
			continue
		}
		if count[key]++; count[key] == 1 {
			blocked = append(blocked, key)
		}
	}
	for i, key := range blocked {
		blocked[i].says = quantity.Count(count[key], "check") + " " + key.says
	}
	return others, blocked
}

// otherTarget is the line about the two URLs, "" when there is one. Two are normal: two
// deployments of one endpoint, or a port that changes.
func (d Comparison) otherTarget() string {
	if d.A.Target == d.B.Target {
		return ""
	}
	return "two URLs were judged: " + line(d.A.Target) + ", then " + line(d.B.Target)
}

// statuses are those before and after; a check may be new.
func statuses(x Change) string {
	if x.From == "" {
		return "new → " + word(x.To)
	}
	return word(x.From) + " → " + word(x.To)
}

// bare makes lines that hold an id and nothing else.
func bare(ids []string) []item {
	return lists.Of(ids, func(id string) item { return item{id: id} })
}

// lastLine is the comparison in one line.
func (d Comparison) lastLine() string {
	if d.Same() {
		return "no difference"
	}
	s := fmt.Sprintf("%d newly failing, %d newly passing, %d changed, %s with changed findings",
		len(d.NewlyFailing), len(d.Fixed), len(d.Changed), quantity.Count(len(d.findingIDs()), "check"))
	if n := len(d.Unfair); n > 0 {
		s += "; not fair: " + quantity.Count(n, "setting") + " " + quantity.Verb(n, "differs", "differ")
	}
	return s
}

// findingIDs counts checks and not findings: one check may have dozens.
func (d Comparison) findingIDs() map[string]bool {
	out := map[string]bool{}
	for _, x := range d.Findings {
		out[x.ID] = true
	}
	return out
}

// comparisonText ends with the counts, where a terminal stops.
func comparisonText(d Comparison) string {
	t := &terminal{opt: Options{Width: 80}}
	t.para(0, "a  ", line(d.A.RunID+"  "+d.A.Target+"  "+d.A.Summary))
	t.para(0, "b  ", line(d.B.RunID+"  "+d.B.Target+"  "+d.B.Summary))
	if text := d.otherTarget(); text != "" {
		t.para(0, "", text)
	}
	for _, p := range d.parts() {
		t.section(fmt.Sprintf("%s (%d)", p.title, len(p.items)))
		for _, i := range p.items {
			label := foreign.Pad(line(i.id), 9) + "  "
			if i.says == "" {
				t.para(2, "", line(i.id))
				continue
			}
			t.para(2, label, line(i.says))
			if i.more != "" {
				t.para(2+foreign.Columns(label), "", line(i.more))
			}
		}
	}
	t.printf("\n%s", d.lastLine())
	return t.String()
}
