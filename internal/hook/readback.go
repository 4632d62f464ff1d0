package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// PageSize is the number of identifiers that Paged requests in one call.
const PageSize = 1000

const readbackName = "readback"

// ReadbackRequest queries the records of some keys of one object.
type ReadbackRequest struct {
	Object          string            `json:"object"`           // object_api_name
	IdentifierField string            `json:"identifier_field"` // field_api_name of the active identifier
	Identifiers     []json.RawMessage `json:"identifiers"`      // the values as they were sent
}

// ReadbackRecord is one key that is present.
type ReadbackRecord struct {
	Identifier json.RawMessage            `json:"identifier"`
	Count      int                        `json:"count"`  // copies under this key, 1 or more
	Fields     map[string]json.RawMessage `json:"fields"` // of one of the copies
	// Uncounted: the hook gave no count, and Count is the number of times that
	// it listed the key. A hook that lists each key once shows no copies.
	Uncounted bool `json:"-"`
}

// ReadbackReply lists the keys that are present; absent keys are left out.
type ReadbackReply struct {
	Records []ReadbackRecord `json:"records"`
	// Complete means that every key was looked up: without it an absent
	// key would prove nothing.
	Complete bool `json:"complete"`
	// Hidden names fields that the hook cannot show as they were sent, such as one
	// that is stored as a hash.
	Hidden []string `json:"hidden,omitempty"`
}

// Readback is the Go transport of the hook: the other two are made into it.
type Readback func(ctx context.Context, request ReadbackRequest) (ReadbackReply, error)

// Readback makes the URL or the command into a Readback whose replies are
// decoded with the leniency of this package and verified. client may be nil and is used for URLs only;
// timeout bounds one call and is DefaultTimeout when not positive.
func (s Spec) Readback(client *http.Client, timeout time.Duration) Readback {
	return func(ctx context.Context, request ReadbackRequest) (ReadbackReply, error) {
		if request.Identifiers == nil {
			request.Identifiers = []json.RawMessage{}
		}
		got, err := s.exchange(ctx, client, timeout, readbackName, request)
		if err != nil {
			return ReadbackReply{}, err
		}
		reply, err := decodeReadback(got)
		if err != nil {
			return ReadbackReply{}, err
		}
		return Verify(request, reply)
	}
}

// Paged makes a Readback that requests at most PageSize identifiers in one
// call, for each value once, and verifies every reply. It is meant for every
// transport, the Go function included.
func Paged(readback Readback) Readback {
	return func(ctx context.Context, request ReadbackRequest) (ReadbackReply, error) {
		whole := ReadbackReply{Records: []ReadbackRecord{}, Complete: true}
		identifiers := distinct(request.Identifiers)
		for len(identifiers) > 0 {
			if err := ctx.Err(); err != nil {
				return ReadbackReply{}, &Error{Kind: KindCanceled, Hook: readbackName, Message: "was interrupted", Err: err}
			}
			page := request
			page.Identifiers = identifiers[:min(PageSize, len(identifiers))]
			identifiers = identifiers[len(page.Identifiers):]
			reply, err := readback(ctx, page)
			if err != nil {
				return ReadbackReply{}, err
			}
			if reply, err = Verify(page, reply); err != nil {
				return ReadbackReply{}, err
			}
			whole.Records = append(whole.Records, reply.Records...)
			whole.Hidden = append(whole.Hidden, reply.Hidden...)
		}
		return whole, nil
	}
}

// Verify holds a reply against its request: complete, every record requested,
// counts of 1 or more. A key that is listed again counts again when no count is
// given, and is an error when one is. The identifiers of the reply that it
// returns are the texts of the request, so that they can be looked up; a hook
// may answer 42 as "42" or 42.0 where that is not ambiguous. Errors are *Error
// of KindShape, KindUnasked or KindIncomplete.
func Verify(request ReadbackRequest, reply ReadbackReply) (ReadbackReply, error) {
	if !reply.Complete {
		return ReadbackReply{}, &Error{
			Kind: KindIncomplete, Hook: readbackName, Path: "complete",
			Message: "is false: keys that it left out may be present",
			Fix:     "look every key of the question up before it answers",
		}
	}
	asked := index(request.Identifiers)
	place := make(map[int]int, len(reply.Records))
	records := make([]ReadbackRecord, 0, len(reply.Records))
	for i, record := range reply.Records {
		path := fmt.Sprintf("records[%d]", i)
		at, found := asked.find(record.Identifier)
		if !found {
			return ReadbackReply{}, &Error{
				Kind: KindUnasked, Hook: readbackName, Path: path + ".identifier",
				Message: fmt.Sprintf("is %s, which was not asked for", bounded(string(record.Identifier))),
				Fix:     "answer only keys of the question, each as it was asked for",
			}
		}
		if record.Count < 1 {
			return ReadbackReply{}, shape(readbackName, path+".count", fmt.Sprintf("is %d, less than 1", record.Count))
		}
		if before, listed := place[at]; listed {
			if !record.Uncounted || !records[before].Uncounted {
				return ReadbackReply{}, shape(readbackName, path+".identifier", fmt.Sprintf(
					"is %s for the second time; copies are told by count", bounded(string(record.Identifier))))
			}
			records[before].Count += record.Count
			continue
		}
		place[at] = len(records)
		record.Identifier = request.Identifiers[at]
		records = append(records, record)
	}
	return ReadbackReply{Records: records, Complete: true, Hidden: reply.Hidden}, nil
}

