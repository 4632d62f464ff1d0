package destination

import (
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

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
			{blind: true, says: says{"sync_batch:update": results(refusal)}, status: conformance.Inconclusive, finds: "the results do not show it"}, // update finds nothing at all
			{holds: []stored{asSent, nothing, asSent}, finds: `the acknowledged record "zz-conf-00ab12-SEM-001-2@example.com"`},
			{ // update skips what is absent, finds the control, and does not find the record
				blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged), results(refusal))},
				finds: "the witness operation update says that it is not there",
			},
			{blind: true, status: conformance.Inconclusive, finds: "the results do not show it"},
			{says: says{"sync_batch:insert": results(refusal)}, status: conformance.Inconclusive, finds: "every record was refused"},
		},
	},
	"SEM-002": {
		good: []talk{{holds: []stored{firstSent}}},
		bad: []talk{
			{holds: []stored{lastSent}, finds: `last_name of "zz-conf-00ab12-SEM-002-1@example.com" as it was before the last batch`},
			{holds: []stored{later(2, nothing)}, finds: "it is not there; 3 of 3 records that were there are missing"},
			{says: says{"sync_batch": results(refusal)}, holds: []stored{nothing}, status: conformance.Inconclusive, finds: "no record was there"},
		},
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
		bad: []talk{
			{holds: []stored{firstSent}, finds: `, as before`},
			{holds: []stored{asSent, keeping("age"), asSent}, finds: `age of "zz-conf-00ab12-SEM-004-2@example.com" changed to`},
			{holds: []stored{later(2, nothing)}, finds: "it is not there"},
		},
	},
	"SEM-005": {
		// An update of absent records, and one of a record that was created: without
		// it a refusal shows nothing. Without read-back the witness is calibrated too.
		good: []talk{
			{says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}, holds: []stored{nothing}},
			{blind: true, says: says{"sync_batch:update": skipsTheAbsent}},
		},
		bad: []talk{
			{says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}, holds: []stored{asSent}, finds: "it is there"},
			{says: says{"sync_batch:update": results(refusal)}, holds: []stored{asSent}, finds: "it is there"}, // refused, and there all the same
			{says: says{"sync_batch:update": results(refusal)}, holds: []stored{nothing}, status: conformance.Inconclusive, finds: "an update of a record that is there is refused as well"},
			{
				blind: true, finds: "the witness operation update says that it is there",
				says: says{"sync_batch:update": when(func(a *asked) bool { return a.turn > 0 && len(a.records) == 3 }, results(acknowledged), skipsTheAbsent)},
			},
		},
	},
	"SEM-006": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{nothing}, finds: "it is not there"},
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged), results(refusal))}, finds: "says that it is not there"},
		},
	},
	"SEM-007": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{firstSent}, finds: `age of "zz-conf-00ab12-SEM-007-1@example.com" changed to`},
			{holds: []stored{later(2, nothing)}, finds: "it is not there"},
		},
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
			{holds: []stored{but("last_name", `"of the other key"`), asSent}, finds: `it is "of the other key"`},
			{holds: []stored{asSent, nothing, asSent}, finds: "it is not there"},
		},
	},
	"SEM-016": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{asSent}, elsewhere: asSent, finds: `"order" holds it too`}},
	},
	"SEM-018": {
		prepare: func(s *session) { s.opts.Objects = []string{"contact", "order"} },
		good:    []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{asSent, asSent, asSent, later(3, nothing)}, finds: `which no call has deleted`},
			{says: says{"sync_batch:delete": results(refusal)}, holds: []stored{asAcknowledged}, status: conformance.Inconclusive, finds: "every record was refused"},
			{prepare: func(s *session) { s.opts.Objects = []string{"contact"} }, status: conformance.NotApplicable, finds: "no other named object takes the keys"},
		},
	},
	"SEM-017": {
		// As SEM-010, with a change in place of the delete.
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: only("zz-conf-00ab12-SEM-017-10@example.com", later(2, but("age", "0"))), finds: `age of "zz-conf-00ab12-SEM-017-10@example.com" as it was before the last batch`},
			{holds: only("ZZ-CONF-00AB12-sem-017-1@example.com", later(2, but("first_name", `"of the first"`))), finds: `it is "of the first"`},
			{holds: only("zz-conf-00ab12-SEM-017-@example.com", later(2, nothing)), finds: "it is not there"},
			{says: says{"sync_batch": results(refusal)}, holds: []stored{asAcknowledged}, status: conformance.Inconclusive, finds: "every record was refused"},
		},
	},
	"RES-014": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{later(2, but("first_name", "null"))}, finds: "it is null"},
			{holds: []stored{lastSent}, finds: `age of "zz-conf-00ab12-RES-014-1@example.com" as it was before the last batch`},
		},
	},
	"RES-016": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{but("last_name", `"of another column"`)}, finds: `it is "of another column"`},
			{says: says{"sync_batch": results(`{"identifier":"the first member","success":true}`)}, holds: []stored{asSent}, finds: "3 results came back; missing"},
		},
	},
}

