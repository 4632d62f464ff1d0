package audit

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// difference is a field that is stored with another value.
type difference struct {
	field            string
	expected, actual json.RawMessage
}

// compare compares the sent with the stored record, field by field in the order
// of their names; nil where nothing differs. A field that was not sent is not
// compared (sync_null_values). anew is for a record mapped now, whose run has
// another number.
func (a *audit) compare(sent []byte, stored map[string]json.RawMessage, anew bool) *difference {
	var fields map[string]json.RawMessage
	if json.Unmarshal(sent, &fields) != nil {
		return nil // the ledger keeps what is JSON
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f, known := a.fields[name]
		if f.Hidden || anew && a.volatile[name] || known && a.job.Handled && a.handled(f, fields[name], stored[name]) {
			continue
		}
		if !equal(f.Type, fields[name], stored[name]) {
			return &difference{name, fields[name], stored[name]}
		}
	}
	return nil
}

// handled reports whether a destination was configured to store something
// else than the value.
func (a *audit) handled(f mapping.Field, sent, stored json.RawMessage) bool {
	switch {
	case f.LookupObject != "", f.PreserveValues:
		return !rawjson.IsNull(stored) || rawjson.IsNull(sent)
	case f.Merge:
		var all, some []json.RawMessage
		if json.Unmarshal(stored, &all) != nil || json.Unmarshal(sent, &some) != nil {
			return false
		}
		return !slices.ContainsFunc(some, func(one json.RawMessage) bool {
			return !slices.ContainsFunc(all, func(other json.RawMessage) bool { return equal(f.Type, one, other) })
		})
	}
	return false
}

// equal compares two JSON values of a field. Different spellings of a
// destination are equal: a field that is left out is null, escapes, the digits
// of a number, the fraction of a moment. Nothing else is.
func equal(typ string, a, b []byte) bool {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if rawjson.IsNull(a) || rawjson.IsNull(b) {
		return rawjson.IsNull(a) && rawjson.IsNull(b)
	}
	if bytes.Equal(a, b) {
		return true
	}
	switch {
	case a[0] == '[' && b[0] == '[':
		var x, y []json.RawMessage
		return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil &&
			slices.EqualFunc(x, y, func(one, other json.RawMessage) bool { return equal(typ, one, other) })
	case a[0] == '{' && b[0] == '{':
		return equalObjects(a, b)
	}
	x, y := textOf(a), textOf(b)
	switch typ {
	case rpc.TypeDecimal:
		return equalNumbers(x, y)
	case rpc.TypeInteger:
		return (a[0] == '"') == (b[0] == '"') && equalNumbers(x, y)
	case rpc.TypeFloat:
		return (a[0] == '"') == (b[0] == '"') && (equalNumbers(x, y) || equalDoubles(x, y))
	case rpc.TypeDateTime:
		return equalMoments(x, y)
	}
	if a[0] == '"' || b[0] == '"' {
		return a[0] == b[0] && x == y
	}
	return equalNumbers(x, y) || equalDoubles(x, y)
}

func equalObjects(a, b []byte) bool {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	for name, one := range x {
		if !equal("", one, y[name]) {
			return false
		}
	}
	for name, other := range y {
		if !equal("", x[name], other) {
			return false
		}
	}
	return true
}

// textOf is the content of a string, or the digits of a number.
func textOf(raw []byte) string {
	if text, err := rawjson.StringText(raw); err == nil {
		return text
	}
	return string(raw)
}

// longestNumber bounds exact computations: 1e999999999 has as many digits.
const longestNumber = 400

func equalNumbers(x, y string) bool {
	if x == y {
		return true
	}
	one, ok := exact(x)
	other, too := exact(y)
	return ok && too && one.Cmp(other) == 0
}

// equalDoubles: a double may be written with more digits than it needs.
func equalDoubles(x, y string) bool {
	f, err := strconv.ParseFloat(x, 64)
	g, fault := strconv.ParseFloat(y, 64)
	return err == nil && fault == nil && f == g && strings.ContainsAny(x+y, ".eE")
}

func exact(text string) (*big.Rat, bool) {
	if len(text) > longestNumber {
		return nil, false
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if e, err := strconv.Atoi(text[at+1:]); err != nil || e > longestNumber || e < -longestNumber {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

func equalMoments(x, y string) bool {
	one, err := time.Parse(time.RFC3339Nano, x)
	other, fault := time.Parse(time.RFC3339Nano, y)
	return err == nil && fault == nil && (one.Equal(other) || other.Nanosecond() == 0 && one.Truncate(time.Second).Equal(other))
}
