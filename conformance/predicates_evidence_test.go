package conformance

// semanticExchanges: insert, update and upsert, judged by what the read-back
// shows, or by witness operations where there is none.
var semanticExchanges = map[string]exchange{
	"SEM-001": {
		good: []talk{
			{holds: []stored{asSent}},
			// An update of an absent record is refused, one of the new record is not.
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}},
		},
		bad: []talk{
			{holds: []stored{nothing}, finds: "it is not there"},
			{holds: []stored{asSent, nothing, asSent}, finds: `the acknowledged record "zz-conf-00ab12-SEM-001-2"`},
			{blind: true, says: says{"sync_batch:update": results(refusal)}, finds: "the witness operation update says that it is not there"},
			{blind: true, status: Inconclusive, finds: "the results do not show it"},
			{says: says{"sync_batch:insert": results(refusal)}, status: Inconclusive, finds: "every record was refused"},
		},
	},
	"SEM-002": {
		good: []talk{{holds: []stored{firstSent}}},
		bad: []talk{{holds: []stored{lastSent}, finds: `last_name of "zz-conf-00ab12-SEM-002-1" stored as "Conformance 1 last_name"`}, {
			says: says{"sync_batch": results(refusal)}, holds: []stored{nothing}, status: Inconclusive, finds: "no record was there",
		}},
	},
	"SEM-003": {
		good: []talk{{says: says{"sync_batch": inTurn(results(acknowledged), results(refusal, refusal, acknowledged))}, holds: []stored{firstSent}}},
		bad: []talk{
			{says: says{"sync_batch": inTurn(results(acknowledged), failure(-32000, "duplicate key"))}, holds: []stored{firstSent}, finds: "duplicate key"},
			{holds: []stored{twoCopies}, finds: "2 copies"},
		},
	},
	"SEM-004": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{firstSent}, finds: `it is "Conformance 1 last_name"`}},
	},
	"SEM-005": {
		good: []talk{
			{says: says{"sync_batch:update": results(refusal)}, holds: []stored{nothing}},
			{says: says{"sync_batch:update": results(refusal)}, blind: true},
		},
		bad: []talk{
			{says: says{"sync_batch:update": results(refusal)}, holds: []stored{asSent}, finds: "it is there"},
			{says: says{"sync_batch:update": inTurn(results(refusal), results(refusal), results(acknowledged))}, blind: true, finds: "the witness operation update says that it is there"},
		},
	},
	"SEM-006": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{nothing}, finds: "it is not there"},
			{blind: true, says: says{"sync_batch:update": results(refusal)}, finds: "says that it is not there"},
		},
	},
	"SEM-007": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{firstSent}, finds: `stored as "Conformance 51 last_name"`}},
	},
	"SEM-008": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{asSent, twoCopies, asSent}, finds: "2 copies"}},
	},
	"SEM-013": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{twoCopies}, finds: "2 copies"}},
	},
	"SEM-014": {
		good: []talk{
			{holds: []stored{asSent}},
			{says: says{"sync_batch": results(acknowledged, refusal)}, holds: []stored{asSent, nothing}},
		},
		bad: []talk{
			{holds: []stored{but("last_name", `"Conformance 2 last_name"`), asSent}, finds: `it is "Conformance 2 last_name"`},
			{holds: []stored{asSent, nothing, asSent}, finds: "it is not there"},
		},
	},
	"SEM-016": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{asSent}, elsewhere: asSent, finds: `"order" holds it too`}},
	},
	"RES-014": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{but("first_name", "null")}, finds: "it is null"},
			{holds: []stored{lastSent}, finds: "the field is missing"},
		},
	},
	"RES-016": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{{
			holds: []stored{but("last_name", `"Conformance 1 first_name"`)},
			finds: `it is "Conformance 1 first_name"`,
		}},
	},
}

