package server

// retriesViolations break the rules of RTRY: what is sent again (spec 7.2).
func retriesViolations() []violation {
	return []violation{}
}
