package codec

import (
	"fmt"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// Answer is a reply to sync_batch as it was scanned, by places in its bytes, so
// that a caller can recognise the next one of the same form.
type Answer struct {
	// ID is the raw id, nil where there is none; it starts at IDAt.
	ID   []byte
	IDAt int
	// Error is the error object of the reply; there are no results with it.
	Error *rpc.Error
	// First is where the first entry of record_results starts, 0 without one.
	First int

	entry Entry // handed out, so that none is allocated
}

// Entry is one entry of record_results (spec 7.2.4). Identifier and Message are
// raw values within the reply, nil where absent. Success is true only where the
// entry has the boolean true.
type Entry struct {
	Start, End          int // End is the index after the closing brace
	Identifier, Message []byte
	IdentifierAt        int
	Success             bool
}

// ScanAnswer decodes a reply to sync_batch in one pass, by the rules of
// rpc.DecodeResponse and rpc.ScanResults but for the id, which the caller compares. It
// calls each for every entry in the order of the wire; the entry is good until
// each returns. a is overwritten and can be used again, and then nothing is
// allocated unless the reply is an error. Entries before a fault must not count.
//
// The error is one of rpc.DecodeResponse, of rpc.ScanResults, or of each as it is.
func ScanAnswer(body []byte, a *Answer, each func(*Entry) error) error {
	*a = Answer{}
	i := rawjson.SkipSpace(body, 0)
	if i == len(body) || body[i] != '{' {
		_, _, err := rpc.DecodeResponse(body, "")
		return err
	}
	s := answerScan{body: body, each: each, answer: a}
	at, f, err := s.members(i)
	switch {
	case err != nil:
		return err
	case f != rawjson.FaultNone:
		return fmt.Errorf("decode response: %w", rawjson.ErrorAt(at, f))
	}
	return s.check()
}

// ScanEntry scans the entry whose opening brace is body[i]; ok is false where
// there is no object or it is not JSON.
func ScanEntry(body []byte, i int, e *Entry) (ok bool) {
	if i < 0 || i >= len(body) || body[i] != '{' {
		return false
	}
	end, f := scanEntry(body, i, e)
	return f == rawjson.FaultNone && end <= len(body)
}

// answerScan is a reply while it is scanned.
type answerScan struct {
	body            []byte
	each            func(*Entry) error
	answer          *Answer
	version, result []byte
	failure         []byte // the error member
	shape           error  // what is wrong with the result
	found           bool   // record_results was there
}

// members reads the envelope; only an error of each comes back as one.
func (s *answerScan) members(i int) (int, rawjson.Fault, error) {
	b := s.body
	i = rawjson.SkipSpace(b, i+1)
	more := true
	if i < len(b) && b[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := rawjson.SkipKey(b, i)
		if f != rawjson.FaultNone {
			return v, f, nil
		}
		key := rawjson.PlainKey(b[i+1 : end])
		if string(key) == "result" && s.result == nil && b[v] == '{' {
			var err error
			if i, f, err = s.object(v); err != nil {
				return i, f, err
			}
		} else if i, f = rawjson.SkipValue(b, v, 1); f == rawjson.FaultNone && string(key) == "result" && s.result != nil {
			s.shape = fmt.Errorf("decode response: %w: result is repeated", rpc.ErrEnvelope)
		}
		if f != rawjson.FaultNone {
			return i, f, nil
		}
		s.set(key, v, i)
		if i, more, f = rawjson.NextMember(b, i); f != rawjson.FaultNone {
			return i, f, nil
		}
	}
	if i = rawjson.SkipSpace(b, i); i != len(b) {
		return i, rawjson.FaultTrailing, nil
	}
	return i, rawjson.FaultNone, nil
}

func (s *answerScan) set(key []byte, v, end int) {
	raw := s.body[v:end:end]
	switch string(key) {
	case "jsonrpc":
		s.version = raw
	case "id":
		s.answer.ID, s.answer.IDAt = raw, v
	case "result":
		s.result = raw
	case "error":
		s.failure = raw
	}
}

// object reads the result.
func (s *answerScan) object(i int) (int, rawjson.Fault, error) {
	b := s.body
	i = rawjson.SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, rawjson.FaultNone, nil
	}
	for {
		end, v, f := rawjson.SkipKey(b, i)
		if f != rawjson.FaultNone {
			return v, f, nil
		}
		if string(rawjson.PlainKey(b[i+1:end])) != "record_results" {
			i, f = rawjson.SkipValue(b, v, 2)
		} else {
			if s.found {
				s.shape = fmt.Errorf("scan results: %w: record_results is repeated", rpc.ErrResults)
			}
			var err error
			if i, f, err = s.entries(v); err != nil {
				return i, f, err
			}
		}
		if f != rawjson.FaultNone {
			return i, f, nil
		}
		var more bool
		if i, more, f = rawjson.NextMember(b, i); f != rawjson.FaultNone || !more {
			return i, f, nil
		}
	}
}

