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

// answer decodes one call and answers every record with success.
func answer(tb testing.TB, dst, body []byte, r *rpc.Request, b *Batch) []byte {
	if err := DecodeCall(body, r, b); err != nil {
		tb.Fatal(err)
	}
	dst = append(dst, `{"record_results":[`...)
	for i := range b.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		id, _ := b.Record(i).Field(b.Identifier)
		dst = AppendRecordResult(dst, id, true, "")
	}
	return append(dst, ']', '}')
}

// answerJSON does the same with encoding/json and maps.
func answerJSON(tb testing.TB, body []byte) []byte {
	var req map[string]any
	if err := json.Unmarshal(body, &req); err != nil {
		tb.Fatal(err)
	}
	params := req["params"].(map[string]any)
	var results []map[string]any
	for _, r := range params["records"].([]any) {
		results = append(results, map[string]any{
			"identifier": r.(map[string]any)["email"], "success": true,
		})
	}
	out, err := json.Marshal(map[string]any{"record_results": results})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func benchSizes(b *testing.B, run func(b *testing.B, body []byte)) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			body := benchBody(b, n)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			run(b, body)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	benchSizes(b, func(b *testing.B, body []byte) {
		var req rpc.Request
		var batch Batch
		var dst []byte
		for b.Loop() {
			dst = answer(b, dst[:0], body, &req, &batch)
		}
	})
}

// BenchmarkAnswerNewPlan forgets the plan between the calls.
func BenchmarkAnswerNewPlan(b *testing.B) {
	benchSizes(b, func(b *testing.B, body []byte) {
		var req rpc.Request
		var batch Batch
		var dst []byte
		for b.Loop() {
			batch.last = nil
			dst = answer(b, dst[:0], body, &req, &batch)
		}
	})
}

func BenchmarkAnswerEncodingJSON(b *testing.B) {
	benchSizes(b, func(b *testing.B, body []byte) {
		for b.Loop() {
			answerJSON(b, body)
		}
	})
}

func BenchmarkScanResults(b *testing.B) {
	var req rpc.Request
	var batch Batch
	result := answer(b, nil, benchBody(b, 1000), &req, &batch)
	b.SetBytes(int64(len(result)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := rpc.ScanResults(result, func(_ []byte, success bool, _ []byte) error {
			if success {
				n++
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
}
