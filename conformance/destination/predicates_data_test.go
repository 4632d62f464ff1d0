package destination

import (
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// dataExchanges: one record for each row of the table; the sent string stands
// in last_name.
var dataExchanges = map[string]exchange{
	"FLD-011": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{asSent, but("age", `"-42"`), asSent}, finds: `it is "-42"`},
			{holds: []stored{asSent, asSent, asSent, asSent, but("score", `42`), asSent}, finds: "it is 42"},
			// The first two records carry every field but arrays.
			{holds: []stored{asSent, but("active", `1`), asSent}, finds: `active of "zz-conf-00ab12-FLD-011-2@example.com" stored as`},
			{holds: []stored{but("seen", `"2021-03-29T18:32:23Z"`), asSent}, finds: `it is "2021-03-29T18:32:23Z"`},
			{says: says{"sync_batch": results(refusal)}, holds: []stored{nothing}, status: conformance.Inconclusive, finds: "every record was refused"},
		},
	},
	"FLD-014": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{keeping("balance"), asSent}, finds: `balance of "zz-conf-00ab12-FLD-014-1@example.com" stored as`},
			{holds: []stored{asSent, keeping("tags")}, finds: `tags of "zz-conf-00ab12-FLD-014-2@example.com" stored as`},
			{holds: []stored{keeping("born"), asSent}, finds: "born of"},
			{holds: []stored{firstSent}, finds: "stored as"},
			{blind: true, status: conformance.NotRun, finds: "only a read-back"},
		},
	},
	"DAT-001": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{but("last_name", `"? astral"`), asSent}, finds: `it is "? astral"`},
			{holds: []stored{asSent, asSent, asSent, but("last_name", `"`+"\u00e9"+` combining"`)}, finds: "\u00e9 combining"},
		},
	},
	"DAT-002": {
		good: []talk{{says: says{"sync_batch": results(refusal, acknowledged, refusal)}, holds: []stored{asAcknowledged}}},
		bad: []talk{
			{says: says{"sync_batch": broken(wire.KindClosed)}, finds: "the server closed the connection without responding"},
			{holds: []stored{but("last_name", `"ab"`), asSent}, finds: `it is "ab"`},
		},
	},
	"DAT-003": {
		// Two new records with nulls, two full ones, and those with nulls again.
		good: []talk{
			{holds: []stored{asSent}},
			{holds: []stored{but("first_name", ""), but("first_name", ""), later(3, but("first_name", ""))}}, // a hook may leave nulls out
		},
		bad: []talk{
			{holds: []stored{but("first_name", `"null"`), asSent}, finds: `first_name of "zz-conf-00ab12-DAT-003-1@example.com" stored as null`},
			{holds: []stored{asSent, but("age", "0"), asSent}, finds: `age of "zz-conf-00ab12-DAT-003-2@example.com" stored as null`},
			{holds: []stored{firstSent}, finds: `of "zz-conf-00ab12-DAT-003-3@example.com" stored as null`},
			{holds: []stored{asSent, asSent, asSent, later(3, but("tags", "[]"))}, finds: `tags of "zz-conf-00ab12-DAT-003-4@example.com" stored as null`},
		},
	},
	"DAT-004": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{but("age", "9007199254740992"), asSent}, finds: "it is 9007199254740992"},
			{holds: []stored{asSent, but("age", "9223372036854775808"), asSent}, finds: "it is 9223372036854775808"},
		},
	},
	"DAT-015": {
		good: []talk{{holds: []stored{asSent}}, {holds: []stored{asSent, asSent, asSent, asSent, but("score", "16777217"), asSent}}},
		bad: []talk{
			{holds: []stored{but("score", "0.10000000149011612"), asSent}, finds: "it is 0.10000000149011612"},
			{holds: []stored{asSent, asSent, asSent, asSent, but("score", "16777216"), asSent}, finds: "it is 16777216"},
			{holds: []stored{asSent, asSent, asSent, but("score", "-1234567.89"), asSent}, finds: "it is -1234567.89"},
			{says: says{"sync_batch": results(refusal)}, holds: []stored{nothing}, status: conformance.Inconclusive, finds: "every record was refused"},
		},
	},
	"DAT-005": {
		good: []talk{{holds: []stored{asSent, asSent, but("balance", `"1234.12340"`), asSent}}},
		bad: []talk{
			{holds: []stored{but("balance", `"123456789012345.672"`), asSent}, finds: "345.672"},
			{holds: []stored{asSent, but("balance", `"0"`), asSent}, finds: `it is "0"`},
		},
	},
	"DAT-006": {
		good: []talk{
			{says: says{"sync_batch": results(acknowledged, acknowledged, acknowledged, refusal)}, holds: []stored{asSent, asSent, but("score", "0"), nothing}},
			{ // refused as a whole, then each alone
				says:  says{"sync_batch": inTurn(failure(-32602, "1e400 is out of range"), results(acknowledged), results(acknowledged), results(acknowledged), failure(-32602, "1e400 is out of range"))},
				holds: []stored{asSent, asSent, asSent, nothing},
			},
		},
		bad: []talk{
			{says: says{"sync_batch": broken(wire.KindReset)}, finds: "reset"},
			{holds: []stored{but("score", "1.8e308"), asSent}, finds: "it is 1.8e308"},
		},
	},
	"DAT-007": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{but("born", `"2024-02-28"`), asSent}, finds: `it is "2024-02-28"`}},
	},
	"DAT-008": {
		good: []talk{
			{holds: []stored{but("seen", `"2021-03-29T18:32:23+02:00"`), asSent}},
			{holds: []stored{asSent, but("seen", `"2021-03-29T16:32:23Z"`), asSent}, notes: "seen: "},
		},
		bad: []talk{{holds: []stored{but("seen", `"2021-03-29T18:32:23Z"`), asSent}, finds: `it is "2021-03-29T18:32:23Z"`}},
	},
	"DAT-009": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{but("active", `"true"`), asSent}, finds: `it is "true"`}, {holds: []stored{but("active", "1"), asSent}, finds: "it is 1"}},
	},
	"DAT-010": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{but("tags", "null"), asSent}, finds: "it is null"},
			{holds: []stored{asSent, but("tags", `"Conformance 1 tags"`), asSent}, finds: `it is "Conformance 1 tags"`},
			{holds: []stored{asSent, asSent, but("tags", `["Conformance 1 tags","Conformance 2 tags","Conformance 3 tags"]`)}, finds: "Conformance 1 tags"},
		},
	},
	"DAT-011": {
		good: []talk{{holds: []stored{asSent}}},
		bad: []talk{
			{holds: []stored{but("last_name", "null"), asSent}, finds: "it is null"},
			{holds: []stored{asSent, but("last_name", `"spaces"`), asSent}, finds: `it is "spaces"`},
			{holds: []stored{asSent, asSent, but("last_name", `"42"`), asSent}, finds: `it is "42"`},
		},
	},
	"DAT-013": {
		good: []talk{{holds: []stored{asSent}}},
		bad:  []talk{{holds: []stored{but("last_name", `"caf\\u00e9"`), asSent}, finds: `it is "caf\\u00e9"`}},
	},
}
