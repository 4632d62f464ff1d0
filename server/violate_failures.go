package server

// failuresViolations break the rules of FLT: refused calls of the API (spec 7.1).
func failuresViolations() []violation {
	return []violation{}
}
