package server

// objectsViolations break the rules of DOB: destination objects and fields (spec 2.3 to 2.5).
func objectsViolations() []violation {
	return []violation{}
}
