package server

// operationsViolations break the rules of OPER: operations and strategies end to end (spec 4.2, 2.6).
func operationsViolations() []violation {
	return []violation{}
}
