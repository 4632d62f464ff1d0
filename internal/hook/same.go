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
	"unicode/utf16"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/rpc"
)

// SameValue reports whether a stored value is the one that was sent, by the declared
// type of the field: types are kept, numbers are compared by value, date_times as
// instants. note tells a loss that published text tolerates.
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
		return is == "a number" && sameNumber(a, b), ""
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

// plainText is a string decoded, and the text of any other value. Half a surrogate
// pair becomes the three bytes that UTF-8 would give it, which no other text has:
// encoding/json makes one replacement character of all halves.
func plainText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if kind(raw) != "a string" {
		return string(raw)
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++
		if at := strings.IndexByte("bfnrt", text[i]); at >= 0 {
			out = append(out, "\b\f\n\r\t"[at])
			continue
		}
		if text[i] != 'u' {
			out = append(out, text[i])
			continue
		}
		r := unitAt(text[i+1:])
		i += 4
		if utf16.IsSurrogate(r) {
			if i+6 < len(text) && text[i+1] == '\\' && text[i+2] == 'u' {
				if whole := utf16.DecodeRune(r, unitAt(text[i+3:])); whole != utf8.RuneError {
					out = utf8.AppendRune(out, whole)
					i += 6
					continue
				}
			}
			out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// unitAt reads the four digits of an escape; the text is valid JSON.
func unitAt(text []byte) rune {
	n, _ := strconv.ParseUint(string(text[:4]), 16, 16)
	return rune(n)
}

// exactDigits is the number of significant digits that a decimal must keep; the
// published type has no bound, so that the loss of further ones is only noted.
const exactDigits = 18

func sameDecimal(sent, stored string) (bool, string) {
	if sameNumber(sent, stored) {
		return true, ""
	}
	digits := strings.Trim(strings.NewReplacer(".", "", "-", "", "+", "").Replace(sent), "0")
	if len(digits) > exactDigits {
		return true, fmt.Sprintf("%s of %d digits came back as %s", sent, len(digits), bounded(string(clip([]byte(stored)))))
	}
	return false, ""
}

// sameNumber compares decimals exactly, whatever their notation.
func sameNumber(a, b string) bool {
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
	a, errA := time.Parse(time.RFC3339Nano, sent)
	b, errB := time.Parse(time.RFC3339Nano, stored)
	if errA != nil || errB != nil {
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
