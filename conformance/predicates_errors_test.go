package conformance

import (
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/wire"
)

const (
	second      = time.Second
	millisecond = time.Millisecond
)

// errorExchanges: what goes wrong, and when.
var errorExchanges = map[string]exchange{
	"ERR-001": {
		good: []talk{
			{says: says{"sync_batch": results(refusal)}},
			{says: says{"sync_batch": failure(-32000, "database refuses connections")}},
		},
		bad: []talk{
			{finds: "a failure, or an error for the batch"},
			{says: says{"sync_batch": results(refusal, acknowledged, refusal)}, finds: `"success":true`},
		},
	},
	"ERR-002": {bad: []talk{
		{says: says{"list_objects": first(1, gives(bothObjects), broken(wire.KindTimeout))}, finds: "an answer to a good call"},
		{says: says{"list_objects": first(2, gives(bothObjects), body(`{"jsonrpc":"2.0","id":"of-another","result":{}}`))}, finds: "the answer to this call"},
	}},
	"ERR-003": {bad: []talk{
		{says: says{"list_fields": failure(-32602, "Traceback (most recent call last): in main")}, finds: "a stack trace"},
		{says: says{"list_fields": failure(-32602, "no rows: SELECT name FROM columns")}, finds: "a database statement"},
		{says: says{"unknown": failure(-32601, "not found in /srv/app/main.py")}, finds: "a path of the server"},
		{
			says:  says{"unknown": body(`{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"no","data":{"dsn":"password=hunter2"}}}`)},
			finds: "a secret",
		},
	}},
	"ERR-004": {bad: []talk{
		{says: says{"unknown": failure(-32601, "")}, finds: "the message is empty"},
		{says: says{"unknown": failure(-32601, strings.Repeat("no ", 400))}, finds: "1200 characters"},
		{says: says{"unknown": failure(-32601, "no\u0007")}, finds: "control characters"},
		{says: says{"unknown": failure(-32601, "<html><body><h1>404</h1></body></html>")}, finds: "holds HTML"},
		{says: says{"unknown": failure(-32601, "-32601")}, finds: "no word"},
	}},
	"ERR-005": {
		good: []talk{{says: says{"list_objects": failure(-32000, "database refuses connections").after(200 * millisecond)}}},
		bad: []talk{
			{says: says{"list_objects": failure(-32000, "database refuses connections").after(60 * second)}, finds: "nothing complete after 1m0s"},
			{says: says{"list_objects": broken(wire.KindTimeout).after(10 * second)}, finds: "a complete reply within 10s"},
		},
	},
	"TIM-001": {bad: []talk{{
		says:  says{"supported_operations:order": gives(`{"operations":["upsert"]}`).after(12 * second)},
		finds: "nothing complete after 12s",
	}}},
	"TIM-003": {bad: []talk{{
		says:  says{"supported_operations:order": gives(`{"operations":["upsert"]}`).with(func(r *wire.Reply) { r.MaxGap = 8 * second })},
		finds: "the body stood still for 8s",
	}}},
}