// asked finds the identifiers of a request: by value, by text alone where no
// string and number share it (-1), and by the number that a text means.
type asked struct {
	byValue  map[value]int
	byText   map[string]int
	byNumber map[string]int
}

// index notes the place of each identifier.
func index(identifiers []json.RawMessage) asked {
	a := asked{byValue: make(map[value]int, len(identifiers)), byText: make(map[string]int, len(identifiers)), byNumber: map[string]int{}}
	alone := func(places map[string]int, key string, i int) {
		if _, known := places[key]; known {
			i = -1
		}
		places[key] = i
	}
	for i, raw := range identifiers {
		v := valueOf(raw)
		if _, known := a.byValue[v]; known {
			continue
		}
		a.byValue[v] = i
		alone(a.byText, v.text, i)
		if whole, ok := exactInteger(v.text); ok && !v.quote {
			alone(a.byNumber, whole, i)
		}
	}
	return a
}

func (a asked) find(identifier json.RawMessage) (int, bool) {
	v := valueOf(identifier)
	if at, found := a.byValue[v]; found {
		return at, true
	}
	at, found := a.byText[v.text]
	if !found {
		if whole, ok := exactInteger(v.text); ok {
			at, found = a.byNumber[whole]
		}
	}
	return at, found && at >= 0
}

func distinct(identifiers []json.RawMessage) []json.RawMessage {
	seen := make(map[value]bool, len(identifiers))
	kept := make([]json.RawMessage, 0, len(identifiers))
	for _, raw := range identifiers {
		if v := valueOf(raw); !seen[v] {
			seen[v] = true
			kept = append(kept, raw)
		}
	}
	return kept
}

// decodeReadback reads the records of a reply. A bare array is its records; a
// reply without "complete" is taken for a whole one, as a hook answers that has
// never thought of leaving a key out.
func decodeReadback(got answer) (ReadbackReply, error) {
	reply := ReadbackReply{Records: []ReadbackRecord{}, Complete: true}
	list := got.items
	if got.members != nil {
		if raw, told := got.members["error"]; told && got.members["records"] == nil {
			return reply, &Error{Kind: KindRefused, Hook: readbackName, Message: "answered an error in place of records", Detail: bounded(string(raw)), Fix: wanted(readbackName)}
		}
		list = got.members["records"]
		if raw := got.members["complete"]; !absent(raw) {
			var err error
			if reply.Complete, err = decodeBool(raw); err != nil {
				return reply, shape(readbackName, "complete", err.Error())
			}
		}
		if raw := got.members["hidden"]; !absent(raw) && json.Unmarshal(raw, &reply.Hidden) != nil {
			return reply, shape(readbackName, "hidden", "is no list of names of fields")
		}
	}
	switch kind(list) {
	case "null": // an empty list of Go and of PHP
		return reply, nil
	case "an array":
	default:
		return reply, shape(readbackName, "records", fmt.Sprintf("is %s, not an array", kind(list)))
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return reply, shape(readbackName, "records", err.Error())
	}
	for i, item := range items {
		if kind(item) == "null" {
			continue // a place for each requested key, and this one is absent
		}
		record, err := got.record(fmt.Sprintf("records[%d]", i), item)
		if err != nil {
			return reply, err
		}
		if record.Count > 0 {
			reply.Records = append(reply.Records, record)
		}
	}
	return reply, nil
}

// record reads one record; its count is 0 when the hook reports the key as
// absent.
func (got answer) record(path string, raw json.RawMessage) (ReadbackRecord, error) {
	members, err := decodeObject(raw)
	if err != nil {
		return ReadbackRecord{}, shape(readbackName, path, err.Error())
	}
	record := ReadbackRecord{Identifier: got.restore(members["identifier"]), Count: 1, Uncounted: absent(members["count"])}
	if k := kind(record.Identifier); k != "a string" && k != "a number" {
		return ReadbackRecord{}, shape(readbackName, path+".identifier", fmt.Sprintf("is %s, not a string or a number", k))
	}
	if !record.Uncounted {
		if record.Count, err = decodeCount(got.restore(members["count"])); err != nil {
			return ReadbackRecord{}, shape(readbackName, path+".count", err.Error())
		}
	}
	if record.Count == 0 && absent(members["fields"]) {
		return record, nil
	}
	if record.Fields, err = decodeObject(members["fields"]); err != nil {
		return ReadbackRecord{}, shape(readbackName, path+".fields", err.Error())
	}
	if record.Count == 0 && len(record.Fields) > 0 {
		return ReadbackRecord{}, shape(readbackName, path+".count", "is 0, and fields has values: a key that is absent has none")
	}
	for name, raw := range record.Fields {
		record.Fields[name] = got.restore(raw)
	}
	return record, nil
}
