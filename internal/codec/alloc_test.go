package codec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// TestNoAllocations: with reused buffers a batch costs no allocation at all,
// whatever the number of its records and fields.
func TestNoAllocations(t *testing.T) {
	var req rpc.Request
	batch := Batch{Plans: new(PlanCache)}
	body := benchBody(t, 1000)
	require.NoError(t, DecodeCall(body, &req, &batch))
	params := append([]byte(nil), req.Params...)
	results := make([]rpc.RecordResult, batch.Len())
	for i := range results {
		results[i].Identifier, _ = batch.Record(i).Field("email")
		results[i].ErrorMessage = "no \"such\"\n récord"
	}
	result, err := json.Marshal(rpc.BatchResult{RecordResults: results})
	require.NoError(t, err)
	dst := make([]byte, 0, 2*len(body))
	small, answered := []byte(planningBody), []byte(answers[1])
	var answer Answer

	for name, run := range map[string]func(){
		"DecodeCall":  func() { _ = DecodeCall(body, &req, &batch) },
		"DecodeBatch": func() { _ = DecodeBatch(params, &batch) },
		"planning":    func() { _ = DecodeCall(small, &req, &batch) },
		"Field": func() {
			_ = DecodeBatch(params, &batch)
			for i := range batch.Len() {
				for j := range batch.Record(i).Len() {
					batch.Record(i).At(j)
				}
				batch.Record(i).Field("city")
			}
		},
		"Valid":              func() { _ = rawjson.Valid(body) },
		"EncodeRequest":      func() { rpc.EncodeRequest(dst[:0], rpc.MethodSyncBatch, params, "1") },
		"AppendRecordResult": func() { AppendRecordResult(dst[:0], results[0].Identifier, false, results[0].ErrorMessage) },
		"AppendResponse":     func() { rpc.AppendResponse(dst[:0], req.RawID, result) },
		"ScanAnswer":         func() { _ = ScanAnswer(answered, &answer, func(*Entry) error { return nil }) },
		"ScanResults": func() {
			n := 0
			_ = rpc.ScanResults(result, func(_ []byte, _ bool, message []byte) error { n += len(message); return nil })
		},
	} {
		require.Zero(t, testing.AllocsPerRun(20, run), name)
	}
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() { _, _ = rpc.DecodeRequest(body) }), 1.0, "only the text of the id")
}
