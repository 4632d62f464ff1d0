package server

// alertsViolations break the rules of ALRT: alerts (spec 2.8, 6).
func alertsViolations() []violation {
	return []violation{}
}
