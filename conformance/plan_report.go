package conformance

// PlanReport says beforehand what a run would send, and what stays undecidable.
type PlanReport struct {
	Target      string         `json:"target"`
	Replicas    []string       `json:"replicas,omitempty"` // get calls in turn with the target
	Objects     []PlanObject   `json:"objects"`
	Speed       string         `json:"declared_speed"`
	Checks      []PlannedCheck `json:"checks"`
	Records     int            `json:"records"`                // at most
	Keys        []string       `json:"keys"`                   // what identifiers look like
	Undecidable []string       `json:"undecidable" redact:"-"` // MUSTs that cannot be decided with these settings
	Notes       []string       `json:"notes"`
}

// PlanObject is one object of the endpoint.
type PlanObject struct {
	Name       string   `json:"name"`
	Operations []string `json:"operations"`
	Identifier string   `json:"identifier"`
	Fields     int      `json:"fields"`
	Chosen     bool     `json:"chosen"`
	Cleanup    string   `json:"cleanup"` // delete batches, hook, none
}

// PlannedCheck is one check with what it would do.
type PlannedCheck struct {
	ID      string `json:"id" redact:"-"`
	Title   string `json:"title" redact:"-"`
	Level   Level  `json:"level" redact:"-"`
	Runs    bool   `json:"runs"`
	Reason  string `json:"reason,omitempty"`  // why it would not run, or what it waits for
	Decider string `json:"decider,omitempty"` // what would let it run
	Records int    `json:"records,omitempty"` // at most, over all chosen objects
}
