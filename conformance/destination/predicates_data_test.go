package destination

// dataExchanges: one record for each row of the table; the sent string stands
// in last_name.
var dataExchanges = map[string]exchange{
	"DAT-002": {
		good: []talk{{says: says{"sync_batch": results(refusal, acknowledged, refusal)}, holds: []stored{asAcknowledged}}},
	},
	"DAT-003": {
		// Two new records with nulls, two full ones, and those with nulls again.
		good: []talk{
			{holds: []stored{but("first_name", ""), but("first_name", ""), later(3, but("first_name", ""))}}, // a hook may leave nulls out
		},
		bad: []talk{
			{holds: []stored{asSent, asSent, asSent, later(3, but("tags", "[]"))}, finds: `tags of "zz-conf-00ab12-DAT-003-4@example.com" stored as null`},
		},
	},
	"DAT-015": {
		good: []talk{{holds: []stored{asSent, asSent, asSent, asSent, but("score", "16777217"), asSent}}},
	},
	"DAT-005": {
		good: []talk{{holds: []stored{asSent, asSent, but("balance", `"1234.12340"`), asSent}}},
	},
	"DAT-006": {
		good: []talk{
			{says: says{"sync_batch": results(acknowledged, acknowledged, acknowledged, refusal)}, holds: []stored{asSent, asSent, but("score", "0"), nothing}},
			{ // refused as a whole, then each alone
				says:  says{"sync_batch": inTurn(failure(-32602, "1e400 is out of range"), results(acknowledged), results(acknowledged), results(acknowledged), failure(-32602, "1e400 is out of range"))},
				holds: []stored{asSent, asSent, asSent, nothing},
			},
		},
	},
	"DAT-008": {
		good: []talk{
			{holds: []stored{but("seen", `"2021-03-29T18:32:23+02:00"`), asSent}},
			{holds: []stored{asSent, but("seen", `"2021-03-29T16:32:23Z"`), asSent}, notes: "seen: "},
		},
	},
}