// deleteExchanges: the delete batches of a mirror.
var deleteExchanges = map[string]exchange{
	"SEM-009": {
		good: []talk{
			{holds: []stored{nothing}},
			{blind: true, says: says{"sync_batch:update": results(refusal)}},
		},
		bad: []talk{
			{holds: []stored{asSent}, finds: "it is there"},
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}, finds: "says that it is there"},
		},
	},
	"SEM-010": {
		good: []talk{{holds: []stored{nothing, nothing, asSent}}},
		bad: []talk{
			{holds: []stored{nothing}, finds: "4 of 4 acknowledged records are missing"},
			{holds: []stored{nothing, nothing, but("age", "0"), asSent}, finds: "it is 0"},
		},
	},
	"SEM-011": {
		good: []talk{{}, {says: says{"sync_batch:delete": results(refusal)}}},
		bad:  []talk{{says: says{"sync_batch:delete": failure(-32000, "record not found")}, finds: "record not found"}},
	},
	"SEM-012": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{nothing}, finds: "it is not there"}},
	},
}

// durabilityExchanges: what is acknowledged stays.
var durabilityExchanges = map[string]exchange{
	"DUR-001": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{nothing, asSent}, finds: `the acknowledged record "zz-conf-00ab12-DUR-001-1"`},
			{holds: []stored{nothing}, finds: "100 of 100 acknowledged records are missing"},
		},
	},
	"DUR-002": {
		// Fifty updates of records that are there, then one of an absent record.
		good: []talk{{says: says{"sync_batch:update": first(50, results(acknowledged), results(refusal))}}},
		bad: []talk{
			{says: says{"sync_batch:update": results(refusal)}, finds: "and then update did not find it"},
			{status: Inconclusive, finds: "cannot be told from successes"},
			{says: says{"sync_batch": results(refusal)}, status: Inconclusive, finds: "no record was acknowledged"},
		},
	},
	"DUR-003": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{nothing}, finds: "5 of 5 acknowledged records are missing"}},
	},
	"DUR-004": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{twoCopies}, finds: "2 copies"},
			{holds: []stored{asSent, nothing, asSent}, finds: "it is not there"},
		},
	},
	"DUR-005": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{asSent, but("last_name", `"abcdefghij"`), asSent}, finds: `it is "abcdefghij"`},
			{holds: []stored{asSent, asSent, but("age", "4243")}, finds: "it is 4243"},
		},
	},
	"RL-005": {
		good: []talk{
			{holds: []stored{asSent}},
			// A throttled batch that says so may be lost: the service sends it again.
			{says: says{"sync_batch": first(299, results(acknowledged), failure(-32000, "slow down"))}, holds: []stored{asSent}},
		},
		bad: []talk{{holds: []stored{asSent, nothing, asSent}, finds: "it is not there"}},
	},
}

// parallelExchanges: calls that are under way at once.
var parallelExchanges = map[string]exchange{
	"PAR-001": {bad: []talk{
		{says: says{"list_fields:order": inTurn(gives(orderFields), gives(contactFields))}, finds: "now lists active, age"},
		{says: says{"list_fields:order": inTurn(gives(orderFields), body(`{"jsonrpc":"2.0","id":"of-another","result":`+orderFields+`}`))}, finds: `id "of-another"`},
	}},
	"PAR-002": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{
				says:  says{"sync_batch": inTurn(results(`{"identifier":"of-another","success":true}`), results(acknowledged))},
				holds: []stored{asSent}, finds: "missing ",
			},
			{holds: []stored{asSent, nothing, asSent}, finds: "it is not there"},
		},
	},
	"PAR-003": {
		good: []talk{{holds: []stored{lastSent}}},
		bad: []talk{
			{holds: []stored{twoCopies}, finds: "2 copies"},
			{holds: []stored{torn}, finds: "a mixture"},
		},
	},
	"PAR-004": {
		good: []talk{{}, {says: says{"list_objects": first(5, gives(bothObjects).after(60*millisecond), gives(bothObjects).after(170*millisecond))}}},
		bad: []talk{{
			says:  says{"list_objects": first(5, gives(bothObjects).after(60*millisecond), gives(bothObjects).after(190*millisecond))},
			finds: "190ms with 4 calls at once",
		}},
	},
	"PAR-005": {
		good: []talk{{says: says{"sync_batch:update": results(refusal)}}},
		bad:  []talk{{says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}, finds: "failure, as when it runs alone"}},
	},
}

// torn is a record with a field of one sending and the rest of another.
func torn(k *kept) (int, sentRecord) {
	_, fields := but("last_name", string(k.first["last_name"]))(&kept{all: k.last})
	return 1, fields
}
