package destination

import (
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
)

const (
	second      = time.Second
	millisecond = time.Millisecond
)

// outages are what the run has seen of the endpoint so far.
func outages(seen ...*outage) func(*session) {
	return func(s *session) { s.watch.outages = seen }
}

// errorExchanges: what goes wrong, and when.
var errorExchanges = map[string]exchange{
	"ERR-001": {
		good: []talk{
			{says: says{"sync_batch": results(refusal)}},
			{says: says{"sync_batch": failure(-32000, "database refuses connections")}},
		},
	},
	"ERR-006": {bad: []talk{
		{prepare: outages(&outage{call: "sync_batch of SEM-001", alone: true, ended: true, back: 2 * second}), finds: "stopped accepting connections after sync_batch of SEM-001; it was back after 2s"},
		{prepare: outages(&outage{call: "sync_batch of SEM-001", alone: true, back: 10 * second}), finds: "it was not back after 10s"},
		{
			prepare: outages(&outage{call: "sync_batch of SEM-001", ended: true}),
			finds:   "stopped accepting connections while several calls were under way, sync_batch of SEM-001 among them (--serial finds the one)",
		},
		{ // the call that was under way alone is the cause
			prepare: outages(&outage{call: "sync_batch of SEM-001", ended: true}, &outage{call: "sync_batch of DAT-006", alone: true, ended: true}),
			finds:   "actual stopped accepting connections after sync_batch of DAT-006",
		},
	}},
	"ERR-002": {bad: []talk{
		{says: says{"list_objects": first(2, gives(bothObjects), body(`{"jsonrpc":"2.0","id":"of-another","result":{}}`))}, finds: "the answer to this call"},
		{says: says{"list_objects": first(2, gives(bothObjects), page(501, "Unsupported method"))}, finds: "Unsupported method"},
		{says: says{"list_objects": first(4, gives(bothObjects), page(501, "Unsupported method"))}, finds: "Unsupported method"},
	}},
	"ERR-003": {bad: []talk{
		{says: says{"list_fields": failure(-32602, "no rows: SELECT name FROM columns")}, finds: "a database statement"},
		{says: says{"unknown": failure(-32601, "not found in /srv/app/main.py")}, finds: "a path of the server"},
		{
			says:  says{"unknown": body(`{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"no","data":{"dsn":"password=hunter2"}}}`)},
			finds: "a secret",
		},
	}},
	"ERR-004": {bad: []talk{
		{says: says{"unknown": failure(-32601, "no\u0007")}, finds: "control characters"},
		{says: says{"unknown": failure(-32601, "<html><body><h1>404</h1></body></html>")}, finds: "holds HTML"},
		{says: says{"unknown": failure(-32601, "-32601")}, finds: "no word"},
	}},
	"ERR-005": {
		good: []talk{{says: says{"list_objects": failure(-32000, "database refuses connections").after(200 * millisecond)}}},
		bad: []talk{
			{says: says{"list_objects": broken(wire.KindTimeout).after(10 * second)}, finds: "a complete reply within 10s"},
		},
	},
}
