package syncs

import (
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Sync is what the commands need of a sync.
type Sync struct {
	ID    int64   `json:"id"`
	Label *string `json:"label"`
}

// name is the label for people, "" without one.
func (s Sync) name() string {
	if s.Label == nil {
		return ""
	}
	return *s.Label
}

// HasStatus reports whether a status is one of some words: dialects differ in their
// capitals.
func HasStatus(status string, words ...string) bool {
	for _, word := range words {
		if strings.EqualFold(status, word) {
			return true
		}
	}
	return false
}

// Over reports whether nothing more happens to a run. Clients were seen to meet a
// status of their own for cancelled runs.
func Over(r api.SyncRun) bool {
	return HasStatus(r.Status, api.RunCompleted, api.RunFailed, api.RunSkipped, "cancelled", "canceled")
}

// Count reads a counter; one that is not known yet is 0.
func Count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// Text reads a text; null is "".
func Text(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
