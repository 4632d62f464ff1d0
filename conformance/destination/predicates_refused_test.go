package destination

import (
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// badRecords answers the control, seven good records, and then the same with bad
// records at the second and the fifth place: no other order looks the same.
func badRecords(then answer) answer { return inTurn(results(acknowledged), then) }

// refusedInPlace refuses the bad records and no other.
var refusedInPlace = results(acknowledged, refusal, acknowledged, acknowledged, refusal, acknowledged)

// isBad finds records whose required field is null.
func isBad(r sentRecord) bool { return string(r["last_name"]) == "null" }

// badRecordExchanges: bad records among good ones. The required last_name of a bad
// record is null.
var badRecordExchanges = map[string]exchange{
	"RES-008": {
		good: []talk{{says: says{"sync_batch": badRecords(refusedInPlace)}}},
		bad: []talk{
			{ // without the control a refusal shows nothing
				says:   says{"sync_batch": results(acknowledged, acknowledged, refusal, acknowledged)},
				status: conformance.Inconclusive, finds: "the same records without the bad value are not accepted",
			},
			{says: says{"sync_batch": badRecords(failure(-32000, "one is bad"))}, status: conformance.Inconclusive, finds: "failed as a whole"},
			{says: says{"sync_batch": results(acknowledged)}, status: conformance.Inconclusive, finds: "no record was refused"},
		},
	},
	"RES-009": {
		// A bad record alone, then two among five good ones; each after its control.
		good: []talk{
			{says: says{"sync_batch": perRecord(isBad, refusal, acknowledged)}, holds: []stored{asAcknowledged}},
			{ // it fails as a whole
				says:  says{"sync_batch": when(func(a *asked) bool { return slices.ContainsFunc(a.records, isBad) }, failure(-32000, "null is not allowed"), results(acknowledged))},
				holds: []stored{asAcknowledged},
			},
		},
		bad: []talk{
			{ // a bad record is refused alone and acknowledged among good ones
				says:  says{"sync_batch": when(func(a *asked) bool { return len(a.records) == 1 }, perRecord(isBad, refusal, acknowledged), results(acknowledged))},
				finds: "which is refused when it comes alone",
			},
			{holds: []stored{asSent}, status: conformance.Inconclusive, finds: "no record was refused"}, // the endpoint takes null
			{blind: true, status: conformance.Inconclusive, finds: "only a read-back shows"},
		},
	},
	"RES-010": {
		good: []talk{{says: says{"sync_batch": badRecords(refusedInPlace)}}},
		bad: []talk{
			{status: conformance.Inconclusive, finds: "no record of the batch failed"},
		},
	},
	"RES-018": {
		good: []talk{{says: says{"sync_batch": badRecords(refusedInPlace)}}},
		bad: []talk{
			{says: says{"sync_batch": failure(-32000, "down")}, status: conformance.Inconclusive, finds: "the same records without the bad value are not accepted"},
			{says: says{"sync_batch": results(acknowledged)}, status: conformance.Inconclusive, finds: "no record was refused"},
		},
	},
	"RES-019": {
		good: []talk{
			{says: says{"sync_batch": first(1, results(acknowledged), results(`{"identifier":null,"success":false,"error_message":"no identifier"}`))}},
			{says: says{"sync_batch": first(1, results(acknowledged), failure(-32602, "a record has no identifier"))}},
		},
	},
}

// perRecord answers each record for itself.
func perRecord(fits func(r sentRecord) bool, one, other string) answer {
	return func(a *asked) *wire.Reply {
		texts := make([]string, len(a.records))
		for i, r := range a.records {
			texts[i] = other
			if fits(r) {
				texts[i] = one
			}
		}
		return results(texts...)(a)
	}
}

// fewerThan finds records that carry fewer than n fields.
func fewerThan(n int) func(r sentRecord) bool { return func(r sentRecord) bool { return len(r) < n } }

// holding finds records in which a field has a value that contains a text.
func holding(text string) func(r sentRecord) bool {
	return func(r sentRecord) bool {
		for _, raw := range r {
			if strings.Contains(string(raw), text) {
				return true
			}
		}
		return false
	}
}

const refusedText = `{"identifier":$id,"success":false,"error_message":"no such text"}`

// acceptanceExchanges: what an endpoint that advertises an operation and declares a
// type must accept.
var acceptanceExchanges = map[string]exchange{
	"OPS-007": {
		good: []talk{
			{says: says{"sync_batch:insert": results(refusal, acknowledged)}, notes: "insert of new records: 1 of 2 were refused"},
		},
	},
	"RES-013": {
		good: []talk{
			{ // a batch that is refused as a whole is split, as the service does
				says: says{"sync_batch:insert": when(func(a *asked) bool { return len(a.records) > 1 }, failure(-32000, "one is bad"), results(acknowledged))},
			},
		},
		bad: []talk{
			{ // every update is an error: it is not the plan
				says:   says{"sync_batch:update": failure(-32603, "updates are off")},
				status: conformance.Inconclusive, finds: "updates are off",
			},
			{ // refused record by record, and a fuller one is taken
				says:  says{"sync_batch:insert": perRecord(fewerThan(4), refusal, acknowledged)},
				finds: "expected insert of new records accepted also where only the identifier and what is required are mapped",
			},
		},
	},
	"RES-020": {
		good: []talk{
			{says: says{"sync_batch": perRecord(holding("\\u00e9"), refusedText, acknowledged)}}, // DAT-014's, everywhere alike
		},
	},
}
