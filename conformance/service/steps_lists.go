package service

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// listsSteps are for LST: the list envelope and its limits (spec 2.1, 8).
func listsSteps() []engine.Step {
	return []engine.Step{
		step(`^lists that nobody else adds to$`, (*scenario).usesSharedLists),
		step(`^a client reads each list(?: with "([^"]*)")?$`, (*scenario).readsEach),
		step(`^a client reads each list page by page$`, (*scenario).readsAll),
		step(`^a client reads these lists:$`, (*scenario).readsThese),
		step(`^each answer is a list envelope$`, (*scenario).envelopes),
		step(`^"([a-z_]+)" of each list is (an integer|an integer or null)$`, (*scenario).memberIs),
		step(`^"([a-z_]+)" of each list is right$`, (*scenario).memberIsRight),
		step(`^each page holds as many records as there are for it$`, (*scenario).pagesAreFull),
		step(`^each record stands on one page$`, (*scenario).eachOnce),
		step(`^each list stands in the order of creation, the (newest|oldest) first$`, (*scenario).inOrder),
		step(`^each list shows the same records both times$`, (*scenario).sameRecords),
		step(`^the member next of "([^"]*)" leads to the next page, and ends with null$`, (*scenario).nextLeads),
	}
}

// Limits of spec 8.
const (
	perPage    = 25
	perPageMax = 100
)

// read reads one page of a list.
func (sc *scenario) read(l listing, query string) reading {
	r := reading{list: l, page: 1, size: perPage}
	path := l.path
	if query != "" {
		path += "?" + query
	}
	r.answer = sc.api(request{method: http.MethodGet, path: path, as: l.as, token: l.key})
	values, err := url.ParseQuery(query)
	if err != nil {
		stop(fmt.Errorf("read query %q: %w", query, err))
	}
	// spec 8: 0 is page 1, and no page is larger than 100.
	if n, err := strconv.Atoi(values.Get("page")); err == nil && n > 0 {
		r.page = n
	}
	if n, err := strconv.Atoi(values.Get("per_page")); err == nil && n > 0 {
		r.size = min(n, perPageMax)
	}
	return r
}

// readsEach reads the lists of the scenario; the reading before is kept.
func (sc *scenario) readsEach(query string) {
	sc.readings = append(sc.readings, lists.Of(sc.lists, func(l listing) reading { return sc.read(l, query) }))
}

// lastReading is the latest; a list that was refused is a finding.
func (sc *scenario) lastReading() []reading {
	if len(sc.readings) == 0 {
		stop(engine.Outcome(conformance.HarnessError, "", "no list was read"))
	}
	all := sc.readings[len(sc.readings)-1]
	for _, r := range all {
		if !r.OK() || r.Status >= http.StatusMultipleChoices || r.json == nil {
			sc.broken(r.request.path+" is answered", r.short(), r.answer)
		}
	}
	stop(sc.Held())
	return all
}

// maxPages bounds how far a list is followed that does not end.
const maxPages = 60

// readsAll follows next_page from page to page, a third of the list at a time.
func (sc *scenario) readsAll() {
	var now []reading
	for _, l := range sc.lists {
		total, _ := sc.read(l, "per_page=1").number("total_records")
		size := min(max((total+2)/3, 1), perPageMax)
		for page := 1; page <= maxPages; page++ {
			r := sc.read(l, fmt.Sprintf("page=%d&per_page=%d", page, size))
			now = append(now, r)
			if next, ok := r.number("next_page"); !ok || next <= page {
				break
			}
		}
	}
	sc.readings = append(sc.readings, now)
}

// readsThese reads lists that spec 4 does not name; a service need not have them.
func (sc *scenario) readsThese(paths *engine.Table) {
	var now []reading
	for _, line := range engine.Rows(paths) {
		path := sc.filled(line[0])
		r := sc.read(listing{path: path, as: whoseIs(path)}, "per_page=2")
		if r.Status == http.StatusNotFound {
			sc.Note("there is no list %s", path)
			continue
		}
		now = append(now, r)
	}
	if len(now) == 0 {
		stop(engine.Outcome(conformance.NotApplicable, "", "the service has none of these lists"))
	}
	sc.readings = append(sc.readings, now)
}

