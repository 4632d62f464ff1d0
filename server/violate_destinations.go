package server

// destinationsViolations break the rules of DST: connections to destinations (spec 2.2).
func destinationsViolations() []violation {
	return []violation{}
}
