package service

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

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
	all, err := sc.lastReading()
	if err != nil {
		return err
	}
	for _, r := range all {
		n := r.at("pagination", member)
		if !n.IsInteger() && (!n.Is(wire.Null) || kind == "an integer") {
			sc.broken(fmt.Sprintf("%s of %s is %s", member, r.request.path, kind), fmt.Sprintf("%s is %s", member, jsonvalue.Raw(n)), r.answer)
		}
	}
	return sc.heldBy(len(all), "list")
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
	case "prev_page":
		switch {
		case r.page == 1:
			return "null"
		case r.page <= last:
			return strconv.Itoa(r.page - 1)
		}
	}
	return ""
}

func (sc *scenario) memberIsRight(member string) error {
	all, err := sc.lastReading()
	if err != nil {
		return err
	}
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
		return conformance.Outcome(conformance.Inconclusive, "", "no list had records")
	}
	// A list of unknown length has to agree with what is on its pages.
	if member == "total_records" {
		sc.totalsAgree(all)
	}
	return sc.heldBy(found, "page")
}

// totalsAgree counts the records on all pages that were read.
func (sc *scenario) totalsAgree(all []reading) {
	counted, last := map[string]int{}, map[string]reading{}
	for _, r := range all {
		counted[r.list.path] += len(r.items())
		last[r.list.path] = r
	}
	for path, n := range counted {
		r := last[path]
		if next, more := r.number("next_page"); more && next > 0 || r.page == 1 {
			continue // not all of its pages were read
		}
		if total, _ := r.number("total_records"); total != n {
			sc.broken(fmt.Sprintf("total_records of %s is the number of its records, %d", path, n), strconv.Itoa(total), r.answer)
		}
	}
}

func (sc *scenario) pagesAreFull() error {
	all, err := sc.lastReading()
	if err != nil {
		return err
	}
	for _, r := range all {
		want := min(r.size, max(0, r.total()-(r.page-1)*r.size))
		if got := len(r.items()); got != want {
			sc.broken(fmt.Sprintf("%s holds %s", r.request.path, quantity.Count(want, "record")), strconv.Itoa(got), r.answer)
		}
	}
	return sc.heldBy(len(all), "page")
}

func (sc *scenario) pagesAreBounded(most int) error {
	all := sc.readings[len(sc.readings)-1]
	seen := 0
	for _, r := range all {
		if got := len(r.items()); got > most {
			sc.broken(fmt.Sprintf("%s holds at most %s", r.request.path, quantity.Count(most, "record")), strconv.Itoa(got), r.answer)
		}
		seen = max(seen, r.total())
	}
	if seen <= most {
		return conformance.Outcome(conformance.Inconclusive, "", "no list has more than %s", quantity.Count(most, "record"))
	}
	return sc.heldBy(len(all), "list")
}
