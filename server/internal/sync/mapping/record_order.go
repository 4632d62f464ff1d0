package mapping

import (
	"cmp"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// readAll adds what templates read: all columns for one that uses the record as
// a whole.
func (k *compiler) readAll(members []*member) {
	need := map[string]bool{}
	for _, one := range members {
		t := one.step.template
		if t == nil {
			continue
		}
		names := t.Columns()
		if t.ReadsAll() {
			names = k.columnNames()
		}
		for _, name := range names {
			if at, known := k.place(name); known && !need[name] {
				need[name] = true
				k.plan.reads = append(k.plan.reads, at)
			}
		}
	}
}

// order sorts the fields (spec 2.6, field_order), and brings the parts of one
// object together.
func (k *compiler) order(members []*member) {
	order := text(k.config.FieldOrder)
	if order == api.OrderAlphabetical || order == "" && k.object.SupportsFieldOrdering {
		slices.SortStableFunc(members, func(a, b *member) int { return strings.Compare(a.step.name, b.step.name) })
	}
	first := map[string]int{}
	for i, one := range members {
		for n := range one.path {
			name := strings.Join(one.path[:n+1], "\x00")
			if _, seen := first[name]; !seen {
				first[name] = i
			}
		}
	}
	slices.SortStableFunc(members, func(a, b *member) int {
		for n := range min(len(a.path), len(b.path)) {
			if a.path[n] != b.path[n] {
				return cmp.Compare(first[strings.Join(a.path[:n+1], "\x00")], first[strings.Join(b.path[:n+1], "\x00")])
			}
		}
		return 0
	})
}
