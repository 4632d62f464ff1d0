package conformance

import (
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/suggest"
)

// SelectChecks are the checks of a run, then the author's own. Mistakes are *UsageError.
func (o *Options) SelectChecks(cat *Catalogue) ([]*Check, error) {
	if err := o.checkWaivers(); err != nil {
		return nil, err
	}
	checks, err := o.selectChecks(cat)
	if err != nil || o.Features == nil {
		return checks, err
	}
	own, err := ReadCatalogue(o.Features, ".", true)
	if err != nil {
		return nil, Usage("%v", err)
	}
	if len(own.Checks) == 0 {
		return nil, Usage("the features directory holds no scenario: it needs *.feature files")
	}
	return append(checks, own.Checks...), nil
}

// selectChecks applies --select and --skip and adds what the selected checks build on.
func (o *Options) selectChecks(cat *Catalogue) ([]*Check, error) {
	chosen, asked := map[string]bool{}, map[string]bool{}
	selected := o.Select
	if len(selected) == 0 {
		selected = []string{"*"}
	}
	for _, glob := range selected {
		found, err := matching(cat, "--select", glob)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			cat.addWithNeeds(chosen, c)
			asked[c.ID] = true
		}
	}
	for _, glob := range o.Skip {
		found, err := matching(cat, "--skip", glob)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			delete(chosen, c.ID)
			delete(asked, c.ID)
		}
	}
	// Checks that others only build on are no selection by themselves.
	if len(asked) == 0 {
		return nil, Usage("nothing is selected: --skip leaves no check")
	}
	return lists.Where(cat.Checks, func(c *Check) bool { return chosen[c.ID] }), nil
}

func matching(cat *Catalogue, flag, glob string) ([]*Check, error) {
	found, err := cat.Match(glob)
	if err != nil {
		return nil, Usage("%s %q is not a pattern: use an id such as RES-002 or a glob such as RES-*", flag, glob)
	}
	if len(found) == 0 {
		meant := meantCheck(cat, glob)
		if meant != "" {
			meant = "did you mean '" + meant + "'? "
		}
		return nil, Usage("%s %q matches no check: %s'destkit checks' lists them", flag, glob, meant)
	}
	return found, nil
}

// meantCheck is the pattern or id that a slip such as "res" or "RES-2" was meant to be, "" without one.
func meantCheck(cat *Catalogue, word string) string {
	upper := strings.ToUpper(strings.TrimSpace(word))
	for _, glob := range []string{upper, upper + "-*", strings.TrimRight(upper, "-*") + "-*"} {
		if found, err := cat.Match(glob); err == nil && len(found) > 0 {
			return glob
		}
	}
	var ids []string
	for _, c := range cat.Checks {
		ids = append(ids, c.ID)
		if area, _, ok := strings.Cut(c.ID, "-"); ok && !slices.Contains(ids, area+"-*") {
			ids = append(ids, area+"-*")
		}
	}
	if area, number, ok := strings.Cut(upper, "-"); ok && len(number) < 3 {
		if padded := area + "-" + strings.Repeat("0", 3-len(number)) + number; slices.Contains(ids, padded) {
			return padded
		}
	}
	if near := suggest.Word(upper, ids); suggest.Distance(upper, near) == 1 {
		return near
	}
	return ""
}

// addWithNeeds chooses a check and, transitively, the checks that it builds on.
func (c *Catalogue) addWithNeeds(chosen map[string]bool, check *Check) {
	if chosen[check.ID] {
		return
	}
	chosen[check.ID] = true
	for _, id := range check.Needs {
		if n, ok := c.byID[id]; ok {
			c.addWithNeeds(chosen, n)
		}
	}
}

// PlanReport is what a run would send, and what stays undecidable.
type PlanReport struct {
	Target      string         `json:"target"`
	Replicas    []string       `json:"replicas,omitempty"` // get calls in turn with the target
	Objects     []PlanObject   `json:"objects"`
	Speed       string         `json:"declared_speed"`
	Checks      []PlannedCheck `json:"checks"`
	Records     int            `json:"records"`                // at most
	Keys        []string       `json:"keys"`                   // what identifiers look like
	Undecidable []string       `json:"undecidable" redact:"-"` // MUSTs that cannot be decided with these settings
	Notes       []string       `json:"notes"`
}

// PlanObject is one object of the endpoint.
type PlanObject struct {
	Name       string   `json:"name"`
	Operations []string `json:"operations"`
	Identifier string   `json:"identifier"`
	Fields     int      `json:"fields"`
	Chosen     bool     `json:"chosen"`
	Cleanup    string   `json:"cleanup"` // delete batches, hook, none
}

// PlannedCheck is one check with what it would do.
type PlannedCheck struct {
	ID      string `json:"id" redact:"-"`
	Title   string `json:"title" redact:"-"`
	Level   Level  `json:"level" redact:"-"`
	Runs    bool   `json:"runs"`
	Reason  string `json:"reason,omitempty"`  // why it would not run, or what it waits for
	Decider string `json:"decider,omitempty"` // what would let it run
	Records int    `json:"records,omitempty"` // at most, over all chosen objects
}

// methodOfArea is the method that checks are about, by the letters of their ids; others are about all.
var methodOfArea = map[string]string{
	"CON": methodInExample, "STA": methodInExample, "PAR": methodInExample,
	"OBJ": "list_objects", "FLD": "list_fields", "OPS": "supported_operations", "SPD": "get_sync_speed",
	"RES": "sync_batch", "SEM": "sync_batch", "DUR": "sync_batch", "DUP": "sync_batch", "DAT": "sync_batch",
}

// methodInExample marks areas whose good exchange has the method.
const methodInExample = "*"

var methodMember = regexp.MustCompile(`"method":"(test_connection|list_objects|sync_batch)"`)

// Method is the protocol's method that a check of a destination is about, "" for every call.
func (c *Check) Method() string {
	area, _, _ := strings.Cut(c.ID, "-")
	method := methodOfArea[area]
	if method != methodInExample {
		return method
	}
	found := methodMember.FindStringSubmatch(c.Good)
	if found == nil || (area != "CON" && found[1] != "sync_batch") {
		return ""
	}
	return found[1]
}