func (sc *scenario) envelopes() error {
	all := sc.readings[len(sc.readings)-1]
	for _, r := range all {
		switch {
		case !r.OK() || r.Status != http.StatusOK:
			sc.broken("a list with 200", r.short(), r.answer)
		case !r.json.Is(wire.Object):
			sc.broken("a list is an object with status, pagination and data", r.short(), r.answer)
		case r.text("status") != "success":
			sc.broken(`"status":"success"`, r.short(), r.answer)
		case !r.at("pagination").Is(wire.Object):
			sc.broken("pagination as an object", r.short(), r.answer)
		case !r.at("data").Is(wire.Array):
			sc.broken("data as an array", r.short(), r.answer)
		}
	}
	return sc.heldBy(len(all), "list")
}

// memberIs looks at the type of a member of pagination (spec 2.1).
func (sc *scenario) memberIs(member, kind string) error {
	return sc.eachReading("list", func(r reading) {
		n := r.at("pagination", member)
		if !n.IsInteger() && (!n.Is(wire.Null) || kind == "an integer") {
			sc.broken(fmt.Sprintf("%s of %s is %s", member, r.request.path, kind), fmt.Sprintf("%s is %s", member, jsonvalue.Raw(n)), r.answer)
		}
	})
}

// totals are how many records each list has: known, or as it says itself.
func (r reading) total() int {
	if r.list.exact {
		return r.list.things
	}
	n, _ := r.number("total_records")
	return n
}

// expected is a member of pagination as JSON text; "" where nothing is asked.
func (r reading) expected(member string) string {
	total := r.total()
	last := (total + r.size - 1) / r.size
	switch member {
	case "total_records":
		return strconv.Itoa(total)
	case "per_page":
		return strconv.Itoa(r.size)
	case "page":
		return strconv.Itoa(r.page)
	case "last_page":
		if total > 0 {
			return strconv.Itoa(last)
		}
	case "next_page":
		if r.page < last {
			return strconv.Itoa(r.page + 1)
		}
		return "null"
	}
	return ""
}

func (sc *scenario) memberIsRight(member string) error {
	all := sc.lastReading()
	found := 0
	for _, r := range all {
		want, got := r.expected(member), jsonvalue.Raw(r.at("pagination", member))
		if want == "" {
			continue
		}
		if found++; got != want {
			sc.broken(fmt.Sprintf("%s of %s is %s", member, r.request.path, want), got, r.answer)
		}
	}
	if found == 0 {
		undecided("no list had records")
	}
	// A list of unknown length has to agree with what is on its pages.
	if member == "total_records" {
		sc.totalsAgree(all)
	}
	return sc.heldBy(found, "page")
}

// totalsAgree counts the records on all pages that were read.
func (sc *scenario) totalsAgree(all []reading) {
	for _, s := range sequences(all) {
		n, r := len(s.records), s.last
		if next, more := r.number("next_page"); more && next > 0 || r.page == 1 {
			continue // not all of its pages were read
		}
		if total, _ := r.number("total_records"); total != n {
			sc.broken(fmt.Sprintf("total_records of %s is the number of its records, %d", s.path, n), strconv.Itoa(total), r.answer)
		}
	}
}

func (sc *scenario) pagesAreFull() error {
	return sc.eachReading("page", func(r reading) {
		want := min(r.size, max(0, r.total()-(r.page-1)*r.size))
		if got := len(r.items()); got != want {
			sc.broken(fmt.Sprintf("%s holds %s", r.request.path, quantity.Count(want, "record")), strconv.Itoa(got), r.answer)
		}
	})
}
