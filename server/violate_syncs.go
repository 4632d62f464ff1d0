package server

// syncsViolations break the rules of SYN: the resource of a sync (spec 2.6).
func syncsViolations() []violation {
	shows := func(id, changes string, change func(map[string]any)) violation {
		return breaks(id, changes, seams{tell: func(a *apiAnswer) {
			if a.is("GET /syncs/*") {
				a.data(change)
			}
		}})
	}
	return []violation{
		shows("SYN-001", "the id of a sync is a string", func(m map[string]any) { m["id"] = asText(m["id"]) }),
		shows("SYN-001.2", "the status of a sync is a number", func(m map[string]any) { m["status"] = 1 }),
		shows("SYN-001.3", "created_at of a sync is in seconds", func(m map[string]any) { m["created_at"] = 1772616600 }),
		shows("SYN-001.4", "updated_at of a sync has no time zone", func(m map[string]any) { m["updated_at"] = "2026-03-04T09:30:00" }),
	}
}
