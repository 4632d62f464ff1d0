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
	mistakes: map[string]map[bool]outcome{}, habits: map[string]map[bool]string{}, pairs: map[string][2]outcome{},
}

type collected struct {
	mu       sync.Mutex
	mistakes map[string]map[bool]outcome // by language and name, and by read-back
	habits   map[string]map[bool]string
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
		c.habits[k] = map[bool]string{}
	}
	text := fmt.Sprintf("%d PASS", r.Counts[conformance.Pass])
	for _, s := range []conformance.Status{conformance.Fail, conformance.Flaky, conformance.Warn} {
		if ids := failed(r, s); len(ids) > 0 {
			text += fmt.Sprintf(", %s %s", s, strings.Join(ids, " "))
		}
	}
	text += fmt.Sprintf(", %d undecided", r.Counts[conformance.Inconclusive]+r.Counts[conformance.NotRun])
	c.habits[k][readback] = text
}

func (c *collected) pair(first, second Mistake, one, two outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pairs[first.Name+"+"+second.Name] = [2]outcome{one, two}
}

// share is how many of the judged mistakes against a rule end in a FAIL with
// read-back.
func (c *collected) share() float64 {
	all, seen := 0, 0
	for _, m := range Mistakes() {
		o, judged := c.mistakes[keyOf(m.Language, m.Name)][true]
		if m.Slip || !judged {
			continue
		}
		all++
		if o.status == conformance.Fail {
			seen++
		}
	}
	return float64(seen) / float64(max(all, 1))
}

// missed names the mistakes that do not end in a FAIL.
func (c *collected) missed() string {
	var out []string
	for _, m := range Mistakes() {
		if o, judged := c.mistakes[keyOf(m.Language, m.Name)][true]; judged && !m.Slip && o.status != conformance.Fail {
			out = append(out, keyOf(m.Language, m.Name)+" ("+o.String()+")")
		}
	}
	return strings.Join(out, ", ")
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
	return fmt.Sprintf("zoo: %d mistakes judged, %.0f %% of those against a rule end in a FAIL; %d habits judged; both mistakes found in %d of %d pairs",
		len(c.mistakes), 100*c.share(), len(c.habits), both, pairs)
}

const front = `# Endpoint zoo

Custom destinations as authors write them, in plain Node, Python and Go. Each has one typical mistake,
or one habit that is correct and unusual. The judge runs against each, without and with a read-back
hook. The kill matrix breaks rules on purpose; the zoo breaks them by mistake. The servers are in
` + "`conformance/internal/zoo`" + `; ` + "`make zoo`" + ` judges them, ` + "`make docs`" + ` writes this page.

A check counts as finding a mistake only if its sentence is about that mistake.
`

func (c *collected) page() string {
	var b strings.Builder
	b.WriteString(front)
	c.mistakeTable(&b, "Mistakes against a rule", "With read-back, at least 95 % end in a FAIL.", false)
	c.mistakeTable(&b, "Mistakes against a recommendation", "The protocol leaves these open or only recommends the right way, so the author gets a warning.", true)
	b.WriteString("\n## Habits\n\nThese are correct: no check fails, without or with read-back.\n\n| habit | language | what is unusual | without read-back | with read-back |\n|---|---|---|---|---|\n")
	for _, h := range Habits() {
		o := c.habits[keyOf(h.Language, h.Name)]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", h.Name, h.Language, cell(h.Sentence), o[false], o[true])
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
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| mistake | language | what the author did | without read-back | with read-back | seconds |\n|---|---|---|---|---|---|\n", title, sentence)
	n := 0
	for _, m := range Mistakes() {
		if m.Slip != slips {
			continue
		}
		n++
		o := c.mistakes[keyOf(m.Language, m.Name)]
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %.1f |\n", m.Name, m.Language, cell(m.Sentence), o[false], o[true], o[true].seconds)
	}
	fmt.Fprintf(b, "\n%d mistakes.\n", n)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// write writes the page when everything was judged.
func (c *collected) write(file string) error {
	if !c.complete() {
		return fmt.Errorf("write %s: the zoo is not whole: run it with DESTKIT_TIER=full", file)
	}
	return os.WriteFile(file, []byte(c.page()), 0o644)
}
