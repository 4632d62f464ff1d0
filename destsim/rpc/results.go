package rpc

import (
	"fmt"

	"github.com/destkit/destkit/internal/rawjson"
)

// ScanResults walks the result of sync_batch and calls fn for every entry of record_results, in the
// order of the wire, without allocating. identifier and message are raw values within result, nil
// where absent. success is true only when the entry has the boolean true: a record without explicit
// success has failed.
//
// An error of fn ends the walk and is returned as it is. Text that is not JSON
// is an error that names the byte, a wrong shape wraps ErrResults; fn may have been
// called for entries before the fault, which then must not count.
func ScanResults(result []byte, fn func(identifier []byte, success bool, message []byte) error) error {
	i := rawjson.SkipSpace(result, 0)
	if i == len(result) || result[i] != '{' {
		return resultsError(result, "the result is not an object")
	}
	i = rawjson.SkipSpace(result, i+1)
	more, found := true, false
	if i < len(result) && result[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := rawjson.SkipKey(result, i)
		if f != rawjson.FaultNone {
			return resultsFault(v, f)
		}
		if string(rawjson.PlainKey(result[i+1:end])) == "record_results" {
			if found {
				return resultsError(result, "record_results is repeated")
			}
			found = true
			var err error
			if i, err = scanEntries(result, v, fn); err != nil {
				return err
			}
		} else if i, f = rawjson.SkipValue(result, v, 1); f != rawjson.FaultNone {
			return resultsFault(i, f)
		}
		if i, more, f = rawjson.NextMember(result, i); f != rawjson.FaultNone {
			return resultsFault(i, f)
		}
	}
	if i = rawjson.SkipSpace(result, i); i != len(result) {
		return resultsFault(i, rawjson.FaultTrailing)
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
	i, more, f := rawjson.FirstElement(b, i)
	for more && f == rawjson.FaultNone {
		if b[i] != '{' {
			return i, resultsError(b, "an entry is not an object")
		}
		var e entry
		if i, f = e.scan(b, i); f != rawjson.FaultNone {
			return i, resultsFault(i, f)
		}
		if err := fn(e.identifier, e.success, e.message); err != nil {
			return i, err
		}
		i, more, f = rawjson.NextElement(b, i)
	}
	if f != rawjson.FaultNone {
		return i, resultsFault(i, f)
	}
	return i, nil
}

// entry is one element of record_results while it is scanned.
type entry struct {
	identifier, message []byte
	success             bool
}

// entryDepth is how deep a member of an entry is: result, array, entry.
const entryDepth = 3

func (e *entry) scan(b []byte, i int) (int, rawjson.Fault) {
	i = rawjson.SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, rawjson.FaultNone
	}
	for {
		end, v, f := rawjson.SkipKey(b, i)
		if f != rawjson.FaultNone {
			return v, f
		}
		key := b[i+1 : end]
		if i, f = rawjson.SkipValue(b, v, entryDepth); f != rawjson.FaultNone {
			return i, f
		}
		switch string(rawjson.PlainKey(key)) {
		case "identifier":
			e.identifier = b[v:i:i]
		case "success":
			e.success = b[v] == 't'
		case "error_message":
			e.message = b[v:i:i]
		}
		var more bool
		if i, more, f = rawjson.NextMember(b, i); f != rawjson.FaultNone || !more {
			return i, f
		}
	}
}

func resultsFault(at int, f rawjson.Fault) error {
	return fmt.Errorf("scan results: %w", rawjson.ErrorAt(at, f))
}

// resultsError reports a wrong shape, unless the text is not even JSON.
func resultsError(b []byte, what string) error {
	if at, f := rawjson.SkipText(b); f != rawjson.FaultNone {
		return resultsFault(at, f)
	}
	return fmt.Errorf("scan results: %w: %s", ErrResults, what)
}
