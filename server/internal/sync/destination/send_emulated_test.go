package destination

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// emulatedSalesforce opens a sender of an emulated type, and a way to read what
// its store holds: field values by the first field.
func emulatedSalesforce(t *testing.T) (s Sender, read func(object, by string) map[string]map[string]json.RawMessage) {
	t.Helper()
	sims := &simulators{}
	g := newGate(t, Options{Emulate: func(key string, objects []catalogue.EmulatedObject) (*Emulated, error) {
		e, err := sims.emulate(key, objects)
		if err != nil {
			return nil, err
		}
		sim := sims.last
		e.Records = func(object string, after int64, limit int) ([]json.RawMessage, int, error) {
			records, total, err := sim.Records(object, after, limit)
			var out []json.RawMessage
			for _, r := range records {
				out = append(out, api.Raw(r))
			}
			return out, total, err
		}
		return e, nil
	}})
	merged, problems := g.CheckConnection("salesforce", creds(t, emulatedCreds["salesforce"]), nil)
	require.Empty(t, problems)
	s, err := g.Sender(7, "salesforce", merged)
	require.NoError(t, err)
	return s, func(object, by string) map[string]map[string]json.RawMessage {
		store, err := g.Store(7, "salesforce")
		require.NoError(t, err)
		list, _, err := store.Records(object, 0, 10_000)
		require.NoError(t, err)
		found := map[string]map[string]json.RawMessage{}
		for _, text := range list {
			var record struct {
				Fields map[string]json.RawMessage `json:"fields"`
			}
			require.NoError(t, json.Unmarshal(text, &record))
			found[string(record.Fields[by])] = record.Fields
		}
		return found
	}
}

func salesforcePlan(object, identifier string, fields map[string]rpc.Field) *Plan {
	schema := map[string]rpc.SchemaField{}
	for name, f := range fields {
		f.APIName, f.Label, f.Createable, f.Updateable, f.Identifier = name, name, true, true, name == identifier
		schema[name] = rpc.SchemaField{ActiveIdentifier: name == identifier, Field: f}
	}
	return NewPlan(rpc.SyncPlan{Object: rpc.ObjectRef{APIName: object, Label: object}, Operation: rpc.OperationUpsert, SyncRunID: 1, SyncID: 2, Schema: schema}, nil)
}

var textField = rpc.Field{Type: rpc.TypeString}

func contacts() *Plan {
	return salesforcePlan("Contact", "External_ID__c", map[string]rpc.Field{
		"External_ID__c": textField, "LastName": textField, "account": textField, "Interests__c": {Type: rpc.TypeString, Array: true},
	})
}

func sendAll(t *testing.T, s batchSender, plan *Plan, records ...string) map[string]string {
	t.Helper()
	reply := sent(t, s, plan, batchOf(records...))
	require.Len(t, reply.Results, len(records))
	verdicts := map[string]string{}
	for _, r := range reply.Results {
		verdicts[string(r.Identifier)] = r.ErrorMessage
		require.Equal(t, r.Success, r.ErrorMessage == "", r.ErrorMessage)
	}
	return verdicts
}

// A replacement removes all records that were not sent, whoever made them, and keeps those that
// the store refuses to change (spec 2.6, upload_and_swap).
func TestEmulatedSwap(t *testing.T) {
	s, read := emulatedSalesforce(t)
	plan := contacts()
	for i := range 3 {
		var records []string
		for j := range 400 {
			records = append(records, fmt.Sprintf(`{"External_ID__c":"old-%d-%d","LastName":"x"}`, i, j))
		}
		sendAll(t, s, plan, records...)
	}
	w, err := s.(Swapper).Swap(t.Context(), plan)
	require.NoError(t, err)
	verdicts := sendAll(t, w, plan, `{"External_ID__c":"old-0-1","LastName":"kept"}`, `{"External_ID__c":"n\u00e9w","LastName":"y"}`, `{"External_ID__c":"old-0-2","LastName":5}`)
	require.NotEmpty(t, verdicts[`"old-0-2"`])
	require.Len(t, read("Contact", "External_ID__c"), 1201, "nothing goes before Commit")
	require.NoError(t, w.Commit(t.Context()))
	require.NoError(t, w.Commit(t.Context()), "a commit may be repeated")
	require.NoError(t, w.Abort())
	found := read("Contact", "External_ID__c")
	require.Len(t, found, 3)
	require.JSONEq(t, `"kept"`, string(found[`"old-0-1"`]["LastName"]))
	require.JSONEq(t, `"x"`, string(found[`"old-0-2"`]["LastName"]))
	require.Contains(t, found, `"néw"`)

	_, err = s.(Swapper).Swap(t.Context(), NewPlan(rpc.SyncPlan{Object: rpc.ObjectRef{APIName: "Contact"}}, nil))
	require.ErrorContains(t, err, "no identifier")
}

