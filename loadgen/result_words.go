package loadgen

import (
	"slices"
	"sort"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
)

// Subject is what was loaded: objects, or the API of a service.
func (r *Result) Subject() string {
	if r.Load.Scenario != "" {
		return "the REST API (" + r.Load.Scenario + ")"
	}
	return foreign.Line(strings.Join(names(r.Target.Objects), ", "))
}

// SortedKinds lists the kinds of errors, the most frequent first.
func (r *Result) SortedKinds() []string {
	var kinds []string
	for k := range r.ErrorsByKind {
		kinds = append(kinds, k)
	}
	sort.Slice(kinds, func(i, j int) bool {
		if a, b := r.ErrorsByKind[kinds[i]], r.ErrorsByKind[kinds[j]]; a != b {
			return a > b
		}
		return kinds[i] < kinds[j]
	})
	return kinds
}

// Remarks are the notes that say more than the reasons of Generator.
func (r *Result) Remarks() (list []string) {
	for _, note := range r.Notes {
		if reason, ok := strings.CutPrefix(note, limitNote); !ok || !slices.Contains(r.Generator.Reasons, reason) {
			list = append(list, note)
		}
	}
	return list
}
