package service

import (
	"fmt"
	"net/http"
	"net/url"
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

// listSteps are for LST: the list envelope and its limits (spec 2.1, 8).
var listSteps = []step{
	{`^lists that nobody else adds to$`, (*scenario).usesSharedLists},
	{`^a client reads each list(?: with "([^"]*)")?$`, func(sc *scenario, query string) {
		sc.readings = append(sc.readings, lists.Of(sc.lists, func(l listing) reading { return sc.read(l, query) }))
	}},
	// next_page leads from page to page, a third of the list at a time.
	{`^a client reads each list page by page$`, func(sc *scenario) {
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
	}},
	// spec 4 does not name these lists; a service need not have them.
	{`^a client reads these lists:$`, func(sc *scenario, paths *engine.Table) {
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
	}},

	{`^each answer is a list envelope$`, func(sc *scenario) error {
		return each(sc, "list", sc.readings[len(sc.readings)-1], func(r reading) {
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
		})
	}},
	// spec 2.1: the types of the members of pagination.
	{`^"([a-z_]+)" of each list is (an integer|an integer or null)$`, func(sc *scenario, member, kind string) error {
		return each(sc, "list", sc.lastReading(), func(r reading) {
			n := r.at("pagination", member)
			sc.expect(n.IsInteger() || n.Is(wire.Null) && kind != "an integer", fmt.Sprintf("%s of %s is %s", member, r.request.path, kind),
				fmt.Sprintf("%s is %s", member, jsonvalue.Raw(n)), r.answer)
		})
	}},
	{`^"([a-z_]+)" of each list is right$`, func(sc *scenario, member string) error {
		all := sc.lastReading()
		found := 0
		for _, r := range all {
			if want, got := r.expected(member), jsonvalue.Raw(r.at("pagination", member)); want != "" {
				found++
				sc.expect(got == want, fmt.Sprintf("%s of %s is %s", member, r.request.path, want), got, r.answer)
			}
		}
		mustSee(found, "no list had records")
		// A list of unknown length must agree with its pages.
		if member == "total_records" {
			sc.totalsAgree(all)
		}
		return sc.heldBy(found, "page")
	}},
	{`^each page holds as many records as there are for it$`, func(sc *scenario) error {
		return each(sc, "page", sc.lastReading(), func(r reading) {
			want, got := min(r.size, max(0, r.total()-(r.page-1)*r.size)), len(r.items())
			sc.expect(got == want, fmt.Sprintf("%s holds %s", r.request.path, quantity.Count(want, "record")), strconv.Itoa(got), r.answer)
		})
	}},
	{`^each record is on one page$`, func(sc *scenario) error {
		all := sc.lastReading()
		for _, s := range sequences(all) {
			met, total := len(s.records), s.last.total()
			twice := met - different(s.identities())
			sc.expect(twice == 0, "each record of "+s.path+" stands on one page", quantity.Count(twice, "record")+" on several", s.last.answer)
			expected := fmt.Sprintf("the pages of %s hold all %s", s.path, quantity.Count(total, "record"))
			sc.expect(met >= total, expected, strconv.Itoa(met), s.last.answer)
		}
		return sc.heldBy(len(all), "page")
	}},
	// Records may have created_at, and the order in which they were made may be known.
	{`^each list stands in the order of creation, the (newest|oldest) first$`, func(sc *scenario, first string) error {
		decided := 0
		for _, s := range sequences(sc.lastReading()) {
			times := lists.Of(s.records, func(r *wire.Node) time.Time { return momentOf(r.Get("created_at")) })
			times, want := slices.DeleteFunc(times, time.Time.IsZero), slices.Clone(s.last.list.order)
			if first == "newest" {
				slices.Reverse(want)
				slices.Reverse(times)
			}
			if len(want) > 1 {
				decided++
				known := lists.Where(s.identities(), func(id string) bool { return slices.Contains(want, id) })
				sc.expect(slices.Equal(known, want), fmt.Sprintf("%s in the order %v", s.path, want), fmt.Sprint(known), s.last.answer)
			}
			inOrder := slices.IsSortedFunc(times, time.Time.Compare)
			sc.expect(inOrder, s.path+" in the order of created_at, the "+first+" first", s.last.short(), s.last.answer)
		}
		mustSee(decided, "no list has two records whose order is known")
		return sc.HeldBy("%s with a known order", quantity.Count(decided, "list"))
	}},
	{`^each list shows the same records both times$`, func(sc *scenario) error {
		if len(sc.readings) < 2 {
			return engine.Outcome(conformance.HarnessError, "", "the lists were not read twice")
		}
		before, after := sequences(sc.readings[len(sc.readings)-2]), sequences(sc.lastReading())
		for i, s := range after {
			want, got := before[i].identities(), s.identities()
			sc.expect(slices.Equal(want, got), fmt.Sprintf("%s shows %v", s.path, want), fmt.Sprint(got), s.last.answer)
		}
		return sc.heldBy(len(after), "list")
	}},
	{`^the member next of "([^"]*)" leads to the next page, and ends with null$`, (*scenario).nextLeads},
}

// Limits of spec 8.
const perPage, perPageMax = 25, 100

// maxPages bounds how far a list is followed that does not end.
const maxPages = 60

// reading is one page of a list as it was answered.
type reading struct {
	*answer
	list listing
	page int // as requested; 1 when not set
	size int // likewise, within the limits
}

// items are the records of the page.
func (r reading) items() []*wire.Node { return jsonvalue.Items(r.at("data")) }

// number is a member of pagination; ok is false for anything but an integer.
func (r reading) number(member string) (int, bool) {
	n, ok := r.at("pagination", member).Int()
	return int(n), ok
}

// total is how many records the list has: known, or by its own count.
func (r reading) total() int {
	if r.list.exact {
		return r.list.things
	}
	n, _ := r.number("total_records")
	return n
}

// expected is a member of pagination as JSON text; "" where nothing is expected.
func (r reading) expected(member string) string {
	total, next, lastPage := r.total(), "null", ""
	last := (total + r.size - 1) / r.size
	if r.page < last {
		next = strconv.Itoa(r.page + 1)
	}
	if total > 0 {
		lastPage = strconv.Itoa(last)
	}
	return map[string]string{
		"total_records": strconv.Itoa(total), "per_page": strconv.Itoa(r.size), "page": strconv.Itoa(r.page),
		"last_page": lastPage, "next_page": next,
	}[member]
}

// read reads one page of a list.
func (sc *scenario) read(l listing, query string) reading {
	r := reading{list: l, page: 1, size: perPage}
	r.answer = sc.api(request{method: http.MethodGet, path: strings.TrimSuffix(l.path+"?"+query, "?"), as: l.as, token: l.key})
	values, err := url.ParseQuery(query)
	stopAt(err, "read query %q", query)
	// spec 8: 0 is page 1, and no page is larger than 100.
	if n, err := strconv.Atoi(values.Get("page")); err == nil && n > 0 {
		r.page = n
	}
	if n, err := strconv.Atoi(values.Get("per_page")); err == nil && n > 0 {
		r.size = min(n, perPageMax)
	}
	return r
}

// lastReading is the latest; a list that was refused is a finding.
func (sc *scenario) lastReading() []reading {
	if len(sc.readings) == 0 {
		stop(engine.Outcome(conformance.HarnessError, "", "no list was read"))
	}
	all := sc.readings[len(sc.readings)-1]
	for _, r := range all {
		sc.expect(r.OK() && r.Status < 300 && r.json != nil, r.request.path+" is answered", r.short(), r.answer)
	}
	stop(sc.Held())
	return all
}

// totalsAgree counts the records on all pages that were read.
func (sc *scenario) totalsAgree(all []reading) {
	for _, s := range sequences(all) {
		n, r := len(s.records), s.last
		if next, more := r.number("next_page"); more && next > 0 || r.page == 1 {
			continue // not all of its pages were read
		}
		total, _ := r.number("total_records")
		sc.expect(total == n, fmt.Sprintf("total_records of %s is the number of its records, %d", s.path, n), strconv.Itoa(total), r.answer)
	}
}

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

func (s *sequence) identities() []string { return lists.Of(s.records, identityOf) }

// identityOf a record is its id, or its name for kinds without one.
func identityOf(record *wire.Node) string {
	for _, name := range []string{"id", "full_name", "service_name"} {
		if n := record.Get(name); n != nil {
			return jsonvalue.Plain(n)
		}
	}
	return ""
}

// nextLeads follows the legacy address of the next page (spec 2.1).
func (sc *scenario) nextLeads(path string) error {
	now := sc.read(listing{path: path, as: asOrganization}, "per_page=1")
	met := len(now.items())
	for range maxPages {
		n := now.at("next")
		_, more := now.number("next_page")
		rest, found := strings.CutPrefix(jsonvalue.Text(n), sc.target.BaseURL)
		switch {
		case !more && n.Is(wire.Null):
			total, _ := now.number("total_records")
			expected := "next leads over all " + quantity.Count(total, "record")
			sc.expect(total == met, expected, fmt.Sprintf("%d were met", met), now.answer)
			if met < 2 {
				return engine.Inconclusive("--control-url", "the list has one page only; with the control API it gets more")
			}
			return sc.heldBy(met, "page")
		case !more || !found:
			sc.broken("next begins with "+sc.target.BaseURL+", and is null on the last page alone",
				"next is "+jsonvalue.Raw(n)+", next_page is "+jsonvalue.Raw(now.at("pagination", "next_page")), now.answer)
			return sc.Held()
		}
		now.answer = sc.api(request{method: http.MethodGet, path: rest, as: asOrganization})
		met += len(now.items())
	}
	sc.broken("next ends with null", fmt.Sprintf("it went on for %d pages", maxPages), now.answer)
	return sc.Held()
}
