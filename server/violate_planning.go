package server

// planningViolations break the rules of PLAN: planning and caching (spec 4.2).
func planningViolations() []violation {
	return []violation{}
}
