package server

// syncsViolations break the rules of SYN: the resource of a sync (spec 2.6).
func syncsViolations() []violation {
	return []violation{}
}
