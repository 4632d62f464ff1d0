// Package codec reads and writes the batches of the custom destination protocol as fast as
// its bytes allow: the params of sync_batch without an allocation for each record, its
// result in one pass, and the values that a plan declares. It uses the wire types of
// destsim/rpc, which decodes everything but batches.
//
// A batch of 1,000 records is read and answered in a thirtieth of the time that
// encoding/json takes.
package codec

import (
	"bytes"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// Batch is a view of the params of one sync_batch call (spec 4.2). It keeps
// the validated bytes and one offset pair per key and value, so decoding
// allocates nothing per field or record once its slices have grown. A Batch is
// reused by decoding into it again; it hands out slices of the decoded text,
// valid as long as that text is left alone.
type Batch struct {
	// Plans remembers decoded plans for all batches that share it; nil: the
	// Batch remembers the last plan by itself.
	Plans *PlanCache
	// Plan is the decoded plan. Its Schema may be shared with other batches
	// and is only to be read.
	Plan rpc.SyncPlan
	// RawPlan is the plan as it stood in the params.
	RawPlan []byte
	// PlanID is a number of the plan: plans that Plans remembers at the same
	// time have the same bytes when they have the same number. 0: it does not
	// remember this one.
	PlanID uint64
	// Identifier names the active identifier of the plan, "" unless exactly
	// one field is.
	Identifier string

	text    []byte
	records []recordSpan
	fields  []fieldSpan
	last    *planEntry
	pattern pattern // of records, kept from batch to batch
	// expected is what the pattern expected when the scan began.
	expected *Expectation
	problem  string // why the shape is wrong, "" while it is right
	hasRecs  bool
	done     bool // params were decoded on the way by DecodeCall
	escaped  bool // some key holds an escape: keys are decoded to be compared
}

// recordSpan is one record: its bytes and its first field. same means that it
// has the names of the record before in their order, tight that there is no
// white space around its members, plain that its values are as expected.
type recordSpan struct {
	start, end, first  uint32
	same, tight, plain bool
}

// fieldSpan is one member: its key without quotes and its value.
type fieldSpan struct {
	key, keyEnd, val, end uint32
}

// longestParams is what the offsets of a batch reach.
const longestParams = 1 << 31

// DecodeBatch decodes the params of sync_batch into b and reuses what b holds.
// params must be an object with a sync_plan object and a records array of
// objects; additional keys are ignored, of a repeated key the last counts.
//
// The error is an *rpc.Error: -32700 when params is not JSON in UTF-8, -32602 when
// its shape is wrong. After an error b is empty.
func DecodeBatch(params []byte, b *Batch) error {
	if len(params) >= longestParams {
		return invalid(rpc.CodeInvalidParams, "invalid params: longer than 2 GiB")
	}
	b.reset(nil)
	i := rawjson.SkipSpace(params, 0)
	f := rawjson.FaultEnd
	if i < len(params) {
		i, f = b.scan(params, i, 0)
	}
	if f == rawjson.FaultNone {
		if i = rawjson.SkipSpace(params, i); i != len(params) {
			f = rawjson.FaultTrailing
		}
	}
	if f != rawjson.FaultNone {
		b.reset(nil)
		return parseError(i, f)
	}
	if b.problem != "" {
		err := invalid(rpc.CodeInvalidParams, "invalid params: "+b.problem)
		b.reset(nil)
		return err
	}
	return nil
}

func parseError(at int, f rawjson.Fault) *rpc.Error {
	return invalid(rpc.CodeParseError, "parse error: "+rawjson.ErrorAt(at, f).Error())
}

func invalid(code int64, message string) *rpc.Error { return &rpc.Error{Code: code, Message: message} }

func (b *Batch) reset(text []byte) {
	b.Plan, b.RawPlan, b.Identifier, b.PlanID = rpc.SyncPlan{}, nil, "", 0
	b.text, b.records, b.fields = text, b.records[:0], b.fields[:0]
	b.problem, b.hasRecs, b.done, b.escaped = "", false, false, false
}

// scan decodes the params at text[i]; depth counts the containers around them.
// Text that is JSON but has the wrong shape is scanned to its end, so that
// "not JSON" is always reported as such, and leaves b.problem.
func (b *Batch) scan(text []byte, i, depth int) (int, rawjson.Fault) {
	if len(text) >= longestParams {
		b.problem = "longer than 2 GiB"
		return rawjson.SkipValue(text, i, depth)
	}
	b.reset(text)
	if text[i] != '{' {
		b.problem = "params is not an object"
		return rawjson.SkipValue(text, i, depth)
	}
	i = rawjson.SkipSpace(text, i+1)
	more := true
	if i < len(text) && text[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := rawjson.SkipKey(text, i)
		if f != rawjson.FaultNone {
			return v, f
		}
		switch string(rawjson.PlainKey(text[i+1 : end])) {
		case "sync_plan":
			i, f = b.scanPlan(v, depth+1)
		case "records":
			i, f = b.scanRecords(v, depth+1)
		default:
			i, f = rawjson.SkipValue(text, v, depth+1)
		}
		if f != rawjson.FaultNone {
			return i, f
		}
		if i, more, f = rawjson.NextMember(text, i); f != rawjson.FaultNone {
			return i, f
		}
	}
	if b.problem == "" && b.RawPlan == nil {
		b.problem = "sync_plan is missing"
	}
	if b.problem == "" && !b.hasRecs {
		b.problem = "records is missing"
	}
	b.done = b.problem == ""
	return i, rawjson.FaultNone
}

// scanPlan takes the plan at i from memory, or decodes and remembers it.
func (b *Batch) scanPlan(i, depth int) (int, rawjson.Fault) {
	var e *planEntry
	switch {
	case b.Plans != nil:
		e = b.Plans.find(b.text[i:])
	case b.last != nil && bytes.HasPrefix(b.text[i:], b.last.raw):
		e = b.last
	}
	end := i
	if e != nil {
		end += len(e.raw)
	} else {
		var f rawjson.Fault
		if end, f = rawjson.SkipValue(b.text, i, depth); f != rawjson.FaultNone {
			return end, f
		}
		var err error
		if e, err = newPlanEntry(b.text[i:end]); err != nil {
			b.problem = err.Error()
			return end, rawjson.FaultNone
		}
		if b.Plans != nil {
			b.Plans.add(e)
		} else {
			b.last = e
		}
	}
	b.Plan, b.RawPlan, b.Identifier, b.PlanID = e.plan, b.text[i:end:end], e.identifier, e.id
	return end, rawjson.FaultNone
}

// scanRecords scans the array of records at i.
func (b *Batch) scanRecords(i, depth int) (int, rawjson.Fault) {
	text, records, fields := b.text, b.records[:0], b.fields[:0]
	b.hasRecs, b.expected = true, b.pattern.expected
	if text[i] != '[' {
		b.problem = "records is not an array"
		return rawjson.SkipValue(text, i, depth)
	}
	i, more, f := rawjson.FirstElement(text, i)
	alike := false // the record before has the names of the pattern
	for more && f == rawjson.FaultNone {
		if text[i] != '{' {
			b.problem = "a record is not an object"
			if i, f = rawjson.SkipValue(text, i, depth+1); f != rawjson.FaultNone {
				return i, f
			}
			i, more, f = rawjson.NextElement(text, i)
			continue
		}
		rec := recordSpan{start: uint32(i), first: uint32(len(fields))}
		if i, fields, rec.plain, rec.tight = b.pattern.scan(text, i, depth+2, fields); rec.tight {
			rec.same, alike = alike, true
			b.escaped = b.escaped || b.pattern.escaped
		} else {
			i, fields, f = b.scanRecord(i, depth+2, fields)
			if f != rawjson.FaultNone {
				return i, f
			}
			rec.tight = tight(fields[rec.first:], rec.start, uint32(i))
			if alike = rec.tight; alike {
				b.pattern.set(text[rec.start:i], rec.start, fields[rec.first:], b.escaped)
			}
		}
		rec.end = uint32(i)
		records = append(records, rec)
		i, more, f = rawjson.NextElement(text, i)
	}
	b.records, b.fields = records, fields
	return i, f
}

// Len is the number of records.
func (b *Batch) Len() int { return len(b.records) }

// Record is the record at i, from 0 to Len()-1, in the order of the wire.
func (b *Batch) Record(i int) RawRecord { return RawRecord{b, i} }
