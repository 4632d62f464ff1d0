package destination

import (
	"net/http"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// envelopeExchanges: the JSON-RPC envelope of the replies.
var envelopeExchanges = map[string]exchange{
	"RPC-008": {bad: []talk{
		{says: says{"unknown": body(`{"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"no"}}`)}, finds: "with the id of the request"},
	}},
	"RPC-017": {good: []talk{
		{notes: "replies have no extra top-level keys"},
		{says: says{"list_objects": body(`{"jsonrpc":"2.0","method":"list_objects","id":$id,"result":` + bothObjects + `}`)}, notes: "ignores: method"},
	}},
}

// formExchanges: odd forms of a request.
var formExchanges = map[string]exchange{
	"RPC-010": {bad: []talk{
		{says: says{"no JSON": body(`{"jsonrpc":"2.0","id":"7","error":{"code":-32700,"message":"no"}}`)}, finds: `"id":null`},
	}},
	"RPC-011": {bad: []talk{
		{says: says{"no envelope": failure(-32601, "no")}, finds: "the code -32600"},
	}},
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
}

// httpExchanges: the HTTP responses.
var httpExchanges = map[string]exchange{
	"HTTP-001": {
		good: []talk{{says: says{"get_sync_speed": failure(-32000, "down").status(500)}}},
	},
	"HTTP-002": {
		good: []talk{{says: says{"list_objects": gives(bothObjects).header("Content-Type", "application/json; charset=utf-8")}}},
	},
	"HTTP-003": {
		good: []talk{{says: says{"get_sync_speed": gives(usualSpeed).status(202)}}},
		bad: []talk{
			{says: says{"get_sync_speed": page(200, "")}, finds: "status 200 with an empty body"},
		},
	},
	"HTTP-004": {bad: []talk{
		{says: says{"get_sync_speed": movedTo("https://other.example/")}, finds: "status 308 to https://other.example/"},
	}},
	"HTTP-005": {bad: []talk{
		{says: says{"PUT": gives(`{"success":true}`)}, finds: "no result"},
	}},
	"HTTP-006": {bad: []talk{
		{says: says{"get_sync_speed": gives(usualSpeed).ends(wire.KindMalformed)}, finds: "malformed"},
		{says: says{"get_sync_speed": gives(usualSpeed).with(func(r *wire.Reply) { r.Surplus = 16 })}, finds: "16 bytes came after"},
	}},
	"HTTP-007": {
		good: []talk{{says: says{"list_objects": gives(bothObjects).header("Content-Encoding", "gzip")}}}, // decoded by the client
	},
	"HTTP-008": {
		good: []talk{{
			says:  says{"list_objects": inTurn(gives(bothObjects).with(func(r *wire.Reply) { r.CloseAnnounced = true }), broken(wire.KindClosed))},
			notes: "announces that it closes",
		}},
	},
	"HTTP-009": {bad: []talk{
		{
			says: says{"list_objects": when(func(a *asked) bool { return a.ExpectContinue },
				page(417, "Expectation Failed"), gives(bothObjects))},
			finds: "Expectation Failed",
		},
	}},
	"HTTP-011": {bad: []talk{{says: says{"list_objects": gives(bothObjects).header("X-Cache", "HIT from edge")}, finds: "X-Cache: HIT"}}},
	"TLS-007": {
		good: []talk{{says: says{"plain": page(301, "").header("Location", "https://destination.example/rpc")}}},
		bad: []talk{
			{says: says{"plain": failure(-32001, "Unauthorized")}, finds: "no protocol over plain http"},
			{says: says{"plain": broken(wire.KindNone).with(func(r *wire.Reply) {
				r.Status, r.Err, r.Body = 200, nil, []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}`)
			})}, finds: "no protocol over plain http"},
		},
	},
	"HTTP-010": {
		good: []talk{{says: says{"list_fields": failure(-32602, "Invalid params").status(500)}}},
	},
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
		good: []talk{{says: says{"get_sync_speed": failure(-32000, "database down")}}}, // an error about something else
		bad: []talk{
			{says: says{"sync_batch": page(403, "Forbidden")}, finds: "HTTP 403"},
		},
	},
	"AUTH-003": {bad: []talk{
		{says: says{"stranger": when(bearer("Bearer"), gives(bothObjects), failure(-32001, unauthorized))}, finds: "a refusal"},
	}},
	"AUTH-006": {
		good: []talk{{says: says{"stranger:test_connection": gives(`{"success":false,"error_message":"who are you?"}`)}}},
	},
	"AUTH-007": {bad: []talk{
		{says: says{"stranger": failure(-32001, unauthorized).header("WWW-Authenticate", `Bearer got="`+scriptToken+`x"`)}, finds: "header WWW-Authenticate"},
		{says: says{"list_objects": gives(`{"objects":[],"debug":"/rpc?key=` + scriptSecret + `"}`)}, finds: "the URL secret stands in the body"},
	}},
	"AUTH-008": {
		good: []talk{{holds: []stored{nothing}}},
	},
	"AUTH-009": {
		good: []talk{{hook: newToken}},
		bad: []talk{
			{hook: newToken, says: says{"list_objects": failure(-32001, unauthorized)}, finds: "an answer for the new token"},
		},
	},
}

var newToken = map[string]string{"rotate_token": `{"ok":true,"token":"` + freshToken + `"}`}
