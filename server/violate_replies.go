package server

// repliesViolations break the rules of RPLY: replies that break the protocol (spec 7.2).
func repliesViolations() []violation {
	return []violation{}
}