// skipsTheAbsent is an update that finds what was sent before with another operation.
func skipsTheAbsent(a *asked) *wire.Reply {
	return when(func(a *asked) bool { return a.created }, results(acknowledged), results(refusal))(a)
}

// deleteExchanges: the delete batches of a mirror.
var deleteExchanges = map[string]exchange{
	"SEM-009": {
		good: []talk{
			{holds: []stored{asSent}},
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged), results(refusal))}},
		},
		bad: []talk{
			{holds: []stored{undeleted}, finds: "it is there"},
			{holds: []stored{asSent, undeleted}, finds: `no record "zz-conf-00ab12-SEM-009-2@example.com"`},
			{holds: []stored{nothing}, status: conformance.Inconclusive, finds: "no record was seen deleted"}, // they were never there
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}, finds: "says that it is there"},
		},
	},
	"SEM-010": {
		// Two records and nine look-alikes of the first: longer and shorter keys,
		// another case, spaces, patterns. Only the first is deleted.
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{onceDeleted(nothing)}, finds: "10 of 10 records that were there are missing"},
			{holds: only("zz-conf-00ab12-SEM-010-10@example.com", onceDeleted(nothing)), finds: `"zz-conf-00ab12-SEM-010-10@example.com" as it was before the last batch`},
			{holds: only("ZZ-CONF-00AB12-sem-010-1@example.com", onceDeleted(nothing)), finds: `"ZZ-CONF-00AB12-sem-010-1@example.com" as it was before`},
			{holds: only(" zz-conf-00ab12-SEM-010-1@example.com", onceDeleted(but("age", "0"))), finds: "it is 0"},
			{holds: []stored{nothing}, status: conformance.Inconclusive, finds: "no record was there before the last batch"},
		},
	},
	"SEM-011": {
		good: []talk{{}, {says: says{"sync_batch:delete": results(refusal)}}},
		bad:  []talk{{says: says{"sync_batch:delete": failure(-32000, "record not found")}, finds: "record not found"}},
	},
	"SEM-012": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{onceDeleted(nothing)}, finds: "it is not there"},
			{holds: []stored{undeleted}, status: conformance.Inconclusive, finds: "is still there after its delete was acknowledged"},
		},
	},
	"SEM-019": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{says: says{"sync_batch:insert": inTurn(results(acknowledged), results(refusal))}, holds: []stored{onceDeleted(nothing)}, finds: `the deleted record "zz-conf-00ab12-SEM-019-1@example.com" created again`},
			{blind: true, says: says{"sync_batch:insert": inTurn(results(acknowledged), results(refusal))}, finds: "created again"},
			{says: says{"sync_batch:insert": inTurn(results(acknowledged), results(acknowledged, refusal, acknowledged))}, holds: []stored{asSent}, finds: `the deleted record "zz-conf-00ab12-SEM-019-2@example.com" created again`},
			{holds: []stored{onceDeleted(nothing)}, finds: "it is not there"},
			{holds: []stored{undeleted}, status: conformance.Inconclusive, finds: "is still there after its delete was acknowledged"},
			{says: says{"sync_batch:delete": results(refusal)}, holds: []stored{asSent}, status: conformance.Inconclusive, finds: "was refused (OPS-007)"},
			{says: says{"sync_batch:insert": results(refusal)}, holds: []stored{nothing}, status: conformance.Inconclusive, finds: "every record was refused"},
		},
	},
}

// durabilityExchanges: what is acknowledged stays.
var durabilityExchanges = map[string]exchange{
	"DUR-001": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{nothing, asSent}, finds: `the acknowledged record "zz-conf-00ab12-DUR-001-1@example.com"`},
			{holds: []stored{nothing}, finds: "100 of 100 acknowledged records are missing"},
		},
	},
	"DUR-002": {
		// Fifty updates of records that are there, one of an absent record, and one of
		// a record that was created before it.
		good: []talk{{says: says{"sync_batch:update": when(func(a *asked) bool { return a.turn == 50 }, results(refusal), results(acknowledged))}}},
		bad: []talk{
			{says: says{"sync_batch:update": first(51, results(refusal), results(acknowledged))}, finds: "and then update did not find it"},
			{says: says{"sync_batch:update": results(refusal)}, status: conformance.Inconclusive, finds: "cannot be told from successes"}, // OPS-007's
			{status: conformance.Inconclusive, finds: "cannot be told from successes"},
			{says: says{"sync_batch": results(refusal)}, status: conformance.Inconclusive, finds: "no record was acknowledged"},
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
