package service

import "github.com/destkit/destkit/conformance"

// organizationSteps are for ORG: workspaces, users and invitations (spec 2.13, 2.14).
func organizationSteps() []conformance.Step {
	return []conformance.Step{}
}
