package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// SameValue reports whether a stored value is the one that was sent, by the declared
// type of the field: types are kept, numbers are compared by value, date_times as
// instants. note reports a loss that published text tolerates.
func SameValue(f rpc.Field, sent, stored json.RawMessage) (same bool, note string) {
	if !json.Valid(sent) || !json.Valid(stored) {
		return false, ""
	}
	if f.Array && kind(sent) != "null" && kind(stored) != "null" {
		return sameArray(f, sent, stored), ""
	}
	return sameScalar(f, sent, stored)
}

func sameArray(f rpc.Field, sent, stored json.RawMessage) bool {
	var a, b []json.RawMessage
	if kind(sent) != "an array" || kind(stored) != "an array" || json.Unmarshal(sent, &a) != nil || json.Unmarshal(stored, &b) != nil || len(a) != len(b) {
		return false
	}
	for i := range a {
		if ok, _ := sameScalar(f, a[i], b[i]); !ok {
			return false
		}
	}
	return true
}

func sameScalar(f rpc.Field, sent, stored json.RawMessage) (bool, string) {
	is := kind(stored)
	if kind(sent) == "null" || is == "null" {
		return kind(sent) == is, ""
	}
	a, b := plainText(sent), plainText(stored)
	switch f.Type {
	case rpc.TypeBoolean:
		return is == "a boolean" && a == b, ""
	case rpc.TypeInteger:
		return is == "a number" && SameNumber(a, b), ""
	case rpc.TypeDecimal:
		return sameDecimal(a, b)
	case rpc.TypeFloat:
		return is == "a number" && sameFloat(a, b), ""
	case rpc.TypeDateTime:
		return sameInstant(a, b)
	default:
		return is == "a string" && kind(sent) == is && a == b, ""
	}
}

// plainText is a string decoded, and the text of any other value. Halves of surrogate
// pairs stay apart: encoding/json makes one replacement character of all of them.
func plainText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if kind(raw) != "a string" {
		return string(raw)
	}
	text, _ := rawjson.Unescape(nil, raw[1:len(raw)-1])
	return string(text)
}

// exactDigits is the number of significant digits that a decimal must keep; the
// published type has no bound, so that the loss of further ones is only noted.
const exactDigits = 18

func sameDecimal(sent, stored string) (bool, string) {
	if SameNumber(sent, stored) {
		return true, ""
	}
	digits := strings.Trim(strings.NewReplacer(".", "", "-", "", "+", "").Replace(sent), "0")
	if len(digits) <= exactDigits || longExponent(sent) || longExponent(stored) {
		return false, ""
	}
	x, okX := new(big.Rat).SetString(sent)
	if y, okY := new(big.Rat).SetString(stored); okX && okY && y.Sub(y, x).Abs(y).Cmp(x.Abs(x.Mul(x, big.NewRat(1, 1e17)))) <= 0 {
		return true, fmt.Sprintf("%s of %d digits came back as %s", sent, len(digits), bounded(string(clip([]byte(stored)))))
	}
	return false, ""
}

// SameNumber compares decimals exactly, whatever their notation.
func SameNumber(a, b string) bool {
	if a == b {
		return true
	}
	// An exponent beyond reason would make big numbers of a short text.
	if longExponent(a) || longExponent(b) {
		return false
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

func longExponent(s string) bool {
	_, exp, ok := strings.Cut(strings.ToLower(s), "e")
	n, err := strconv.Atoi(exp)
	return ok && (err != nil || n > 400 || n < -400)
}

// sameFloat compares as doubles; minus zero may come back as zero.
func sameFloat(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if math.IsInf(x, 0) {
		return a == b
	}
	return errX == nil && errY == nil && x == y
}

// sameInstant compares date_times to the second (spec 2); a lost fraction is
// noted, never judged.
func sameInstant(sent, stored string) (bool, string) {
	a, okA := instant(sent)
	b, okB := instant(stored)
	if !okA || !okB {
		return sent == stored, ""
	}
	if a.Equal(b) {
		return true, ""
	}
	if a.Truncate(time.Second).Equal(b.Truncate(time.Second)) {
		return true, fmt.Sprintf("%s came back as %s: fractions of seconds are lost", sent, stored)
	}
	return false, ""
}

// instant reads the notations of ISO 8601 that name the zone: languages and databases leave out
// seconds that are zero, the colon and the minutes of an offset, or the T.
func instant(text string) (time.Time, bool) {
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
