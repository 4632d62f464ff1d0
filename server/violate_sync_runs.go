package server

// syncRunsViolations break the rules of RUN: the resource of a sync run (spec 2.9).
func syncRunsViolations() []violation {
	return []violation{}
}
