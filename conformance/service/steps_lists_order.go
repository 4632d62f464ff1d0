package service

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// sequences are the records of each list in the order of a reading.
func sequences(all []reading) (paths []string, records map[string][]*wire.Node, by map[string]reading) {
	records, by = map[string][]*wire.Node{}, map[string]reading{}
	for _, r := range all {
		if by[r.list.path].answer == nil {
			paths = append(paths, r.list.path)
		}
		by[r.list.path] = r
		records[r.list.path] = append(records[r.list.path], r.items()...)
	}
	return paths, records, by
}

func identities(records []*wire.Node) []string {
	out := []string{}
	for _, r := range records {
		out = append(out, identityOf(r))
	}
	return out
}

func (sc *scenario) eachOnce() error {
	all, err := sc.lastReading()
	if err != nil {
		return err
	}
	paths, records, by := sequences(all)
	for _, path := range paths {
		r, ids := by[path], identities(records[path])
		slices.Sort(ids)
		if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
			sc.broken("each record of "+path+" stands on one page", quantity.Count(len(ids)-n, "record")+" on several", r.answer)
		}
		if len(ids) < r.total() {
			sc.broken(fmt.Sprintf("the pages of %s hold all %s", path, quantity.Count(r.total(), "record")), strconv.Itoa(len(ids)), r.answer)
		}
	}
	return sc.heldBy(len(all), "page")
}

// inOrder looks at created_at where records have it, and at what is known of
// the order in which they were made.
func (sc *scenario) inOrder(first string) error {
	all, err := sc.lastReading()
	if err != nil {
		return err
	}
	decided := 0
	paths, records, by := sequences(all)
	for _, path := range paths {
		r := by[path]
		times, ids := createdAt(records[path]), identities(records[path])
		want := slices.Clone(r.list.order)
		if first == "newest" {
			slices.Reverse(want)
			slices.Reverse(times)
		}
		if len(want) > 1 {
			decided++
			known := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(want, id) })
			if !slices.Equal(known, want) {
				sc.broken(fmt.Sprintf("%s in the order %v", path, want), fmt.Sprint(known), r.answer)
			}
		}
		if !slices.IsSortedFunc(times, time.Time.Compare) {
			sc.broken(path+" in the order of created_at, the "+first+" first", r.short(), r.answer)
		}
	}
	if decided == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no list has two records whose order is known")
	}
	return sc.HeldBy("%s with a known order", quantity.Count(decided, "list"))
}

// createdAt are the times of creation as far as records tell them.
func createdAt(records []*wire.Node) []time.Time {
	var out []time.Time
	for _, r := range records {
		if t, err := time.Parse(time.RFC3339Nano, jsonvalue.Text(r.Get("created_at"))); err == nil {
			out = append(out, t)
		}
	}
	return out
}

// both are the last two readings of each list.
func (sc *scenario) both() (before, after map[string][]string, by map[string]reading, err error) {
	if len(sc.readings) < 2 {
		return nil, nil, nil, engine.Outcome(conformance.HarnessError, "", "the lists were not read twice")
	}
	all, err := sc.lastReading()
	if err != nil {
		return nil, nil, nil, err
	}
	ids := func(records map[string][]*wire.Node) map[string][]string {
		out := map[string][]string{}
		for path, r := range records {
			out[path] = identities(r)
		}
		return out
	}
	_, first, _ := sequences(sc.readings[len(sc.readings)-2])
	_, records, by := sequences(all)
	return ids(first), ids(records), by, nil
}

func (sc *scenario) sameRecords(how string) error {
	before, after, by, err := sc.both()
	if err != nil {
		return err
	}
	for path, r := range by {
		want := slices.Clone(before[path])
		if how == "backwards" {
			slices.Reverse(want)
		}
		if !slices.Equal(want, after[path]) {
			sc.broken(fmt.Sprintf("%s shows %v", path, want), fmt.Sprint(after[path]), r.answer)
		}
	}
	return sc.heldBy(len(by), "list")
}

func (sc *scenario) noRecords() error {
	all := sc.readings[len(sc.readings)-1]
	for _, r := range all {
		if !r.OK() || r.Status != http.StatusOK || len(r.items()) > 0 || !r.at("data").Is(wire.Array) {
			sc.broken(r.request.path+" is answered with an empty list", r.short(), r.answer)
		}
	}
	return sc.heldBy(len(all), "list")
}

func (sc *scenario) noListFails() error {
	for _, all := range sc.readings {
		for _, r := range all {
			if !r.OK() || r.Status >= 500 || r.json == nil {
				sc.broken(r.request.path+" is answered, or refused with 400", r.short(), r.answer)
			}
		}
	}
	return sc.heldBy(len(sc.readings), "reading")
}

// nextLeads follows the legacy address of the next page (spec 2.1).
func (sc *scenario) nextLeads(path string) error {
	l := listing{path: path, as: asOrganization}
	now, err := sc.read(l, "per_page=1")
	if err != nil {
		return err
	}
	ids := identities(now.items())
	for range maxPages {
		n := now.at("next")
		_, more := now.number("next_page")
		switch {
		case n == nil || !n.Is(wire.String) && !n.Is(wire.Null):
			sc.broken("next is a string or null", "next is "+jsonvalue.Raw(n), now.answer)
			return sc.Held()
		case n.Is(wire.Null) == more:
			sc.broken("next is null on the last page, and only there", "next is "+jsonvalue.Raw(n)+", next_page is "+jsonvalue.Raw(now.at("pagination", "next_page")), now.answer)
			return sc.Held()
		case n.Is(wire.Null):
			if total, _ := now.number("total_records"); total != len(ids) {
				sc.broken(fmt.Sprintf("next leads over all %s", quantity.Count(total, "record")), fmt.Sprintf("%d were met", len(ids)), now.answer)
			}
			if len(ids) < 2 {
				return engine.Outcome(conformance.Inconclusive, "--control-url", "the list has one page only; with the control API it gets more")
			}
			return sc.heldBy(len(ids), "page")
		}
		rest, found := strings.CutPrefix(n.Text, sc.target.BaseURL)
		if !found {
			sc.broken("next begins with "+sc.target.BaseURL, "next is "+n.Text, now.answer)
			return sc.Held()
		}
		if now.answer, err = sc.api(request{method: http.MethodGet, path: rest, as: asOrganization}); err != nil {
			return err
		}
		ids = append(ids, identities(now.items())...)
	}
	sc.broken("next ends with null", fmt.Sprintf("it went on for %d pages", maxPages), now.answer)
	return sc.Held()
}
