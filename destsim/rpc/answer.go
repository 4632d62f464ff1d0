package rpc

import "fmt"

// Answer is a reply to sync_batch as it was scanned, by places in its bytes, so
// that a caller can recognise the next one of the same form.
type Answer struct {
	// ID is the raw id, nil where there is none; it starts at IDAt.
	ID   []byte
	IDAt int
	// Error is the error object of the reply; there are no results beside it.
	Error *Error
	// First is where the first entry of record_results starts, 0 without one.
	First int

	entry Entry // handed out, so that none is allocated
}

// Entry is one entry of record_results (spec 7.2.4). Identifier and Message are
// raw values within the reply, nil where absent. Success is true only where the
// entry says so with the boolean true.
type Entry struct {
	Start, End          int // End is the index after the closing brace
	Identifier, Message []byte
	IdentifierAt        int
	Success             bool
}

// ScanAnswer decodes a reply to sync_batch in one pass, by the rules of
// DecodeResponse and ScanResults but for the id, which the caller compares. It
// calls each for every entry in the order of the wire; the entry is good until
// each returns. a is overwritten and can be used again, and then nothing is
// allocated unless the reply is an error. Entries before a fault must not count.
//
// The error is one of DecodeResponse, of ScanResults, or of each as it is.
func ScanAnswer(body []byte, a *Answer, each func(*Entry) error) error {
	*a = Answer{}
	i := skipSpace(body, 0)
	if i == len(body) || body[i] != '{' {
		if at, f := skipText(body); f != faultNone {
			return answerFault(at, f)
		}
		return envelopeError("the reply is not an object")
	}
	s := answerScan{body: body, each: each, answer: a}
	at, f, err := s.members(i)
	switch {
	case err != nil:
		return err
	case f != faultNone:
		return answerFault(at, f)
	}
	return s.check()
}

// ScanEntry scans the entry whose opening brace is body[i]; ok is false where
// no object stands there or it is not JSON.
func ScanEntry(body []byte, i int, e *Entry) (ok bool) {
	if i < 0 || i >= len(body) || body[i] != '{' {
		return false
	}
	end, f := scanEntry(body, i, e)
	return f == faultNone && end <= len(body)
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
func (s *answerScan) members(i int) (int, fault, error) {
	b := s.body
	i = skipSpace(b, i+1)
	more := true
	if i < len(b) && b[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := skipKey(b, i)
		if f != faultNone {
			return v, f, nil
		}
		key := plainKey(b[i+1 : end])
		if string(key) == "result" && s.result == nil && b[v] == '{' {
			var err error
			if i, f, err = s.object(v); err != nil {
				return i, f, err
			}
		} else if i, f = skipValue(b, v, 1); f == faultNone && string(key) == "result" && s.result != nil {
			s.shape = envelopeError("result is repeated")
		}
		if f != faultNone {
			return i, f, nil
		}
		s.set(key, v, i)
		if i, more, f = nextMember(b, i); f != faultNone {
			return i, f, nil
		}
	}
	if i = skipSpace(b, i); i != len(b) {
		return i, faultTrailing, nil
	}
	return i, faultNone, nil
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
func (s *answerScan) object(i int) (int, fault, error) {
	b := s.body
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, faultNone, nil
	}
	for {
		end, v, f := skipKey(b, i)
		if f != faultNone {
			return v, f, nil
		}
		if string(plainKey(b[i+1:end])) != "record_results" {
			i, f = skipValue(b, v, 2)
		} else {
			if s.found {
				s.shape = fmt.Errorf("scan results: %w: record_results is repeated", ErrResults)
			}
			var err error
			if i, f, err = s.entries(v); err != nil {
				return i, f, err
			}
		}
		if f != faultNone {
			return i, f, nil
		}
		var more bool
		if i, more, f = nextMember(b, i); f != faultNone || !more {
			return i, f, nil
		}
	}
}

// entries reads record_results. What has the wrong shape is still read to its
// end: "not JSON" is the graver fault.
func (s *answerScan) entries(i int) (int, fault, error) {
	b := s.body
	s.found = true
	if b[i] != '[' {
		s.shape = fmt.Errorf("scan results: %w: record_results is not an array", ErrResults)
		i, f := skipValue(b, i, 2)
		return i, f, nil
	}
	i, more, f := firstElement(b, i)
	if more && f == faultNone && s.answer.First == 0 {
		s.answer.First = i
	}
	e := &s.answer.entry
	for more && f == faultNone {
		if b[i] != '{' {
			s.shape = fmt.Errorf("scan results: %w: an entry is not an object", ErrResults)
			i, f = skipValue(b, i, entryDepth)
		} else if i, f = scanEntry(b, i, e); f == faultNone && s.shape == nil {
			if err := s.each(e); err != nil {
				return i, f, err
			}
		}
		if f == faultNone {
			i, more, f = nextElement(b, i)
		}
	}
	return i, f, nil
}

// scanEntry scans the object at i into e.
func scanEntry(b []byte, i int, e *Entry) (int, fault) {
	*e = Entry{Start: i}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		e.End = i + 1
		return e.End, faultNone
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
			e.Identifier, e.IdentifierAt = b[v:i:i], v
		case "success":
			e.Success = b[v] == 't'
		case "error_message":
			e.Message = b[v:i:i]
		}
		var more bool
		if i, more, f = nextMember(b, i); f != faultNone || !more {
			e.End = i
			return i, f
		}
	}
}

// check judges the envelope as DecodeResponse does, and then the results.
func (s *answerScan) check() error {
	version, _ := textOf(s.version)
	switch {
	case version != Version:
		return envelopeError(`jsonrpc is not "2.0"`)
	case s.result != nil && s.failure != nil:
		return envelopeError("result and error are both present")
	case s.failure != nil:
		var err error
		s.answer.Error, err = decodeError(s.failure)
		return err
	case s.result == nil:
		return envelopeError("neither result nor error is present")
	case s.result[0] != '{':
		return envelopeError("result is not an object")
	case s.shape != nil:
		return s.shape
	case !s.found:
		return fmt.Errorf("scan results: %w: record_results is missing", ErrResults)
	}
	return nil
}

func answerFault(at int, f fault) error {
	return fmt.Errorf("decode response: %w", syntaxError(at, f))
}
