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

// refusedInPlace refuses the bad records and no other, refusedAside the neighbours
// that the results of a reversed or shifted list would name.
var (
	refusedInPlace = results(acknowledged, refusal, acknowledged, acknowledged, refusal, acknowledged)
	refusedAside   = results(acknowledged, acknowledged, refusal, acknowledged, acknowledged, refusal, acknowledged)
)

// isBad finds records whose required field is null.
func isBad(r sentRecord) bool { return string(r["last_name"]) == "null" }

// badRecordExchanges: bad records among good ones. The required last_name of a bad
// record is null.
var badRecordExchanges = map[string]exchange{
	"RES-008": {
		good: []talk{{says: says{"sync_batch": badRecords(refusedInPlace)}}},
		bad: []talk{
			{says: says{"sync_batch": badRecords(results(refusal, refusal, acknowledged, acknowledged, refusal, acknowledged))}, finds: `success for the good record "zz-conf-00ab12-RES-008-8@example.com"`},
			{says: says{"sync_batch": badRecords(results(refusal))}, finds: "success for the good record"},
			{says: says{"sync_batch": badRecords(refusedAside)}, finds: `success for the good record "zz-conf-00ab12-RES-008-10@example.com"`},
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
			{holds: []stored{asSent, nothing}, finds: "which is not stored"},
			{ // a bad record is refused alone and acknowledged among good ones
				says:  says{"sync_batch": when(func(a *asked) bool { return len(a.records) == 1 }, perRecord(isBad, refusal, acknowledged), results(acknowledged))},
				finds: "which is refused when it comes alone",
			},
			{holds: []stored{asSent}, status: conformance.Inconclusive, finds: "no record was refused"}, // the endpoint takes null
			{blind: true, status: conformance.Inconclusive, finds: "only a read-back shows"},
			{says: says{"sync_batch": results(refusal)}, status: conformance.Inconclusive, finds: "the same records without the bad value are not accepted"},
		},
	},
	"RES-010": {
		good: []talk{{says: says{"sync_batch": badRecords(refusedInPlace)}}},
		bad: []talk{
			{
				says:  says{"sync_batch": badRecords(refusedAside)},
				finds: `it stands at "zz-conf-00ab12-RES-010-10@example.com", and "zz-conf-00ab12-RES-010-9@example.com" is acknowledged`,
			},
			{status: conformance.Inconclusive, finds: "no record of the batch failed"},
			{says: says{"sync_batch": results(refusal)}, status: conformance.Inconclusive, finds: "the same records without the bad value are not accepted"},
		},
	},
	"RES-018": {
		good: []talk{{says: says{"sync_batch": badRecords(refusedInPlace)}}},
		bad: []talk{
			{says: says{"sync_batch": badRecords(failure(-32000, "null value in column last_name"))}, finds: "null value in column last_name"},
			{says: says{"sync_batch": failure(-32000, "down")}, status: conformance.Inconclusive, finds: "the same records without the bad value are not accepted"},
			{says: says{"sync_batch": results(acknowledged)}, status: conformance.Inconclusive, finds: "no record was refused"},
		},
	},
	"RES-019": {
		good: []talk{
			{says: says{"sync_batch": first(1, results(acknowledged), results(`{"identifier":null,"success":false,"error_message":"no identifier"}`))}},
			{says: says{"sync_batch": first(1, results(acknowledged), failure(-32602, "a record has no identifier"))}},
		},
		bad: []talk{{finds: `{"identifier":null,"success":true}`}},
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
			{},
			{says: says{"sync_batch:insert": results(refusal, acknowledged)}, notes: "insert of new records: 1 of 2 were refused"},
		},
		bad: []talk{
			{says: says{"sync_batch:insert": results(refusal)}, finds: "expected insert of new records accepted"},
			{says: says{"sync_batch:update": results(refusal)}, finds: "expected update of records that are there accepted"},
			{says: says{"sync_batch:delete": results(refusal)}, finds: "expected delete of records that are there accepted"},
			{ // the new ones and those that were made for the changes, then none
				says:  says{"sync_batch:upsert": first(4, results(acknowledged), results(refusal))},
				finds: "expected upsert of records that are there accepted",
			},
			{says: says{"sync_batch": results(refusal)}, finds: "expected upsert of new records accepted"},
			{says: says{"sync_batch:insert": failure(-32000, "insert is switched off")}, finds: "insert is switched off"},
		},
	},
	"RES-013": {
		good: []talk{
			{},
			{ // a batch that is refused as a whole is split, as the service does
				says: says{"sync_batch:insert": when(func(a *asked) bool { return len(a.records) > 1 }, failure(-32000, "one is bad"), results(acknowledged))},
			},
		},
		bad: []talk{
			{says: says{"sync_batch:update": when(mapsLittle, failure(-32603, "syntax error near WHERE"), results(acknowledged))}, finds: "syntax error near WHERE"},
			{ // every update is an error: it is not the plan
				says:   says{"sync_batch:update": failure(-32603, "updates are off")},
				status: conformance.Inconclusive, finds: "updates are off",
			},
			{ // what is required can be changed, so that a refusal shows nothing
				says:   says{"sync_batch:update": results(refusal)},
				status: conformance.Inconclusive, finds: "record not present",
			},
			{ // refused record by record, and a fuller one is taken
				says:  says{"sync_batch:insert": perRecord(fewerThan(4), refusal, acknowledged)},
				finds: "expected insert of new records accepted also where only the identifier and what is required are mapped",
			},
			{says: says{"sync_batch": results(refusal)}, status: conformance.Inconclusive, finds: "no record was accepted"},
		},
	},
	"RES-020": {
		good: []talk{
			{},
			{says: says{"sync_batch": perRecord(holding("\\u00e9"), refusedText, acknowledged)}}, // DAT-014's, everywhere alike
		},
		bad: []talk{
			{
				says:  says{"sync_batch:update": perRecord(holding("\\u00e9"), refusedText, acknowledged)},
				finds: "expected text outside ASCII accepted in update of records that are there, as in insert of new records",
			},
			{
				says:  says{"sync_batch:insert": perRecord(holding("null"), refusedText, acknowledged)},
				finds: "expected null accepted in insert of new records",
			},
			{says: says{"sync_batch": results(refusal)}, status: conformance.Inconclusive, finds: "every record was refused"},
		},
	},
	"DAT-014": {
		bad: []talk{
			{says: says{"sync_batch": perRecord(holding("\\u00e9"), refusedText, acknowledged)}, finds: "text outside ASCII accepted in last_name"},
			{says: says{"sync_batch": perRecord(holding("null"), refusedText, acknowledged)}, finds: "null accepted in first_name"},
			{says: says{"sync_batch": perRecord(holding(`"-`), refusedText, acknowledged)}, finds: "a negative decimal accepted in balance, which is declared as decimal"},
			{says: says{"sync_batch": perRecord(holding("<b>"), refusedText, acknowledged)}, finds: "no such text"},
			{says: says{"sync_batch": results(refusal)}, status: conformance.Inconclusive, finds: "every record was refused"}, // OPS-007's
		},
	},
}

// mapsLittle tells a batch whose records carry only what every plan must map.
func mapsLittle(a *asked) bool {
	if len(a.records) == 0 {
		return false
	}
	_, more := a.records[0]["age"]
	return !more
}
