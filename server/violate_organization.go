package server

// organizationViolations break the rules of ORG: workspaces, users and invitations (spec 2.13, 2.14).
func organizationViolations() []violation {
	return []violation{}
}
