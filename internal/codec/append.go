package codec

import (
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// AppendBatchResult appends the result object of sync_batch. Identifiers are
// copied as they are and error_message is left out where it is empty, so
// nothing is allocated beyond dst.
func AppendBatchResult(dst []byte, results []rpc.RecordResult) []byte {
	dst = append(dst, `{"record_results":[`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		r := &results[i]
		dst = AppendRecordResult(dst, r.Identifier, r.Success, r.ErrorMessage)
	}
	return append(dst, ']', '}')
}

// AppendRecordResult appends one entry of record_results (spec 7.2.4).
// identifier is the raw value that was sent; nil stands for null.
func AppendRecordResult(dst, identifier []byte, success bool, message string) []byte {
	dst = append(dst, `{"identifier":`...)
	if len(identifier) == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, identifier...)
	}
	if success {
		dst = append(dst, `,"success":true`...)
	} else {
		dst = append(dst, `,"success":false`...)
	}
	if message != "" {
		dst = rawjson.AppendString(append(dst, `,"error_message":`...), message)
	}
	return append(dst, '}')
}
