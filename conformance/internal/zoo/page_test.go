package zoo_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance"
)

// results collects what the runs found, for the page and for the shares.
var results = &collected{
	mistakes: map[string]map[bool]outcome{}, habits: map[string]map[bool]habitRun{}, pairs: map[string][2]outcome{},
}

// habitRun is what a run reported about a habit.
type habitRun struct {
	text     string
	reported bool // a FAIL, or a WARN that is not about a limit
}

type collected struct {
	mu       sync.Mutex
	mistakes map[string]map[bool]outcome // by language and name, and by read-back
	habits   map[string]map[bool]habitRun
	pairs    map[string][2]outcome
}

func keyOf(language, name string) string { return language + "/" + name }

func (c *collected) mistake(m Mistake, readback bool, o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := keyOf(m.Language, m.Name)
	if c.mistakes[k] == nil {
		c.mistakes[k] = map[bool]outcome{}
	}
	c.mistakes[k][readback] = o
}

func (c *collected) habit(h Habit, readback bool, r *conformance.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := keyOf(h.Language, h.Name)
	if c.habits[k] == nil {
		c.habits[k] = map[bool]habitRun{}
	}
	text := fmt.Sprintf("%d PASS", r.Counts[conformance.Pass])
	for _, s := range []conformance.Status{conformance.Fail, conformance.Flaky, conformance.Warn} {
		if ids := failed(r, s); len(ids) > 0 {
			text += fmt.Sprintf(", %s %s", s, strings.Join(ids, " "))
		}
	}
	text += fmt.Sprintf(", %d undecided", r.Counts[conformance.Inconclusive]+r.Counts[conformance.NotRun])
	reported := slices.DeleteFunc(failed(r, append(broken, conformance.Warn)...), func(id string) bool { return slices.Contains(h.Warns, id) })
	c.habits[k][readback] = habitRun{text, len(reported) > 0}
}

func (c *collected) pair(first, second Mistake, one, two outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pairs[first.Name+"+"+second.Name] = [2]outcome{one, two}
}

// shares are the measures of the goals, of the runs with read-back.
type shares struct {
	mistakes, found  int // against a rule or a recommendation
	causes, right    int // of those that were found
	observedWrong    []string
	habits, reported int // habits with a FAIL or a WARN that is not about a limit
}

func (c *collected) shares() shares {
	var s shares
	for _, m := range Mistakes() {
		name := keyOf(m.Language, m.Name)
		o, judged := c.mistakes[name][true]
		if !judged {
			continue
		}
		s.mistakes++
		if o.status == conformance.Fail || m.Slip && o.status == conformance.Warn {
			s.found++
		}
		if o.status == "" {
			continue
		}
		s.causes++
		if o.cause(m) == right {
			s.right++
		} else if o.first.Observed && o.cause(m) == wrongCause {
			s.observedWrong = append(s.observedWrong, name)
		}
	}
	for _, h := range Habits() {
		o, judged := c.habits[keyOf(h.Language, h.Name)]
		if !judged {
			continue
		}
		s.habits++
		if o[true].reported || o[false].reported {
			s.reported++
		}
	}
	return s
}

func percent(part, all int) string {
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(max(all, 1)))
}

func (s shares) String() string {
	return fmt.Sprintf("%d mistakes, %s found by a check about the mistake; %d causes, %s right, %d wrong as observed %v; %d habits, %d with a finding",
		s.mistakes, percent(s.found, s.mistakes), s.causes, percent(s.right, s.causes), len(s.observedWrong), s.observedWrong, s.habits, s.reported)
}

// table are the goals for the page.
func (s shares) table() string {
	return fmt.Sprintf(`
| with read-back | goal | today |
|---|---|---|
| mistakes found by a check about the mistake | at least 95 %% | %s (%d of %d) |
| causes right, of the mistakes that are found | at least 85 %% | %s (%d of %d) |
| causes "as observed" that are wrong | 0 | %d |
| habits with a FAIL or a WARN | 0 | %d of %d |
`, percent(s.found, s.mistakes), s.found, s.mistakes, percent(s.right, s.causes), s.right, s.causes, len(s.observedWrong), s.reported, s.habits)
}

func (c *collected) bothFound() (both, pairs int) {
	for _, p := range c.pairs {
		pairs++
		if p[0].status != "" && p[1].status != "" {
			both++
		}
	}
	return both, pairs
}

