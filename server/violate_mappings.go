package server

// mappingsViolations break the rules of MAP: mappings (spec 2.7).
func mappingsViolations() []violation {
	return []violation{}
}
