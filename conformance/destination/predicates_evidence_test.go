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
			// An update of an absent record is refused, one of the new record is not.
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}},
		},
		bad: []talk{
			{ // update skips what is absent, finds the control, and does not find the record
				blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged), results(refusal))},
				finds: "the witness operation update says that it is not there",
			},
			{blind: true, status: conformance.Inconclusive, finds: "the results do not show it"},
		},
	},
	"SEM-002": {
		good: []talk{{holds: []stored{firstSent}}},
		bad: []talk{
			{holds: []stored{later(2, nothing)}, finds: "it is not there; 3 of 3 records that were there are missing"},
		},
	},
	"SEM-003": {
		good: []talk{{says: says{"sync_batch": inTurn(results(acknowledged), results(refusal, refusal, acknowledged))}, holds: []stored{firstSent}}},
	},
	"SEM-004": {
		bad: []talk{
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
			{
				blind: true, finds: "the witness operation update says that it is there",
				says: says{"sync_batch:update": when(func(a *asked) bool { return a.turn > 0 && len(a.records) == 3 }, results(acknowledged), skipsTheAbsent)},
			},
		},
	},
	"SEM-006": {
		bad: []talk{
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged), results(refusal))}, finds: "says that it is not there"},
		},
	},
	"SEM-007": {
		bad: []talk{
			{holds: []stored{later(2, nothing)}, finds: "it is not there"},
		},
	},
	"SEM-014": {
		good: []talk{
			{says: says{"sync_batch": results(acknowledged, refusal)}, holds: []stored{asSent, nothing}},
		},
	},
	"SEM-016": {
		bad: []talk{{holds: []stored{asSent}, elsewhere: asSent, finds: `"order" holds it too`}},
	},
	"SEM-018": {
		prepare: func(s *session) { s.opts.Objects = []string{"contact", "order"} },
		bad: []talk{
			{holds: []stored{asSent, asSent, asSent, later(3, nothing)}, finds: `which no call has deleted`},
			{prepare: func(s *session) { s.opts.Objects = []string{"contact"} }, status: conformance.NotApplicable, finds: "no other named object takes the keys"},
		},
	},
	"SEM-017": {
		// As SEM-010, with a change in place of the delete.
		bad: []talk{
			{holds: only("zz-conf-00ab12-SEM-017-10@example.com", later(2, but("age", "0"))), finds: `age of "zz-conf-00ab12-SEM-017-10@example.com" as it was before the last batch`},
			{holds: only("ZZ-CONF-00AB12-sem-017-1@example.com", later(2, but("first_name", `"of the first"`))), finds: `it is "of the first"`},
			{holds: only("zz-conf-00ab12-SEM-017-@example.com", later(2, nothing)), finds: "it is not there"},
		},
	},
	"RES-014": {
		bad: []talk{
			{holds: []stored{later(2, but("first_name", "null"))}, finds: "it is null"},
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
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged), results(refusal))}},
		},
		bad: []talk{
			{holds: []stored{nothing}, status: conformance.Inconclusive, finds: "no record was seen deleted"}, // they were never there
			{blind: true, says: says{"sync_batch:update": inTurn(results(refusal), results(acknowledged))}, finds: "says that it is there"},
		},
	},
	"SEM-010": {
		// Two records and nine look-alikes of the first: longer and shorter keys,
		// another case, spaces, patterns. Only the first is deleted.
		bad: []talk{
			{holds: []stored{nothing}, status: conformance.Inconclusive, finds: "no record was there before the last batch"},
		},
	},
	"SEM-011": {
		good: []talk{{says: says{"sync_batch:delete": results(refusal)}}},
	},
	"SEM-012": {
		bad: []talk{
			{holds: []stored{undeleted}, status: conformance.Inconclusive, finds: "is still there after its delete was acknowledged"},
		},
	},
	"SEM-019": {
		bad: []talk{
			{blind: true, says: says{"sync_batch:insert": inTurn(results(acknowledged), results(refusal))}, finds: "created again"},
			{holds: []stored{undeleted}, status: conformance.Inconclusive, finds: "is still there after its delete was acknowledged"},
		},
	},
}

// durabilityExchanges: what is acknowledged stays.
var durabilityExchanges = map[string]exchange{
	"DUR-002": {
		// Fifty updates of records that are there, one of an absent record, and one of
		// a record that was created before it.
		good: []talk{{says: says{"sync_batch:update": when(func(a *asked) bool { return a.turn == 50 }, results(refusal), results(acknowledged))}}},
		bad: []talk{
			{status: conformance.Inconclusive, finds: "cannot be told from successes"},
		},
	},
	"DUR-005": {
		bad: []talk{
			{holds: []stored{asSent, asSent, but("age", "4243")}, finds: "it is 4243"},
		},
	},
	"RL-005": {
		good: []talk{
			// A throttled batch that says so may be lost: the service sends it again.
			{says: says{"sync_batch": first(299, results(acknowledged), failure(-32000, "slow down"))}, holds: []stored{asSent}},
		},
	},
}

// parallelExchanges: calls that are under way at once.
var parallelExchanges = map[string]exchange{
	"PAR-001": {bad: []talk{
		{says: says{"list_fields:order": inTurn(gives(orderFields), body(`{"jsonrpc":"2.0","id":"of-another","result":`+orderFields+`}`))}, finds: `id "of-another"`},
	}},
	"PAR-002": {
		bad: []talk{
			{
				says:  says{"sync_batch": inTurn(results(`{"identifier":"of-another","success":true}`), results(acknowledged))},
				holds: []stored{asSent}, finds: "missing ",
			},
		},
	},
	"PAR-003": {
		good: []talk{{holds: []stored{lastSent}}},
	},
	"PAR-004": {
		good: []talk{{says: says{"list_objects": first(5, gives(bothObjects).after(60*millisecond), gives(bothObjects).after(170*millisecond))}}},
	},
	"PAR-005": {
		good: []talk{{says: says{"sync_batch:update": results(refusal)}}},
	},
}
