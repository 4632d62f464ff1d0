package server

// versionsViolations break the rules of DEP: versions and what is deprecated (spec 9).
func versionsViolations() []violation {
	return []violation{}
}
