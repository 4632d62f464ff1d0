package executor

import (
	"bytes"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// Messages of records that have no verdict of the destination that counts.
const (
	noVerdict      = "the destination gave no result for this record"
	contradiction  = "the destination gave both success and failure for this record"
	refusedSilence = "the destination refused the record without a message"
)

// verdict of one record of a reply.
type verdict uint8

const (
	unanswered verdict = iota
	accepted
	refused
	contradicted
)

// match gives each item its verdict. A record without an explicit success has
// failed, results come in any order, and those of unknown identifiers count for
// nothing. A record with both answers has failed: sending twice does less harm
// than losing a record.
func match(items []item, results []rpc.RecordResult, into []verdict) []verdict {
	into = append(into[:0], make([]verdict, len(items))...)
	var places map[string]int
	for i := range results {
		r := &results[i]
		at := i // most destinations answer in the order of the request
		if at >= len(items) || !bytes.Equal(items[at].key, r.Identifier) {
			if places == nil {
				places = byKey(items)
			}
			var ok bool
			if at, ok = find(places, r.Identifier); !ok {
				continue
			}
		}
		v := refused
		if r.Success {
			v = accepted
		}
		switch {
		case into[at] == unanswered:
			into[at] = v
		case into[at] != v:
			into[at] = contradicted
		}
		if v == refused {
			items[at].message = r.ErrorMessage
		}
	}
	for at, v := range into {
		switch {
		case v == unanswered:
			items[at].message = noVerdict
		case v == contradicted:
			items[at].message = contradiction
		case v == refused && items[at].message == "":
			items[at].message = refusedSilence
		}
	}
	return into
}

func byKey(items []item) map[string]int {
	places := make(map[string]int, len(items))
	for i := range items {
		places[string(items[i].key)] = i
	}
	return places
}

// find looks an identifier up by its value, then by its text: some destinations
// answer a number as a string or the other way round (not
// documented). Two keys of one batch never differ by that alone, since a field
// has one type.
func find(places map[string]int, identifier []byte) (int, bool) {
	if at, ok := places[string(identifier)]; ok {
		return at, true
	}
	if len(identifier) == 0 {
		return 0, false
	}
	if identifier[0] != '"' {
		at, ok := places[`"`+string(identifier)+`"`]
		return at, ok
	}
	text, err := rawjson.StringText(identifier)
	if err != nil {
		return 0, false
	}
	if at, ok := places[string(rawjson.AppendString(nil, text))]; ok {
		return at, true
	}
	at, ok := places[strings.TrimSpace(text)]
	return at, ok && !strings.HasPrefix(text, `"`)
}
