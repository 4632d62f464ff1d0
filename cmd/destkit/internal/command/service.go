package command

// Environment variables of the service that hold secrets; none of them is ever
// printed.
const (
	AccessTokenVariable  = "DESTKIT_PERSONAL_ACCESS_TOKEN"
	WorkspaceKeyVariable = "DESTKIT_WORKSPACE_API_KEY"
	MasterKeyVariable    = "DESTKIT_MASTER_KEY"
)
