package server

// lifeViolations break the rules of LIFE: schedules, pauses and the life of a run (spec 2.6, 3).
func lifeViolations() []violation {
	return []violation{}
}
