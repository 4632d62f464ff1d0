package rpc

import (
	"errors"
	"fmt"
)

// ErrResults is the error of a result of sync_batch that has not the shape
// {"record_results": [{…}, …]}.
var ErrResults = errors.New("wrong shape of record_results")

// AppendBatchResult appends the result object of sync_batch. Identifiers are
// copied as they are and error_message is left out where it is empty, so
// nothing is allocated beyond dst.
func AppendBatchResult(dst []byte, results []RecordResult) []byte {
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
		dst = AppendString(append(dst, `,"error_message":`...), message)
	}
	return append(dst, '}')
}

// ScanResults walks the result of sync_batch and calls fn for every entry of
// record_results, in the order of the wire, without allocating. identifier and
// message are raw values within result, nil where absent; MessageText makes
// text of a message. success is true only when the entry says so with the
// boolean true: a record without explicit success has failed.
//
// An error of fn ends the walk and is returned as it is. Text that is not JSON
// is a wrapped *SyntaxError, a wrong shape wraps ErrResults; fn may have been
// called for entries before the fault, which then must not count.
func ScanResults(result []byte, fn func(identifier []byte, success bool, message []byte) error) error {
	i := skipSpace(result, 0)
	if i == len(result) || result[i] != '{' {
		return resultsError(result, "the result is not an object")
	}
	i = skipSpace(result, i+1)
	more, found := true, false
	if i < len(result) && result[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := skipKey(result, i)
		if f != faultNone {
			return resultsFault(v, f)
		}
		if string(plainKey(result[i+1:end])) == "record_results" {
			if found {
				return resultsError(result, "record_results is repeated")
			}
			found = true
			var err error
			if i, err = scanEntries(result, v, fn); err != nil {
				return err
			}
		} else if i, f = skipValue(result, v, 1); f != faultNone {
			return resultsFault(i, f)
		}
		if i, more, f = nextMember(result, i); f != faultNone {
			return resultsFault(i, f)
		}
	}
	if i = skipSpace(result, i); i != len(result) {
		return resultsFault(i, faultTrailing)
	}
	if !found {
		return resultsError(result, "record_results is missing")
	}
	return nil
}

func scanEntries(b []byte, i int, fn func(identifier []byte, success bool, message []byte) error) (int, error) {
	if b[i] != '[' {
		return i, resultsError(b, "record_results is not an array")
	}
	i, more, f := firstElement(b, i)
	for more && f == faultNone {
		if b[i] != '{' {
			return i, resultsError(b, "an entry is not an object")
		}
		var e entry
		if i, f = e.scan(b, i); f != faultNone {
			return i, resultsFault(i, f)
		}
		if err := fn(e.identifier, e.success, e.message); err != nil {
			return i, err
		}
		i, more, f = nextElement(b, i)
	}
	if f != faultNone {
		return i, resultsFault(i, f)
	}
	return i, nil
}

// entry is one element of record_results while it is scanned.
type entry struct {
	identifier, message []byte
	success             bool
}

// entryDepth is how deep a member of an entry stands: result, array, entry.
const entryDepth = 3

func (e *entry) scan(b []byte, i int) (int, fault) {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, faultNone
	}
	for {
		end, v, f := skipKey(b, i)
		if f != faultNone {
			return v, f
		}
		key := b[i+1 : end]
		if i, f = skipValue(b, v, entryDepth); f != faultNone {
			return i, f
		}
		switch string(plainKey(key)) {
		case "identifier":
			e.identifier = b[v:i:i]
		case "success":
			e.success = b[v] == 't'
		case "error_message":
			e.message = b[v:i:i]
		}
		var more bool
		if i, more, f = nextMember(b, i); f != faultNone || !more {
			return i, f
		}
	}
}

func resultsFault(at int, f fault) error {
	return fmt.Errorf("scan results: %w", syntaxError(at, f))
}

// resultsError reports a wrong shape, unless the text is not even JSON.
func resultsError(b []byte, what string) error {
	if at, f := skipText(b); f != faultNone {
		return resultsFault(at, f)
	}
	return fmt.Errorf("scan results: %w: %s", ErrResults, what)
}
