package conformance

import (
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/suggest"
)

// selectChecks applies --select and --skip and adds what the selected checks
// build on, so that a verdict never rests on an unjudged rule.
func (o *Options) selectChecks(cat *Catalogue) ([]*Check, error) {
	chosen, asked := map[string]bool{}, map[string]bool{}
	if len(o.Select) == 0 {
		for _, c := range cat.Checks {
			chosen[c.ID], asked[c.ID] = true, true
		}
	}
	for _, glob := range o.Select {
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
	// What others only build on is no selection of its own.
	if len(asked) == 0 {
		return nil, usage("nothing is selected: --skip leaves no check")
	}
	out := slices.Clone(cat.Checks)
	return slices.DeleteFunc(out, func(c *Check) bool { return !chosen[c.ID] }), nil
}

func matching(cat *Catalogue, flag, glob string) ([]*Check, error) {
	found, err := cat.Match(glob)
	if err != nil {
		return nil, usage("%s %q is not a pattern: use an id such as RES-002 or a glob such as RES-*", flag, glob)
	}
	if len(found) == 0 {
		if meant := meantCheck(cat, glob); meant != "" {
			return nil, usage("%s %q matches no check: did you mean '%s'? 'destkit checks' lists them", flag, glob, meant)
		}
		return nil, usage("%s %q matches no check: 'destkit checks' lists them", flag, glob)
	}
	return found, nil
}

// meantCheck is the pattern or the id that a slip was probably meant to be: an
// area without the star, small letters, a missing zero; "" when there is none.
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
