package zoo_test

var causesOfExpress = map[string]explanation{
	"Node-SQLite/body-limit-at-full-size":      {right: "413|body.{0,20}limit|limit for the body|limit of (the|a) (body|framework)|too large|request size"},
	"Node-SQLite/transactions-interleave":      {right: "transaction|one connection|connection is shared"},
	"Node-SQLite/page-502-for-unknown-methods": {right: "page|framework|platform|502"},
	"Node-SQLite/delete-not-awaited":           {right: "not awaited|later|asynchron|after the reply"},
	"Node-SQLite/error-object-for-message":     {right: "message|object|text|empty"},
}
