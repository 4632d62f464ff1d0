package codec

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/destkit/destkit/destsim/rpc"
)

// benchPlan is a plan of ten fields, about 2.1 KB; with one record of about
// 230 bytes the body is the published measure f1.
func benchPlan() rpc.SyncPlan {
	types := []string{rpc.TypeString, rpc.TypeString, rpc.TypeString, rpc.TypeInteger, rpc.TypeFloat,
		rpc.TypeDecimal, rpc.TypeDate, rpc.TypeDateTime, rpc.TypeBoolean, rpc.TypeString}
	names := []string{"email", "first_name", "last_name", "age", "score",
		"balance", "birthday", "seen_at", "active", "city"}
	p := rpc.SyncPlan{
		Object:    rpc.ObjectRef{APIName: "contact", Label: "Contacts"},
		Operation: rpc.OperationUpsert, SyncRunID: 602, SyncID: 309,
		Schema: map[string]rpc.SchemaField{},
	}
	for i, n := range names {
		p.Schema[n] = rpc.SchemaField{ActiveIdentifier: i == 0, Field: rpc.Field{
			APIName: n, Label: "The " + n, Identifier: i == 0, Required: i == 0,
			Createable: true, Updateable: true, Type: types[i],
		}}
	}
	return p
}

func benchBody(tb testing.TB, n int) []byte {
	plan, err := json.Marshal(benchPlan())
	if err != nil {
		tb.Fatal(err)
	}
	params := append([]byte(`{"sync_plan":`), plan...)
	params = append(params, `,"records":[`...)
	for i := range n {
		if i > 0 {
			params = append(params, ',')
		}
		params = fmt.Appendf(params, `{"email":"user%06d@example.com","first_name":"Firstname%d","last_name":"Lastname%d",`+
			`"age":%d,"score":42.42,"balance":"1234.1234","birthday":"2021-03-29","seen_at":"2021-03-29T16:32:23Z",`+
			`"active":true,"city":"Springfield %d"}`, i, i, i, i%90, i)
	}
	params = append(params, ']', '}')
	return rpc.EncodeRequest(nil, rpc.MethodSyncBatch, params, "d06835ea44ee2e9eb1f5dcd8bbfbe5c6")
}