// hidden names the pairs of which a mistake is not found.
func (c *collected) hidden() string {
	var out []string
	for name, p := range c.pairs {
		if p[0].status == "" || p[1].status == "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// complete reports whether everything was judged in every way.
func (c *collected) complete() bool {
	for _, m := range Mistakes() {
		if len(c.mistakes[keyOf(m.Language, m.Name)]) != 2 {
			return false
		}
	}
	for _, h := range Habits() {
		if len(c.habits[keyOf(h.Language, h.Name)]) != 2 {
			return false
		}
	}
	return len(c.pairs) == 45
}

// summary is the line that make zoo ends with.
func (c *collected) summary() string {
	both, pairs := c.bothFound()
	return fmt.Sprintf("zoo: %s; both mistakes found in %d of %d pairs", c.shares(), both, pairs)
}

const front = `# Endpoint zoo

Custom destinations as authors write them, in plain Node, Python and Go, on a store in memory and on
databases. Each has one typical mistake, or one habit that is correct and unusual. The judge runs
against each, without and with a read-back hook. The kill matrix breaks rules on purpose; the zoo
breaks them by mistake. The servers are in
` + "`conformance/internal/zoo`" + `; ` + "`make zoo`" + ` judges them, ` + "`make docs`" + ` writes this page.

A check counts as finding a mistake only if its sentence is about that mistake. The cause is the one
that the first finding about the mistake prints (what was seen, where it names none). It is right if it
says what the author did, unspecific if it is true and does not lead there, and wrong otherwise; an
expression for each mistake decides. *As observed* marks a cause that the run says it has proven.
`

func (c *collected) page() string {
	var b strings.Builder
	b.WriteString(front + c.shares().table())
	c.mistakeTable(&b, "Mistakes against a rule", "With read-back, each ends in a FAIL, except for those that are marked as not found.", false)
	c.mistakeTable(&b, "Mistakes against a recommendation", "The protocol leaves these open or only recommends the right way, so the author gets a warning.", true)
	b.WriteString("\n## Habits\n\nThese are correct: no check fails or warns, without or with read-back. Where an author refuses values\nof the declared type in words that do not say which are taken, DAT-014 warns.\n\n| habit | language | what is unusual | without read-back | with read-back |\n|---|---|---|---|---|\n")
	for _, h := range Habits() {
		o := c.habits[keyOf(h.Language, h.Name)]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", h.Name, h.Language, cell(h.Sentence), o[false].text, o[true].text)
	}
	both, pairs := c.bothFound()
	fmt.Fprintf(&b, "\n## Pairs\n\nTwo of ten common mistakes in one server, judged once, with read-back. The judge finds both in %d of %d pairs.\n\n| first | found | second | found | seconds |\n|---|---|---|---|---|\n", both, pairs)
	common := Common()
	for i, first := range common {
		for _, second := range common[i+1:] {
			o := c.pairs[first.Name+"+"+second.Name]
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %.1f |\n", first.Name, o[0], second.Name, o[1], o[0].seconds)
		}
	}
	return b.String()
}

func (c *collected) mistakeTable(b *strings.Builder, title, sentence string, slips bool) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| mistake | language | what the author did | without read-back | with read-back | cause printed | which is | seconds |\n|---|---|---|---|---|---|---|---|\n", title, sentence)
	n := 0
	for _, m := range Mistakes() {
		if m.Slip != slips {
			continue
		}
		n++
		o := c.mistakes[keyOf(m.Language, m.Name)]
		cause, verdict := causeCells(m, o[true])
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %.1f |\n", m.Name, m.Language, cell(m.Sentence), o[false], o[true], cause, verdict, o[true].seconds)
	}
	fmt.Fprintf(b, "\n%d mistakes.\n", n)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// causeCells are the printed cause, as one short line, and the verdict on it.
func causeCells(m Mistake, o outcome) (cause, is string) {
	if o.status == "" {
		return "", ""
	}
	line := []rune(strings.Join(strings.Fields(o.printed()), " "))
	if len(line) > 160 {
		line = append(line[:160], '…')
	}
	cause = strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*", "`", "'").Replace(string(line))
	if o.first.Observed {
		cause += " *as observed*"
	}
	return cause, string(o.cause(m))
}

// write writes the page when everything was judged.
func (c *collected) write(file string) error {
	if err := c.writeMisses(); err != nil {
		return err
	}
	if !c.complete() {
		return fmt.Errorf("write %s: the zoo is not whole: run it with DESTKIT_TIER=full", file)
	}
	return os.WriteFile(file, []byte(c.page()), 0o644)
}
