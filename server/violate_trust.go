package server

// trustViolations break the rules of CERT: certificates and tokens of destinations (spec 5.2).
func trustViolations() []violation {
	return []violation{}
}
