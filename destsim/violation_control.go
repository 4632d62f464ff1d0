package destsim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// violationBoard holds the armed violations. Each is armed once while it stays on: its
// state, such as a count of calls, lasts as long.
type violationBoard struct {
	mu    sync.Mutex
	ids   []string // armed, in the order of arming
	seams map[string]seams
}

// ArmedViolation is a violation with whether it is armed.
type ArmedViolation struct {
	Violation
	Armed bool `json:"armed"`
}

// arm arms exactly the violations that are named. atStart permits those that act when a
// listener is opened.
func (s *Sim) arm(ids []string, atStart bool) error {
	b := &s.violations
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(ids) == 0 && len(b.ids) == 0 {
		return nil
	}
	all := violations()
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.ID
	}
	armed := map[string]seams{}
	var order []string
	for i, id := range ids {
		at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, id) })
		if at < 0 {
			return fmt.Errorf("violate[%d]: no violation %q%s", i, clip(id), didYouMean(id, names))
		}
		id = names[at]
		if _, twice := armed[id]; twice {
			continue
		}
		kept, on := b.seams[id]
		if !on {
			kept = all[at].arm()
		}
		if kept.tls != "" && !on && !atStart {
			return fmt.Errorf("violate[%d]: %s acts when the listener is opened; start the simulator with --violate %s", i, id, id)
		}
		armed[id], order = kept, append(order, id)
	}
	next := &chain{}
	for _, e := range s.extensions {
		next.add(e.seams)
	}
	for _, id := range order {
		next.add(armed[id])
	}
	b.ids, b.seams = order, armed
	s.seams.Store(next)
	return nil
}

// Arm breaks exactly the rules that are named from now on; none: the simulator keeps all
// rules again. An id that is not known, and one that acts only when a listener is opened,
// is an error and changes nothing.
func (s *Sim) Arm(ids ...string) error { return s.arm(ids, false) }

// Armed lists every violation and whether it is armed, by id.
func (s *Sim) Armed() []ArmedViolation {
	b := &s.violations
	b.mu.Lock()
	ids := slices.Clone(b.ids)
	b.mu.Unlock()
	all := Violations()
	list := make([]ArmedViolation, len(all))
	for i, v := range all {
		list[i] = ArmedViolation{v, slices.Contains(ids, v.ID)}
	}
	return list
}

// violationEndpoints are the control endpoints of violations.
func (s *Sim) violationEndpoints() []endpoint {
	return []endpoint{
		{"GET", "/_control/violations", "lists the rules that can be broken, and which of them are; ?armed=true those that are", give(func(r *http.Request) (any, error) {
			armed, err := flagOf(r.URL.Query(), "armed")
			list := s.Armed()
			if armed {
				list = slices.DeleteFunc(list, func(v ArmedViolation) bool { return !v.Armed })
			}
			return map[string]any{"violations": list}, err
		})},
		{"POST", "/_control/violations", `{"violate":["RES-002"]} breaks exactly these rules from now on, [] none`, take(func(q struct {
			Violate []string `json:"violate"`
		}) (any, error) {
			return okReply{OK: true}, s.arm(q.Violate, false)
		})},
	}
}

// armConfigured goes back to the violations of the configuration.
func (s *Sim) armConfigured() {
	// It was possible at the start, and what acts on the listener is still on.
	if err := s.arm(s.config.Violate, true); err != nil {
		panic(err)
	}
}
