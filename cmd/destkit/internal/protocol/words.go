package protocol

// What the page and the command say alike; the methods, their examples and the
// rules come from the OpenRPC document and the catalogue.

const diagram = ` your data         the service                   your endpoint     your system
┌─────────┐   ┌───────────────────────┐  POST   ┌─────────────┐   ┌─────────┐
│ tables, │   │ reads rows, compares, │────────►│ one URL,    │──►│         │
│ files,  │──►│ makes batches, waits, │ JSON-RPC│ six methods │   │ records │
│ topics  │   │ sends again           │◄────────│             │◄──│         │
└─────────┘   └───────────────────────┘ response└─────────────┘   └─────────┘
`

const sequence = ` A person tests or saves the connection
   service ── test_connection ──────► endpoint   can you take records now?
 A person sets up a sync, or the service refreshes what it has cached
   service ── list_objects ─────────► endpoint   what can be written to?
   service ── list_fields ──────────► endpoint   which fields, of which types?
   service ── supported_operations ─► endpoint   which writes does it allow?
 A sync run
   service ── get_sync_speed ───────► endpoint   how fast, how parallel?
   service ── sync_batch ───────────► endpoint ┐ one result for each record;
   service ── sync_batch ───────────► endpoint ├ several at once, until every
   service ── sync_batch ───────────► endpoint ┘ record has been sent
`

const introduction = `A custom destination is an HTTPS endpoint that you write. The service reads rows, works out what has changed, and calls your endpoint to write it into your system. The service calls, the endpoint responds; the endpoint never calls the service.`

const httpRequest = `POST /destination HTTP/1.1
Host: endpoint.example.com
Content-Type: application/json
Authorization: Bearer <AUTH_TOKEN>

`

const httpResponse = `HTTP/1.1 200 OK
Content-Type: application/json

`

const envelope = `The header Authorization is there when the connection has a token. The id of the response is that of the request, as a string. A response has result or error, never both. An error says that the whole call failed; the service shows its code and message to people and calls again later. What is wrong with one record of a batch is a result of that record and no error.`

// refusedRequest and refusedResponse are a call that fails as a whole.
const (
	refusedRequest  = `{"jsonrpc": "2.0", "method": "list_everything", "params": {}, "id": "2"}`
	refusedResponse = `{"jsonrpc": "2.0", "id": "2", "error": {"code": -32601, "message": "unknown method"}}`
)
