package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotesOfSeveralObjects: what was seen at every object is said once, and what was
// seen at some of them with their names.
func TestNotesOfSeveralObjects(t *testing.T) {
	part := func(status Status, notes ...string) *CheckResult { return &CheckResult{Status: status, Notes: notes} }
	objects := []string{"contact", "order", "event"}
	require.Equal(t, []string{"no success carries a message"},
		notesOf(objects, []*CheckResult{part(Pass, "no success carries a message"), part(Pass, "no success carries a message"), part(NotApplicable)}))
	require.Equal(t, []string{"contact, event: the last arrival counts", "order: the newer values stay", "the hook shows no record of order"},
		notesOf(objects, []*CheckResult{
			part(Pass, "the last arrival counts"),
			part(Pass, "the newer values stay", "the hook shows no record of order"),
			part(Pass, "the last arrival counts"),
		}))
	require.Equal(t, []string{"the newer values stay"}, notesOf(objects[:1], []*CheckResult{part(Pass, "the newer values stay")}))
}
