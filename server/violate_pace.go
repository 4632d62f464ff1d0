package server

// paceViolations break the rules of PACE: speed, parallelism and the limit of a connection (spec 4.2, 8).
func paceViolations() []violation {
	return []violation{}
}
