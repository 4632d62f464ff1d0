package mapping

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

// readAll adds what templates read: all columns for one that uses the record as
// a whole.
func (k *compiler) readAll(members []*member) {
	need := map[string]bool{}
	for _, one := range members {
		t := one.step.template
		if t == nil {
			continue
		}
		names := t.Columns()
		if t.ReadsAll() {
			names = k.columnNames()
		}
		for _, name := range names {
			if at, known := k.place(name); known && !need[name] {
				need[name] = true
				k.plan.reads = append(k.plan.reads, at)
			}
		}
	}
}

// order sorts the fields (spec 2.6, field_order), and brings the parts of one
// object together.
func (k *compiler) order(members []*member) {
	order := text(k.config.FieldOrder)
	if order == api.OrderAlphabetical || order == "" && k.object.SupportsFieldOrdering {
		slices.SortStableFunc(members, func(a, b *member) int { return strings.Compare(a.step.name, b.step.name) })
	}
	first := map[string]int{}
	for i, one := range members {
		for n := range one.path {
			name := strings.Join(one.path[:n+1], "\x00")
			if _, seen := first[name]; !seen {
				first[name] = i
			}
		}
	}
	slices.SortStableFunc(members, func(a, b *member) int {
		for n := range min(len(a.path), len(b.path)) {
			if a.path[n] != b.path[n] {
				return cmp.Compare(first[strings.Join(a.path[:n+1], "\x00")], first[strings.Join(b.path[:n+1], "\x00")])
			}
		}
		return 0
	})
}

// Arrays and texts of JSON, taken apart and written without decoding them.

var errArray = errors.New("the array is not valid JSON")

// appendArray writes an array item by item; text that holds an array as JSON is
// one too.
func appendArray(dst, raw []byte, w wire) ([]byte, error) {
	switch {
	case isNullText(raw):
		return append(dst, nullText...), nil
	case raw[0] != '[' || w == wireAny:
		return castSlowly(dst, raw, w, w != wireAny)
	}
	dst = append(dst, '[')
	at, more, fault := rawjson.FirstElement(raw, 0)
	for n := 0; more && fault == rawjson.FaultNone; n++ {
		end, broken := rawjson.SkipValue(raw, at, 0)
		if broken != rawjson.FaultNone {
			return dst, errArray
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendScalar(dst, raw[at:end], w, false); err != nil {
			return dst, fmt.Errorf("item %d: %w", n, err)
		}
		at, more, fault = rawjson.NextElement(raw, end)
	}
	if fault != rawjson.FaultNone {
		return dst, errArray
	}
	return append(dst, ']'), nil
}

// AppendCanonical appends a JSON value of an identifier in the one form that
// keys have: strings with the fewest escapes, everything else unchanged.
// Identifiers from a destination are converted before a comparison with a key.
func AppendCanonical(dst, raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' || bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw...)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return append(dst, raw...)
	}
	return rawjson.AppendString(dst, text)
}
