package destination

import (
	"net/http"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// envelopeExchanges: the JSON-RPC envelope of the replies.
var envelopeExchanges = map[string]exchange{
	"RPC-001": {bad: []talk{
		{says: says{"get_sync_speed": body(`<html><body>It works!</body></html>`)}, finds: "It works!"},
		{says: says{"get_sync_speed": body(`{"jsonrpc":"2.0","id":$id,"result":{}}{"jsonrpc":"2.0","id":$id,"result":{}}`)}, finds: "nothing before or after"},
		{says: says{"get_sync_speed": body("\ufeff" + `{"jsonrpc":"2.0","id":$id,"result":{}}`)}, finds: "one JSON value"},
		{says: says{"get_sync_speed": gives(`{"label":"Caf` + "\xe9" + `"}`)}, finds: "not valid UTF-8"},
	}},
	"RPC-002": {bad: []talk{
		{says: says{"get_sync_speed": body(`{"jsonrpc":2.0,"id":$id,"result":{}}`)}, finds: `"jsonrpc":2.0`},
		{says: says{"get_sync_speed": body(`{"jsonrpc":"1.0","id":$id,"result":{}}`)}, finds: `"jsonrpc":"1.0"`},
		{says: says{"unknown": body(`{"id":$id,"error":{"code":-32601,"message":"Method not found"}}`)}, finds: `"jsonrpc":"2.0" as a string`},
	}},
	"RPC-003": {bad: []talk{
		{says: says{"test_connection": body(`{"jsonrpc":"2.0","id":"1","result":{"success":true}}`)}, finds: `id "1"`},
		{says: says{"test_connection": body(`{"jsonrpc":"2.0","id":7,"result":{"success":true}}`)}, finds: "id 7, which is no string"},
		{says: says{"test_connection": body(`{"jsonrpc":"2.0","result":{"success":true}}`)}, finds: "no id"},
		{says: says{"test_connection": changedID(strings.TrimSpace)}, finds: `id "padded"`},
		{says: says{"test_connection": changedID(func(id string) string { return id[:min(255, len(id))] })}, finds: "300 characters were sent, 255 came back"},
		{says: says{"test_connection": changedID(normalise)}, finds: "2 characters were sent, 1 came back"},
	}},
	"RPC-004": {bad: []talk{
		{says: says{"get_sync_speed": body(`{"jsonrpc":"2.0","id":$id,"result":{},"error":null}`)}, finds: `a null "error" beside it`},
		{says: says{"unknown": body(`{"jsonrpc":"2.0","id":$id,"result":{},"error":{"code":-32601,"message":"no"}}`)}, finds: "never both"},
	}},
	"RPC-005": {bad: []talk{
		{says: says{"get_sync_speed": body(`{}`)}, finds: `a member "result" or "error"`},
		{says: says{"get_sync_speed": body(`{"jsonrpc":"2.0","id":$id}`)}, finds: `a member "result" or "error"`},
	}},
	"RPC-006": {bad: []talk{
		{says: says{"list_objects": gives(`[]`)}, finds: `"result" as a JSON object`},
		{says: says{"list_objects": gives(`"{}"`)}, finds: `"result" as a JSON object`},
		{says: says{"list_objects": gives(`null`)}, finds: `"result" as a JSON object`},
	}},
	"RPC-007": {bad: []talk{
		{says: says{"unknown": body(`{"jsonrpc":"2.0","id":$id,"error":"Method not found"}`)}, finds: `"error" as an object`},
		{says: says{"unknown": body(`{"jsonrpc":"2.0","id":$id,"error":{"code":"-32601","message":"no"}}`)}, finds: "the code is no integer"},
		{says: says{"unknown": body(`{"jsonrpc":"2.0","id":$id,"error":{"code":-32601}}`)}, finds: "the message is missing"},
	}},
	"RPC-008": {bad: []talk{
		{says: says{"unknown": gives(`{"success":false}`)}, finds: `"success":false`},
		{says: says{"unknown": page(500, "<html>Internal Server Error</html>")}, finds: "HTTP 500"},
		{says: says{"unknown": body(`{"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"no"}}`)}, finds: "with the id of the request"},
	}},
	"RPC-009": {bad: []talk{{says: says{"unknown": failure(-32000, "Method not found")}, finds: "the code -32601"}}},
	"RPC-014": {bad: []talk{{says: says{"list_objects": body(`[{"jsonrpc":"2.0","id":$id,"result":{"objects":[]}}]`)}, finds: "a JSON object"}}},
	"RPC-015": {bad: []talk{{
		says:  says{"get_sync_speed": body(`{"jsonrpc":"2.0","id":$id,"result":{"maximum_batch_size":1},"result":{"maximum_batch_size":1000}}`)},
		finds: "twice: ",
	}}},
	"RPC-017": {good: []talk{
		{notes: "replies have no extra top-level keys"},
		{says: says{"list_objects": body(`{"jsonrpc":"2.0","method":"list_objects","id":$id,"result":` + bothObjects + `}`)}, notes: "ignores: method"},
	}},
}

// changedID answers test_connection with an id that was touched.
func changedID(change func(string) string) answer {
	return func(a *asked) *wire.Reply {
		a.rawID = string(quote(change(a.ID)))
		return gives(`{"success":true}`)(a)
	}
}

// formExchanges: odd forms of a request.
var formExchanges = map[string]exchange{
	"RPC-010": {bad: []talk{
		{says: says{"no JSON": broken(wire.KindTimeout)}, finds: "the code -32700"},
		{says: says{"no JSON": broken(wire.KindClosed)}, finds: "the code -32700"},
		{says: says{"no JSON": gives(`{"success":true}`)}, finds: `"success":true`},
		{says: says{"no JSON": body(`{"jsonrpc":"2.0","id":"7","error":{"code":-32700,"message":"no"}}`)}, finds: `"id":null`},
	}},
	"RPC-011": {bad: []talk{
		{says: says{"no envelope": gives(`{"success":true}`)}, finds: "the code -32600"},
		{says: says{"no envelope": failure(-32601, "no")}, finds: "the code -32600"},
	}},
	"RPC-012": {bad: []talk{
		{says: says{"list_fields": gives(`{"fields":[]}`)}, finds: "a JSON-RPC error with the id"},
		{says: says{"list_fields": broken(wire.KindClosed)}, finds: "closed"},
	}},
	"RPC-013": {bad: []talk{{says: says{"list_objects": failure(-32602, "unknown member zz_unknown")}, finds: "unknown member zz_unknown"}}},
	"RPC-016": {bad: []talk{{
		says: says{"list_objects": when(func(a *asked) bool { return strings.Contains(string(a.Body), `"method":"list_objects"`) },
			gives(bothObjects), failure(-32601, "Method not found"))},
		finds: "Method not found",
	}}},
	"RPC-018": {good: []talk{{
		says: says{
			"array": body(`[{"jsonrpc":"2.0","id":"7","result":{"success":true}}]`),
			"no id": page(204, ""),
		},
		notes: ": HTTP 204 with an empty body",
	}, {
		says:  says{"array": broken(wire.KindClosed), "no id": failure(-32600, "Invalid Request")},
		notes: "the server closed the connection without responding",
	}}},
	"RPC-019": {bad: []talk{{says: says{"unknown": gives(bothObjects)}, finds: "no result"}}},
}

// httpExchanges: the HTTP responses.
var httpExchanges = map[string]exchange{
	"HTTP-001": {
		good: []talk{{}, {says: says{"get_sync_speed": failure(-32000, "down").status(500)}}},
		bad:  []talk{{says: says{"get_sync_speed": gives(usualSpeed).status(404)}, finds: "status 404 with a result"}},
	},
	"HTTP-002": {
		good: []talk{{says: says{"list_objects": gives(bothObjects).header("Content-Type", "application/json; charset=utf-8")}}},
		bad: []talk{
			{says: says{"list_objects": gives(bothObjects).header("Content-Type", "text/html")}, finds: "text/html"},
			{says: says{"unknown": failure(-32601, "no").header("Content-Type", "")}, finds: "no Content-Type"},
		},
	},
	"HTTP-003": {
		good: []talk{{}, {says: says{"get_sync_speed": gives(usualSpeed).status(202)}}},
		bad: []talk{
			{says: says{"get_sync_speed": page(202, "")}, finds: "status 202 with an empty body"},
			{says: says{"get_sync_speed": page(202, `{"status":"accepted"}`)}, finds: "accepted"},
			{says: says{"get_sync_speed": page(200, "")}, finds: "status 200 with an empty body"},
		},
	},
	"HTTP-004": {bad: []talk{
		{says: says{"get_sync_speed": movedTo("http://destination.example/v1?key=" + scriptSecret)}, finds: "status 308 to http://destination.example/v1"},
		{says: says{"get_sync_speed": movedTo("https://other.example/")}, finds: "status 308 to https://other.example/"},
	}},
	"HTTP-005": {bad: []talk{
		{says: says{"GET": gives(`{"success":true}`)}, finds: "no result"},
		{says: says{"PUT": gives(`{"success":true}`)}, finds: "no result"},
	}},
	"HTTP-006": {bad: []talk{
		{says: says{"get_sync_speed": gives(usualSpeed).ends(wire.KindTruncated)}, finds: "truncated"},
		{says: says{"get_sync_speed": gives(usualSpeed).ends(wire.KindMalformed)}, finds: "malformed"},
		{says: says{"get_sync_speed": gives(usualSpeed).with(func(r *wire.Reply) { r.Surplus = 16 })}, finds: "16 bytes came after"},
	}},
	"HTTP-007": {
		good: []talk{{says: says{"list_objects": gives(bothObjects).header("Content-Encoding", "gzip")}}}, // decoded by the client
		bad:  []talk{{says: says{"list_objects": gives(bothObjects).ends(wire.KindEncoding)}, finds: "encoded as its Content-Encoding says"}},
	},
	"HTTP-008": {
		good: []talk{{}, {
			says:  says{"list_objects": inTurn(gives(bothObjects).with(func(r *wire.Reply) { r.CloseAnnounced = true }), broken(wire.KindClosed))},
			notes: "announces that it closes",
		}},
		bad: []talk{{says: says{"list_objects": inTurn(gives(bothObjects), broken(wire.KindClosed))}, finds: "closed"}},
	},
	"HTTP-009": {bad: []talk{
		{
			says: says{"list_objects": when(func(a *asked) bool { return a.Chunked },
				page(411, "Length Required"), gives(bothObjects))},
			finds: "Length Required",
		},
		{
			says: says{"list_objects": when(func(a *asked) bool { return strings.Contains(a.Header.Get("Content-Type"), "charset") },
				page(415, "Unsupported Media Type"), gives(bothObjects))},
			finds: "Unsupported Media Type",
		},
		{
			says: says{"list_objects": when(func(a *asked) bool { return a.ExpectContinue },
				page(417, "Expectation Failed"), gives(bothObjects))},
			finds: "Expectation Failed",
		},
	}},
	"HTTP-010": {
		good: []talk{{says: says{"list_fields": failure(-32602, "Invalid params").status(500)}}},
		bad:  []talk{{says: says{"list_fields": page(500, "Internal Server Error")}, finds: "Internal Server Error"}},
	},
	"HTTP-011": {bad: []talk{
		{says: says{"list_objects": gives(bothObjects).header("Age", "31")}, finds: "Age: 31"},
		{says: says{"list_objects": gives(bothObjects).header("X-Cache", "HIT from edge")}, finds: "X-Cache: HIT"},
	}},
}

// movedTo redirects a call of the configured URL.
func movedTo(location string) answer {
	return when(func(a *asked) bool { return a.URL == "" },
		page(http.StatusPermanentRedirect, "").header("Location", location), gives(usualSpeed))
}

const unauthorized = "Unauthorized"

// authExchanges: how the endpoint knows its caller.
var authExchanges = map[string]exchange{
	"AUTH-001": {
		good: []talk{{}, {says: says{"get_sync_speed": failure(-32000, "database down")}}}, // an error about something else
		bad: []talk{
			{says: says{"list_fields": failure(-32001, unauthorized)}, finds: "not the one that a stranger gets"},
			{says: says{"sync_batch": page(403, "Forbidden")}, finds: "HTTP 403"},
		},
	},
	"AUTH-002": {bad: []talk{{says: says{"stranger:list_objects": gives(bothObjects)}, finds: "a refusal"}}},
	"AUTH-003": {bad: []talk{
		{says: says{"stranger": when(bearer("Bearer "+scriptToken+"x"), gives(bothObjects), failure(-32001, unauthorized))}, finds: "a refusal"},
		{says: says{"stranger": when(bearer("Bearer THE-TOKEN-a1"), gives(bothObjects), failure(-32001, unauthorized))}, finds: "a refusal"},
		{says: says{"stranger": when(bearer("Bearer"), gives(bothObjects), failure(-32001, unauthorized))}, finds: "a refusal"},
	}},
	"AUTH-004": {bad: []talk{{
		says:  says{"stranger:list_objects": gives(bothObjects), "stranger:sync_batch": results(acknowledged)},
		finds: "a refusal",
	}}},
	"AUTH-005": {bad: []talk{{
		says: says{"stranger": when(func(a *asked) bool { return strings.HasSuffix(a.URL, "key="+scriptSecret) },
			gives(bothObjects), failure(-32001, unauthorized))},
		finds: "a refusal",
	}}},
	"AUTH-006": {
		good: []talk{{}, {says: says{"stranger:test_connection": gives(`{"success":false,"error_message":"who are you?"}`)}}},
		bad:  []talk{{says: says{"stranger:list_objects": gives(`{"success":false}`)}, finds: "a JSON-RPC error, or status 401 or 403"}},
	},
	"AUTH-007": {bad: []talk{
		{says: says{"stranger": failure(-32001, "bad header: Bearer "+scriptToken+"x")}, finds: "the token stands in the body"},
		{says: says{"stranger": failure(-32001, unauthorized).header("WWW-Authenticate", `Bearer got="`+scriptToken+`x"`)}, finds: "header WWW-Authenticate"},
		{says: says{"list_objects": gives(`{"objects":[],"debug":"/rpc?key=` + scriptSecret + `"}`)}, finds: "the URL secret stands in the body"},
	}},
	"AUTH-008": {
		good: []talk{{holds: []stored{nothing}}},
		bad:  []talk{{holds: []stored{asSent}, finds: "it is there"}},
	},
	"AUTH-009": {
		good: []talk{{hook: newToken}},
		bad: []talk{
			{hook: newToken, says: says{"stranger": when(bearer("Bearer "+scriptToken), gives(bothObjects), failure(-32001, unauthorized))}, finds: "a refusal"},
			{hook: newToken, says: says{"list_objects": failure(-32001, unauthorized)}, finds: "an answer for the new token"},
		},
	},
}

var newToken = map[string]string{"rotate_token": `{"ok":true,"token":"` + freshToken + `"}`}
