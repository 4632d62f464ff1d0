package server

// modesViolations break the rules of MOD: run modes and alert settings (spec 2.6, 2.8).
func modesViolations() []violation {
	return []violation{}
}
