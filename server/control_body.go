package server

// takesBody are the routes of the control API that read a body. All others refuse
// one: what is sent there was meant for something else.
var takesBody = map[string]bool{
	"POST /audit": true, "POST /clock": true, "POST /connectors": true, "POST /faults": true, "POST /fork": true,
	"POST /invitations/{id}/claim": true, "POST /journal": true, "POST /organizations": true, "POST /restore": true,
	"POST /seed": true, "POST /sources/{id}/execute": true, "POST /syncs/{id}/plan": true, "POST /topics/{id}/messages": true,
	"PATCH /topics/{id}": true, "POST /triggers/dbt_cloud": true, "POST /triggers/fivetran": true, "POST /trust": true,
	"PATCH /users/{id}": true, "POST /workspace_invitations/{id}/claim": true,
}
