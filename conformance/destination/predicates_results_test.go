package destination

import (
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// operationExchanges: what planning declares is what a batch does.
var operationExchanges = map[string]exchange{
	"OPS-004": {bad: []talk{
		{says: says{"sync_batch:update": gives(`{"record_results":[]}`)}, finds: `"record_results":[]`},
		{says: says{"sync_batch:update": failure(-32601, "update is not implemented")}, finds: "update is not implemented"},
	}},
	"OPS-005": {
		object: "order",
		good: []talk{
			{says: says{"sync_batch:update": failure(-32602, "update is not supported")}},
			{says: says{"sync_batch:update": results(refusal)}},
		},
		bad: []talk{{finds: "a failure, or an error for the batch"}},
	},
	"OPS-006": {bad: []talk{
		{says: says{"sync_batch:delete": failure(-32602, "unknown operation delete")}, finds: "unknown operation delete"},
		{says: says{"sync_batch:delete": results(refusal)}, status: conformance.Inconclusive, finds: "no record was accepted; the endpoint says: record not present"},
	}},
	"FLD-012": {bad: []talk{{
		says:  says{"sync_batch by contact_id": failure(-32602, "unknown identifier contact_id")},
		finds: "unknown identifier contact_id",
	}}},
	"FLD-013": {
		good: []talk{{says: says{"sync_batch by last_name": failure(-32602, "last_name is no identifier")}}},
		bad:  []talk{{finds: `"success":true`}},
	},
	"SPD-006": {bad: []talk{{says: says{"sync_batch": page(413, "Payload Too Large")}, finds: "HTTP 413 Payload Too Large"}}},
	"SPD-007": {bad: []talk{{
		says:  says{"sync_batch": first(2, results(acknowledged), failure(-32000, "too many connections"))},
		finds: "too many connections",
	}}},
	"DAT-012": {bad: []talk{{
		says: says{"sync_batch": when(func(a *asked) bool { return len(a.Body) > 100_000 },
			page(413, "request entity too large"), results(acknowledged))},
		finds: "HTTP 413",
	}}},
}

// resultExchanges: what the record results look like.
var resultExchanges = map[string]exchange{
	"RES-001": {bad: []talk{
		{says: says{"sync_batch": gives(`{"record_results":{"a":{"success":true}}}`)}, finds: `"record_results" as an array`},
		{says: says{"sync_batch": gives(`{"success":true}`)}, finds: `"record_results" as an array`},
	}},
	"RES-002": {bad: []talk{
		{says: says{"sync_batch:upsert": results(acknowledged, acknowledged, missing)}, finds: "2 results came back; missing \"zz-conf-00ab12-RES-002-3@example.com\""},
		{says: says{"sync_batch:update": results(acknowledged+`,`+refusal, acknowledged)}, finds: `one status for "zz-conf-00ab12-RES-002-`},
	}},
	"RES-003": {bad: []talk{
		{says: says{"sync_batch": results(acknowledged + `,{"identifier":"somebody@else.io","success":true}`)}, finds: `a result for "somebody@else.io"`},
		{says: says{"sync_batch": results(acknowledged+`,`+acknowledged, acknowledged)}, finds: "2 results for"},
	}},
	"RES-004": {
		good: []talk{{}, { // a stranger is RES-003's
			says: says{"sync_batch": results(acknowledged, acknowledged, acknowledged, acknowledged+`,{"identifier":"somebody@else.io","success":true}`)},
		}},
		bad: []talk{
			{says: says{"sync_batch": results(`{"identifier":"zz-conf-00ab12-res-004-1@example.com mixed case","success":true}`, acknowledged)}, finds: "came back as \"zz-conf-00ab12-res-004-1@example.com mixed case\""},
			{says: says{"sync_batch": results(acknowledged, `{"identifier":"zz-conf-00ab12-RES-004-1@example.com spaces","success":true}`, acknowledged)}, finds: "came back as \"zz-conf-00ab12-RES-004-1@example.com spaces\""},
			{says: says{"sync_batch": results(acknowledged, acknowledged, `{"identifier":"zz-conf-00ab12-RES-004-1@example.com-`+"\u00e9"+`","success":true}`, acknowledged)}, finds: "came back as \"zz-conf-00ab12-RES-004-1@example.com-\u00e9\""},
			{says: says{"sync_batch": results(`{"success":true}`, acknowledged)}, finds: `an "identifier" in every record result`},
		},
	},
	"RES-005": {bad: []talk{
		{says: says{"sync_batch": results(`{"identifier":$id,"success":1}`)}, finds: `"success" as true or false`},
		{says: says{"sync_batch": results(acknowledged, `{"identifier":$id,"success":"ok"}`)}, finds: `"success":"ok"`},
		{says: says{"sync_batch": results(`{"identifier":$id}`)}, finds: `"success" as true or false`},
	}},
	"RES-006": {
		good: []talk{{says: says{"sync_batch:update": results(refusal)}}},
		bad: []talk{
			{status: conformance.Inconclusive, finds: "nothing failed"},
			{says: says{"sync_batch:update": results(`{"identifier":$id,"success":false}`)}, finds: `"error_message" as a non-empty string`},
			{says: says{"sync_batch:update": results(`{"identifier":$id,"success":false,"error_message":{"code":7}}`)}, finds: `{"code":7}`},
			{says: says{"sync_batch:update": results(`{"identifier":$id,"success":false,"error_message":" "}`)}, finds: `"error_message" as a non-empty string`},
		},
	},
	"RES-007": {good: []talk{
		{notes: "no success carries a message"},
		{says: says{"sync_batch": results(`{"identifier":$id,"success":true,"error_message":null}`)}, notes: "a success carries error_message null"},
	}},
	"RES-011": {bad: []talk{{says: says{"sync_batch of none": failure(-32603, "index out of range")}, finds: "index out of range"}}},
	"RES-012": {
		bad: []talk{
			{says: says{"sync_batch:update": failure(-32603, "bulk needs two rows")}, finds: "bulk needs two rows"},
			{says: says{"sync_batch:update": results(refusal)}, status: conformance.Inconclusive, finds: "no record was accepted"}, // OPS-007's
		},
	},
	"RES-015": {bad: []talk{
		{says: says{"sync_batch": failure(-32603, "cannot affect row a second time")}, finds: "cannot affect row a second time"},
		{says: says{"sync_batch": page(500, "Internal Server Error")}, finds: "HTTP 500"},
	}},
	"RES-017": {bad: []talk{{
		says:  says{"sync_batch by contact_id": results(`{"identifier":"$id","success":true}`)},
		finds: "it came back as the string",
	}}},
}

// repeatExchanges: the same batch again, alone, first or after others.
var repeatExchanges = map[string]exchange{
	"DUP-001": {bad: []talk{
		{says: says{"sync_batch": inTurn(results(acknowledged), failure(-32000, "unique violation"))}, finds: "unique violation"},
		{says: says{"sync_batch": inTurn(results(acknowledged), gives(`{"record_results":[]}`))}, finds: "a result for each record"},
		{says: says{"sync_batch": inTurn(results(acknowledged), broken(wire.KindTimeout))}, status: conformance.Inconclusive, finds: "was not answered within"},
	}},
	"DUP-002": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{twoCopies}, finds: "2 copies"},
			{holds: []stored{nothing}, finds: "it is not there"},
			{blind: true, status: conformance.NotRun, finds: "only a read-back"},
		},
	},
	"DUP-003": {bad: []talk{{
		says:  says{"sync_batch": first(2, results(acknowledged), results(refusal))},
		finds: "failure when it is sent alone",
	}}},
	"DUP-004": {good: []talk{
		{holds: []stored{asSent}, notes: "the last arrival counts"},
		{holds: []stored{but("last_name", `"Conformance 51 last_name"`)}, notes: "leaves the newer values"},
	}},
	"STA-002": {
		good: []talk{{holds: []stored{asSent}}, {blind: true}},
		bad: []talk{
			{says: says{"sync_batch": failure(-32000, "call list_fields first")}, finds: "call list_fields first"},
			{holds: []stored{nothing}, finds: "7 of 7 acknowledged records are missing"},
			{holds: []stored{asSent, nothing, asSent}, finds: `the acknowledged record "zz-conf-00ab12-STA-002-2@example.com"`},
			{says: says{"sync_batch": results(refusal)}, status: conformance.Inconclusive, finds: "no record was accepted; the endpoint says"},
			{says: says{"sync_batch": results(refusal)}, blind: true, status: conformance.Inconclusive, finds: "no record was accepted"},
		},
	},
	"STA-003": {
		good: []talk{{holds: []stored{asSent}}, {blind: true}},
		bad: []talk{
			{says: says{"sync_batch": results(`{"identifier":null,"success":true}`)}, finds: "missing \"zz-conf-00ab12-STA-003-1@example.com\""},
			{holds: []stored{nothing}, finds: `the acknowledged record "zz-conf-00ab12-STA-003-1@example.com"`}, // written into the object of the plan before
			{says: says{"sync_batch": results(refusal)}, status: conformance.Inconclusive, finds: "no record was accepted; the endpoint says"},
			{says: says{"sync_batch": results(refusal)}, blind: true, status: conformance.Inconclusive, finds: "no record was accepted"},
		},
	},
	"STA-004": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{nothing}, finds: "it is not there"}},
	},
	"STA-006": {
		good: []talk{{says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}}},
		bad: []talk{
			{says: says{"sync_batch:update": results(refusal)}, finds: "success for"},
			{says: says{"sync_batch:update": results(refusal), "sync_batch:upsert": results(refusal)}, status: conformance.Inconclusive, finds: "was not acknowledged when it was created"},
		},
	},
	"SEM-015": {
		good: []talk{
			{says: says{"sync_batch:update": results(refusal), "sync_batch:insert": inTurn(results(acknowledged), results(refusal))}},
			{notes: "update reports a skip as success"},
		},
		bad: []talk{
			{says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}, finds: "every skip of update as failure"},
			{says: says{"sync_batch:insert": inTurn(results(acknowledged), results(acknowledged), results(refusal))}, finds: "every skip of insert as success"},
			{says: says{"sync_batch": failure(-32000, "down")}, status: conformance.Inconclusive, finds: "no record was skipped"},
		},
	},
	"TIM-002": {bad: []talk{
		{says: says{"sync_batch": results(acknowledged).after(40 * second)}, finds: "a complete reply within 30s"},
		{says: says{"sync_batch": broken(wire.KindTimeout).after(30 * second)}, finds: "nothing complete after 30s"},
	}},
	"SPD-008": {bad: []talk{{
		says:  says{"sync_batch": first(20, results(acknowledged), results(acknowledged).after(31*second))},
		finds: "nothing complete after 31s",
	}}},
}
