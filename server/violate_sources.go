package server

// sourcesViolations break the rules of SRC: source types, models and topics (spec 2.10 to 2.12).
func sourcesViolations() []violation {
	return []violation{}
}