// Values that an application does more with than storing them.
func TestHandling(t *testing.T) {
	s, read := emulatedSalesforce(t)
	accounts := salesforcePlan("Account", "External_ID__c", map[string]rpc.Field{"External_ID__c": textField, "Name": textField, "Website": textField})
	sendAll(t, s, accounts, `{"External_ID__c":"a1","Name":"One","Website":"one.example"}`, `{"External_ID__c":"a2","Name":"Two","Website":"two.example"}`,
		`{"External_ID__c":"a3","Name":"Two again","Website":"two.example"}`, `{"External_ID__c":"77","Name":"Seven"}`)

	plan := contacts().Handle(map[string]Handling{
		"account": {LookupObject: "Account", LookupField: "Website"}, "LastName": {Preserve: true}, "Interests__c": {Merge: true},
		"unknown": {Preserve: true}, "External_ID__c": {Preserve: true},
	})
	verdicts := sendAll(t, s, plan,
		`{"External_ID__c":"c1","LastName":"Ann","account":"one.example","Interests__c":["a","b"]}`,
		`{"External_ID__c":"c2","LastName":"Bob","account":"nobody.example"}`,
		`{"External_ID__c":"c3","LastName":"Cid","account":"two.example"}`,
		`{"External_ID__c":"c4","LastName":"Dan","account":null,"Interests__c":null}`)
	require.Equal(t, map[string]string{
		`"c1"`: "", `"c4"`: "",
		`"c2"`: `field "account": no record of "Account" has this Website`,
		`"c3"`: `field "account": 2 records of "Account" have this Website`,
	}, verdicts)
	found := read("Contact", "External_ID__c")
	require.Len(t, found, 2)
	require.JSONEq(t, `"1"`, string(found[`"c1"`]["account"]))

	// Values that are there stay, arrays grow, and references that appear are found.
	sendAll(t, s, accounts, `{"External_ID__c":"a4","Name":"New","Website":"nobody.example"}`)
	verdicts = sendAll(t, s, plan.With(rpc.OperationUpsert),
		`{"External_ID__c":"c1","LastName":"Changed","account":"one.example","Interests__c":["b","c","c"]}`,
		`{"External_ID__c":"c4","LastName":"Changed","Interests__c":["x"]}`,
		`{"External_ID__c":"c2","LastName":"Bob","account":"nobody.example"}`)
	require.Equal(t, map[string]string{`"c1"`: "", `"c2"`: "", `"c4"`: ""}, verdicts)
	found = read("Contact", "External_ID__c")
	require.JSONEq(t, `"Ann"`, string(found[`"c1"`]["LastName"]))
	require.JSONEq(t, `["a","b","c"]`, string(found[`"c1"`]["Interests__c"]))
	require.JSONEq(t, `["x"]`, string(found[`"c4"`]["Interests__c"]))
	require.JSONEq(t, `"7"`, string(found[`"c2"`]["account"]))

	// A number finds the text, and another sender sees what this one wrote.
	byID := contacts().Handle(map[string]Handling{"account": {LookupObject: "Account", LookupField: "External_ID__c"}})
	sendAll(t, s, byID, `{"External_ID__c":"c5","LastName":"Eve","account":77}`)
	require.JSONEq(t, `"4"`, string(read("Contact", "External_ID__c")[`"c5"`]["account"]))
}

// All records of a batch may be refused before the store is called.
func TestHandlingRefusesAll(t *testing.T) {
	s, read := emulatedSalesforce(t)
	plan := contacts().Handle(map[string]Handling{"account": {LookupObject: "Account", LookupField: "Website"}})
	verdicts := sendAll(t, s, plan, `{"External_ID__c":"c1","LastName":"Ann","account":"x"}`)
	require.NotEmpty(t, verdicts[`"c1"`])
	require.Empty(t, read("Contact", "External_ID__c"))
	broken := contacts().Handle(map[string]Handling{"account": {LookupObject: "Fax", LookupField: "Number"}})
	_, err := s.Send(t.Context(), broken, batchOf(`{"External_ID__c":"c1","LastName":"Ann","account":"x"}`))
	failed := failedCall(t, err)
	require.Contains(t, failed.Message, `"Fax"`)
}
