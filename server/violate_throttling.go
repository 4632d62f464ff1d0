package server

// throttlingViolations break the rules of THR: refusals for too many requests, and timeouts (spec 8).
func throttlingViolations() []violation {
	return []violation{}
}
