package judge

import (
	"sync"

	"github.com/destkit/destkit/conformance"
)

// statuses are those of the checks that have their final result.
type statuses struct {
	mu sync.Mutex
	by map[string]conformance.Status
}

func (s *statuses) Settle(r *conformance.CheckResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]conformance.Status{}
	}
	s.by[r.ID] = r.Status
}

// of is the status of a check, "" as long as it has none.
func (s *statuses) of(id string) conformance.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[id]
}