// entries reads record_results. An entry with the wrong shape is still read
// to its end: "not JSON" is the graver fault.
func (s *answerScan) entries(i int) (int, rawjson.Fault, error) {
	b := s.body
	s.found = true
	if b[i] != '[' {
		s.shape = fmt.Errorf("scan results: %w: record_results is not an array", rpc.ErrResults)
		i, f := rawjson.SkipValue(b, i, 2)
		return i, f, nil
	}
	i, more, f := rawjson.FirstElement(b, i)
	if more && f == rawjson.FaultNone && s.answer.First == 0 {
		s.answer.First = i
	}
	e := &s.answer.entry
	for more && f == rawjson.FaultNone {
		if b[i] != '{' {
			s.shape = fmt.Errorf("scan results: %w: an entry is not an object", rpc.ErrResults)
			i, f = rawjson.SkipValue(b, i, answerDepth)
		} else if i, f = scanEntry(b, i, e); f == rawjson.FaultNone && s.shape == nil {
			if err := s.each(e); err != nil {
				return i, f, err
			}
		}
		if f == rawjson.FaultNone {
			i, more, f = rawjson.NextElement(b, i)
		}
	}
	return i, f, nil
}

// scanEntry scans the object at i into e.
func scanEntry(b []byte, i int, e *Entry) (int, rawjson.Fault) {
	*e = Entry{Start: i}
	i = rawjson.SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		e.End = i + 1
		return e.End, rawjson.FaultNone
	}
	for {
		end, v, f := rawjson.SkipKey(b, i)
		if f != rawjson.FaultNone {
			return v, f
		}
		key := b[i+1 : end]
		if i, f = rawjson.SkipValue(b, v, answerDepth); f != rawjson.FaultNone {
			return i, f
		}
		switch string(rawjson.PlainKey(key)) {
		case "identifier":
			e.Identifier, e.IdentifierAt = b[v:i:i], v
		case "success":
			e.Success = b[v] == 't'
		case "error_message":
			e.Message = b[v:i:i]
		}
		var more bool
		if i, more, f = rawjson.NextMember(b, i); f != rawjson.FaultNone || !more {
			e.End = i
			return i, f
		}
	}
}

// check judges the envelope as rpc.DecodeResponse does, and then the results.
func (s *answerScan) check() error {
	switch {
	case !isVersion(s.version) || s.failure != nil || s.result == nil || s.result[0] != '{':
		var err error
		_, s.answer.Error, err = rpc.DecodeResponse(s.body, "")
		return err
	case s.shape != nil:
		return s.shape
	case !s.found:
		return fmt.Errorf("scan results: %w: record_results is missing", rpc.ErrResults)
	}
	return nil
}

// answerDepth is how deep a member of an entry is: result, array, entry.
const answerDepth = 3

func isVersion(raw []byte) bool {
	if string(raw) == `"`+rpc.Version+`"` {
		return true
	}
	text, err := rawjson.StringText(raw)
	return err == nil && text == rpc.Version
}
