package destination

import (
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// operationExchanges: what planning declares is what a batch does.
var operationExchanges = map[string]exchange{
	"OPS-005": {
		object: "order",
		good: []talk{
			{says: says{"sync_batch:update": failure(-32602, "update is not supported")}},
			{says: says{"sync_batch:update": results(refusal)}},
		},
	},
	"FLD-013": {
		good: []talk{{says: says{"sync_batch by last_name": failure(-32602, "last_name is no identifier")}}},
	},
}

// resultExchanges: what the record results look like.
var resultExchanges = map[string]exchange{
	"RES-004": {
		good: []talk{{ // a stranger is RES-003's
			says: says{"sync_batch": results(acknowledged, acknowledged, acknowledged, acknowledged+`,{"identifier":"somebody@else.io","success":true}`)},
		}},
		bad: []talk{
			{says: says{"sync_batch": results(`{"success":true}`, acknowledged)}, finds: `an "identifier" in every record result`},
		},
	},
	"RES-006": {
		good: []talk{{says: says{"sync_batch:update": results(refusal)}}},
		bad: []talk{
			{status: conformance.Inconclusive, finds: "nothing failed"},
			{says: says{"sync_batch:update": results(`{"identifier":$id,"success":false,"error_message":" "}`)}, finds: `"error_message" as a non-empty string`},
		},
	},
	"RES-007": {good: []talk{
		{notes: "no success carries a message"},
		{says: says{"sync_batch": results(`{"identifier":$id,"success":true,"error_message":null}`)}, notes: "a success carries error_message null"},
	}},
}

// repeatExchanges: the same batch again, alone, first or after others.
var repeatExchanges = map[string]exchange{
	"DUP-001": {bad: []talk{
		{says: says{"sync_batch": inTurn(results(acknowledged), broken(wire.KindTimeout))}, status: conformance.Inconclusive, finds: "was not answered within"},
	}},
	"DUP-004": {good: []talk{
		{holds: []stored{asSent}, notes: "the last arrival counts"},
		{holds: []stored{but("last_name", `"Conformance 51 last_name"`)}, notes: "leaves the newer values"},
	}},
	"STA-002": {
		good: []talk{{blind: true}},
	},
	"STA-003": {
		good: []talk{{blind: true}},
	},
	"STA-006": {
		good: []talk{{says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}}},
	},
	"SEM-015": {
		good: []talk{
			{says: says{"sync_batch:update": results(refusal), "sync_batch:insert": inTurn(results(acknowledged), results(refusal))}},
			{notes: "update reports a skip as success"},
		},
		bad: []talk{
			{says: says{"sync_batch": failure(-32000, "down")}, status: conformance.Inconclusive, finds: "no record was skipped"},
		},
	},
	"TIM-002": {bad: []talk{
		{says: says{"sync_batch": broken(wire.KindTimeout).after(30 * second)}, finds: "nothing complete after 30s"},
	}},
}
