package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// PageSize is the number of identifiers that Paged asks for in one call.
const PageSize = 1000

const readbackName = "readback"

// ReadbackRequest asks what is stored under some keys of one object.
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
}

// ReadbackReply lists the keys that are present; absent keys are left out.
type ReadbackReply struct {
	Records []ReadbackRecord `json:"records"`
	// Complete says that every key was looked up: without it an absent key
	// would prove nothing.
	Complete bool `json:"complete"`
}

// Readback is the Go transport of the hook: the other two are made into it.
type Readback func(ctx context.Context, request ReadbackRequest) (ReadbackReply, error)

// Readback makes the URL or the command into a Readback whose replies are
// decoded strictly and verified. client may be nil and is used for URLs only;
// timeout bounds one call and is DefaultTimeout when not positive.
func (s Spec) Readback(client *http.Client, timeout time.Duration) Readback {
	return func(ctx context.Context, request ReadbackRequest) (ReadbackReply, error) {
		if request.Identifiers == nil {
			request.Identifiers = []json.RawMessage{}
		}
		members, err := s.exchange(ctx, client, timeout, readbackName, request)
		if err != nil {
			return ReadbackReply{}, err
		}
		reply, err := decodeReadback(members)
		if err != nil {
			return ReadbackReply{}, err
		}
		return Verify(request, reply)
	}
}

// Paged makes a Readback that asks for at most PageSize identifiers in one
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
		}
		return whole, nil
	}
}

// Verify holds a reply against its request: complete, every record asked for
// and listed once, counts of 1 or more. The identifiers of the reply that it
// returns are the texts of the request, so that they can be looked up; a hook
// may answer 42 as "42" where that is not ambiguous. Errors are *Error of
// KindShape, KindUnasked or KindIncomplete.
func Verify(request ReadbackRequest, reply ReadbackReply) (ReadbackReply, error) {
	if !reply.Complete {
		return ReadbackReply{}, &Error{
			Kind: KindIncomplete, Hook: readbackName, Path: "complete",
			Message: "is false: keys that it left out may be present",
		}
	}
	asked, byText := index(request.Identifiers)
	seen := make(map[int]bool, len(reply.Records))
	records := make([]ReadbackRecord, len(reply.Records))
	for i, record := range reply.Records {
		path := fmt.Sprintf("records[%d]", i)
		at, found := asked[valueOf(record.Identifier)]
		if !found {
			at, found = byText[valueOf(record.Identifier).text]
		}
		switch {
		case !found || at < 0:
			return ReadbackReply{}, &Error{
				Kind: KindUnasked, Hook: readbackName, Path: path + ".identifier",
				Message: fmt.Sprintf("is %s, which was not asked for", bounded(string(record.Identifier))),
			}
		case seen[at]:
			return ReadbackReply{}, shape(readbackName, path+".identifier", fmt.Sprintf(
				"is %s for the second time; copies are told by count", bounded(string(record.Identifier))))
		case record.Count < 1:
			return ReadbackReply{}, shape(readbackName, path+".count", fmt.Sprintf("is %d, less than 1", record.Count))
		}
		seen[at] = true
		record.Identifier = request.Identifiers[at]
		records[i] = record
	}
	return ReadbackReply{Records: records, Complete: true}, nil
}

// index gives the place of each identifier by value, and by text alone with
// -1 where a string and a number share it.
func index(identifiers []json.RawMessage) (map[value]int, map[string]int) {
	byValue := make(map[value]int, len(identifiers))
	byText := make(map[string]int, len(identifiers))
	for i, raw := range identifiers {
		v := valueOf(raw)
		if _, known := byValue[v]; known {
			continue
		}
		byValue[v] = i
		if _, known := byText[v.text]; known {
			byText[v.text] = -1
			continue
		}
		byText[v.text] = i
	}
	return byValue, byText
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

func decodeReadback(members map[string]json.RawMessage) (ReadbackReply, error) {
	raw, found := members["complete"]
	if !found {
		return ReadbackReply{}, shape(readbackName, "complete", "is missing; it says that every key was looked up")
	}
	complete, err := decodeBool(raw)
	if err != nil {
		return ReadbackReply{}, shape(readbackName, "complete", err.Error())
	}
	if kind(members["records"]) != "an array" {
		return ReadbackReply{}, shape(readbackName, "records", fmt.Sprintf("is %s, not an array", kind(members["records"])))
	}
	var items []json.RawMessage
	if err := json.Unmarshal(members["records"], &items); err != nil {
		return ReadbackReply{}, shape(readbackName, "records", err.Error())
	}
	reply := ReadbackReply{Records: make([]ReadbackRecord, len(items)), Complete: complete}
	for i, item := range items {
		record, err := decodeRecord(fmt.Sprintf("records[%d]", i), item)
		if err != nil {
			return ReadbackReply{}, err
		}
		reply.Records[i] = record
	}
	return reply, nil
}

func decodeRecord(path string, raw json.RawMessage) (ReadbackRecord, error) {
	members, err := decodeObject(raw)
	if err != nil {
		return ReadbackRecord{}, shape(readbackName, path, err.Error())
	}
	record := ReadbackRecord{Identifier: members["identifier"]}
	if k := kind(record.Identifier); k != "a string" && k != "a number" {
		return ReadbackRecord{}, shape(readbackName, path+".identifier", fmt.Sprintf("is %s, not a string or a number", k))
	}
	if record.Count, err = decodeCount(members["count"]); err != nil {
		return ReadbackRecord{}, shape(readbackName, path+".count", err.Error())
	}
	if record.Fields, err = decodeObject(members["fields"]); err != nil {
		return ReadbackRecord{}, shape(readbackName, path+".fields", err.Error())
	}
	return record, nil
}
