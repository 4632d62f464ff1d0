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
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// sequence is all that was read of a list, in the order of the reading.
type sequence struct {
	path    string
	records []*wire.Node
	last    reading
}

func sequences(all []reading) []*sequence {
	var out []*sequence
	for _, r := range all {
		i := slices.IndexFunc(out, func(s *sequence) bool { return s.path == r.list.path })
		if i < 0 {
			i, out = len(out), append(out, &sequence{path: r.list.path})
		}
		out[i].records, out[i].last = append(out[i].records, r.items()...), r
	}
	return out
}

func identities(records []*wire.Node) []string { return lists.Of(records, identityOf) }

func (sc *scenario) eachOnce() error {
	all := sc.lastReading()
	for _, s := range sequences(all) {
		ids := identities(s.records)
		slices.Sort(ids)
		if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
			sc.broken("each record of "+s.path+" stands on one page", quantity.Count(len(ids)-n, "record")+" on several", s.last.answer)
		}
		if total := s.last.total(); len(ids) < total {
			sc.broken(fmt.Sprintf("the pages of %s hold all %s", s.path, quantity.Count(total, "record")), strconv.Itoa(len(ids)), s.last.answer)
		}
	}
	return sc.heldBy(len(all), "page")
}

// inOrder looks at created_at where records have it, and at what is known of
// the order in which they were made.
func (sc *scenario) inOrder(first string) error {
	all := sc.lastReading()
	decided := 0
	for _, s := range sequences(all) {
		times, ids, want := createdAt(s.records), identities(s.records), slices.Clone(s.last.list.order)
		if first == "newest" {
			slices.Reverse(want)
			slices.Reverse(times)
		}
		if len(want) > 1 {
			decided++
			known := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(want, id) })
			if !slices.Equal(known, want) {
				sc.broken(fmt.Sprintf("%s in the order %v", s.path, want), fmt.Sprint(known), s.last.answer)
			}
		}
		if !slices.IsSortedFunc(times, time.Time.Compare) {
			sc.broken(s.path+" in the order of created_at, the "+first+" first", s.last.short(), s.last.answer)
		}
	}
	if decided == 0 {
		undecided("no list has two records whose order is known")
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

// sameRecords compares the last two readings of each list.
func (sc *scenario) sameRecords() error {
	if len(sc.readings) < 2 {
		return engine.Outcome(conformance.HarnessError, "", "the lists were not read twice")
	}
	before, after := sequences(sc.readings[len(sc.readings)-2]), sequences(sc.lastReading())
	for i, s := range after {
		if want, got := identities(before[i].records), identities(s.records); !slices.Equal(want, got) {
			sc.broken(fmt.Sprintf("%s shows %v", s.path, want), fmt.Sprint(got), s.last.answer)
		}
	}
	return sc.heldBy(len(after), "list")
}

// nextLeads follows the legacy address of the next page (spec 2.1).
func (sc *scenario) nextLeads(path string) error {
	now := sc.read(listing{path: path, as: asOrganization}, "per_page=1")
	ids := identities(now.items())
	for range maxPages {
		n := now.at("next")
		_, more := now.number("next_page")
		rest, found := strings.CutPrefix(jsonvalue.Text(n), sc.target.BaseURL)
		switch {
		case !more && n.Is(wire.Null):
			if total, _ := now.number("total_records"); total != len(ids) {
				sc.broken(fmt.Sprintf("next leads over all %s", quantity.Count(total, "record")), fmt.Sprintf("%d were met", len(ids)), now.answer)
			}
			if len(ids) < 2 {
				return engine.Outcome(conformance.Inconclusive, "--control-url", "the list has one page only; with the control API it gets more")
			}
			return sc.heldBy(len(ids), "page")
		case !more || !found:
			sc.broken("next begins with "+sc.target.BaseURL+", and is null on the last page alone",
				"next is "+jsonvalue.Raw(n)+", next_page is "+jsonvalue.Raw(now.at("pagination", "next_page")), now.answer)
			return sc.Held()
		}
		now.answer = sc.api(request{method: http.MethodGet, path: rest, as: asOrganization})
		ids = append(ids, identities(now.items())...)
	}
	sc.broken("next ends with null", fmt.Sprintf("it went on for %d pages", maxPages), now.answer)
	return sc.Held()
}
