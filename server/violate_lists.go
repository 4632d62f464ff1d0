package server

// listsViolations break the rules of LST: the list envelope and its limits (spec 2.1, 8).
func listsViolations() []violation {
	return []violation{}
}
