package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// TestNotesOfSeveralObjects: what was seen at every object is said once, and what was
// seen at some of them with their names.
func TestNotesOfSeveralObjects(t *testing.T) {
	part := func(status conformance.Status, notes ...string) *Result {
		return &Result{CheckResult: conformance.CheckResult{Status: status, Notes: notes}}
	}
	objects := []string{"contact", "order", "event"}
	require.Equal(t, []string{"no success carries a message"},
		notesOf(objects, []*Result{part(conformance.Pass, "no success carries a message"), part(conformance.Pass, "no success carries a message"), part(conformance.NotApplicable)}))
	require.Equal(t, []string{"contact, event: the last arrival counts", "order: the newer values stay", "the hook shows no record of order"},
		notesOf(objects, []*Result{
			part(conformance.Pass, "the last arrival counts"),
			part(conformance.Pass, "the newer values stay", "the hook shows no record of order"),
			part(conformance.Pass, "the last arrival counts"),
		}))
	require.Equal(t, []string{"the newer values stay"}, notesOf(objects[:1], []*Result{part(conformance.Pass, "the newer values stay")}))
}
