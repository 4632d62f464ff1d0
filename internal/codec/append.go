package codec

import "github.com/destkit/destkit/internal/rawjson"

// AppendRecordResult appends one entry of record_results (spec 7.2.4).
// identifier is the raw value that was sent; nil means null.
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
