package values

import (
	"encoding/json"
	"fmt"
	"html"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// Pair is a value that was sent, the one that is stored, and what could be there
// instead by mistake.
type Pair struct {
	Field   rpc.Field
	Sent    json.RawMessage
	Stored  json.RawMessage            // nil: the field is missing
	Before  json.RawMessage            // what was stored before the last change; nil: not known
	Beside  map[string]json.RawMessage // the fields of the record, as sent
	Records []json.RawMessage          // the field in other records, as sent
}

// Difference is what became of a value.
type Difference struct {
	Class Class
	How   string // the end of a sentence: "cut after 255 characters"
	Note  string // a loss that published text tolerates, where the class is Equal
}

// Classify reads a pair.
func Classify(p Pair) Difference {
	if p.Stored == nil {
		if isNull(p.Sent) {
			return Difference{Class: Equal} // hooks may leave null fields out
		}
		return Difference{Class: Absent, How: "the field is missing"}
	}
	same, note := hook.SameValue(p.Field, p.Sent, p.Stored)
	if same {
		return Difference{Class: Equal, Note: note}
	}
	for _, reading := range []func(Pair) (Difference, bool){older, lostNull, added, asTransform, ofAnother, asArray, asText, asNumber, asTime, asType} {
		if d, ok := reading(p); ok {
			return d
		}
	}
	return Difference{Class: Other}
}

func isNull(raw json.RawMessage) bool { return strings.TrimSpace(string(raw)) == "null" }

func same(f rpc.Field, a, b json.RawMessage) bool {
	ok, _ := hook.SameValue(f, a, b)
	return ok
}

func older(p Pair) (Difference, bool) {
	if p.Before == nil || !same(p.Field, p.Before, p.Stored) || same(p.Field, p.Before, p.Sent) {
		return Difference{}, false
	}
	if p.Before = nil; Text(p.Stored) != "0" {
		// A value that was cut to the limit before is cut to it again.
		if d := Classify(p); d.Class == Clamped || d.Class == Overflown {
			return d, true
		}
	}
	return Difference{Class: Older, How: "as before"}, true
}

func lostNull(p Pair) (Difference, bool) {
	if !isNull(p.Sent) {
		return Difference{}, false
	}
	switch text := Text(p.Stored); {
	case p.Stored[0] == '"' && (strings.EqualFold(text, "null") || text == "None" || text == "nil" || text == "undefined"):
		return Difference{Class: NullLost, How: "null became a text"}, true
	case slices.Contains([]string{"", "0", "0.0", "false", "[]"}, text) || strings.HasPrefix(text, "1970-01-01") || strings.HasPrefix(text, "0001-01-01"):
		return Difference{Class: NullLost, How: "null became the zero value of the type"}, true
	}
	return Difference{Class: NullLost, How: "null became a value"}, true
}

// added finds the old value in what is stored: a sum, or a text that grows.
func added(p Pair) (Difference, bool) {
	sent, before, stored := Text(p.Sent), Text(p.Before), Text(p.Stored)
	if p.Field.Array || sent == "" || before == "" || isNull(p.Before) {
		return Difference{}, false
	}
	if p.Field.Type == rpc.TypeString {
		end := strings.HasPrefix(stored, before) && strings.HasSuffix(stored, sent) && len(stored) >= len(before)+len(sent)
		return Difference{Class: Added, How: "the old value, and behind it the one that was sent"}, end
	}
	a, b, sum := number(p.Sent), number(p.Before), number(p.Stored)
	if a == nil || b == nil || sum == nil || a.Sign() == 0 || b.Sign() == 0 {
		return Difference{}, false
	}
	off := new(big.Rat).Sub(sum, new(big.Rat).Add(a, b)) // floating point adds a little
	near := off.Sign() == 0 || p.Field.Type == rpc.TypeFloat && off.Abs(off).Cmp(sum.Abs(sum.Mul(sum, big.NewRat(1, 1e12)))) < 0
	return Difference{Class: Added, How: "the sum of the old value and the one that was sent"}, near
}

// number is that of a value; nil where it is none.
func number(raw json.RawMessage) *big.Rat {
	n, _ := new(big.Rat).SetString(Text(raw))
	return n
}

// IsLimit reports whether a value is where a smaller type would cut a larger one.
func IsLimit(raw json.RawMessage) bool {
	n := number(raw)
	return n != nil && isLimit(n)
}

// asTransform finds the known change that makes one of the other.
func asTransform(p Pair) (Difference, bool) {
	for _, t := range all {
		if t.Type != kindOfField(p) {
			continue
		}
		made := t.Apply(p.Sent)
		if string(made) == string(p.Sent) || !alike(p, made) {
			continue
		}
		return Difference{Class: t.Class, How: t.Says}, true
	}
	if isNull(p.Stored) {
		return Difference{Class: Null, How: "no value"}, true
	}
	return Difference{}, false
}

// OfAll is the class of a known change that makes each of several stored values of one
// field from the one that was sent; "" where there are fewer than two, or no such change.
func OfAll(pairs []Pair) Class {
	if len(pairs) < 2 {
		return ""
	}
	for _, t := range all {
		if t.Type == kindOfField(pairs[0]) && !slices.ContainsFunc(pairs, func(p Pair) bool {
			return p.Stored == nil || isNull(p.Sent) || !alike(p, t.Apply(p.Sent))
		}) {
			return t.Class
		}
	}
	return ""
}

func kindOfField(p Pair) string {
	if p.Field.Array {
		return TypeArray
	}
	return p.Field.Type
}

// alike reports whether a value that a transform has made is the stored one.
func alike(p Pair, made json.RawMessage) bool {
	if isNull(made) || isNull(p.Stored) {
		return isNull(made) && isNull(p.Stored)
	}
	return same(p.Field, made, p.Stored) && !same(p.Field, made, p.Sent) || made[0] == p.Stored[0] && Text(made) == Text(p.Stored)
}

// ofAnother finds the stored value among those of other fields and other records. A
// value that many fields could have shows nothing.
func ofAnother(p Pair) (Difference, bool) {
	text := Text(p.Stored)
	if utf8.RuneCountInString(text) < 3 || text == "true" || text == "false" || p.Stored[0] == '[' {
		return Difference{}, false
	}
	var names []string
	for name, raw := range p.Beside {
		if name != p.Field.APIName && Text(raw) == text {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		return Difference{Class: OtherField, How: "the value of " + names[0]}, true
	}
	if slices.ContainsFunc(p.Records, func(raw json.RawMessage) bool { return Text(raw) == text }) {
		return Difference{Class: OtherRecord, How: "the value of another record"}, true
	}
	return Difference{}, false
}

// asText finds what texts have in common where no single transform explains them.
func asText(p Pair) (Difference, bool) {
	if p.Field.Type != rpc.TypeString || p.Stored[0] != '"' || p.Sent[0] != '"' {
		return Difference{}, false
	}
	sent, stored := Text(p.Sent), Text(p.Stored)
	n, all := utf8.RuneCountInString(stored), utf8.RuneCountInString(sent)
	switch {
	case stored == "":
		return Difference{Class: Constant, How: "an empty text"}, true
	case strings.HasPrefix(sent, stored):
		return Difference{Class: Prefix, How: fmt.Sprintf("cut after %s of %d", quantity.Count(n, "character"), all)}, true
	case strings.HasPrefix(sent, strings.TrimRight(stored, ".\u2026 ")) && n < all:
		return Difference{Class: Prefix, How: "cut, with an ellipsis at its end"}, true
	case hashed.MatchString(stored):
		return Difference{Class: Hidden, How: "it looks like a hash"}, true
	case strings.Trim(stored, "*\u2022xX") == "":
		return Difference{Class: Hidden, How: "it is masked"}, true
	case strings.EqualFold(sent, stored):
		return Difference{Class: Case, How: "in another case"}, true
	case html.UnescapeString(stored) == sent:
		return Difference{Class: Escaped, How: "with HTML entities"}, true
	case squeezed(sent) == squeezed(stored):
		return Difference{Class: Trimmed, How: "with other spaces"}, true
	case n == all && strings.ContainsAny(stored, "?\ufffd") && onlyReplaced(sent, stored):
		return Difference{Class: Charset, How: "with another character in place of some"}, true
	case subsequence(stored, sent):
		return Difference{Class: Removed, How: fmt.Sprintf("%s of %d are gone", quantity.Count(all-n, "character"), all)}, true
	}
	return Difference{}, false
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

func onlyReplaced(sent, stored string) bool {
	a, b := []rune(sent), []rune(stored)
	for i := range a {
		if a[i] != b[i] && b[i] != '?' && b[i] != '\ufffd' {
			return false
		}
	}
	return true
}

// subsequence reports whether a text is another one with some of it taken out; of a
// text that is much shorter that shows nothing.
func subsequence(short, long string) bool {
	if 2*len(short) < len(long) {
		return false
	}
	rest := []rune(long)
	for _, r := range short {
		i := slices.Index(rest, r)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// asNumber finds how far a number is from the one that was sent.
func asNumber(p Pair) (Difference, bool) {
	if !slices.Contains([]string{rpc.TypeInteger, rpc.TypeDecimal, rpc.TypeFloat}, p.Field.Type) {
		return Difference{}, false
	}
	sent, stored := number(p.Sent), number(p.Stored)
	if sent == nil || stored == nil {
		return Difference{}, false
	}
	quoted := p.Field.Type == rpc.TypeDecimal
	switch off := new(big.Rat).Abs(new(big.Rat).Sub(sent, stored)); {
	case off.Sign() == 0 && (p.Stored[0] == '"') != quoted:
		return Difference{Class: Retyped, How: "it is " + kindOf(p.Stored)}, true
	case overflows(sent, stored) != 0:
		return Difference{Class: Overflown, How: fmt.Sprintf("the value modulo 2^%d", overflows(sent, stored))}, true
	case stored.Sign() == 0:
		return Difference{Class: Constant, How: "zero"}, true
	case isLimit(stored) && stored.Cmp(sent) != 0 && (stored.Sign() > 0) == (sent.Cmp(stored) > 0):
		return Difference{Class: Clamped, How: "the limit of a smaller type"}, true
	case new(big.Rat).Mul(off, big.NewRat(1000, 1)).Cmp(new(big.Rat).Abs(sent)) < 0:
		return Difference{Class: Rounded, How: fmt.Sprintf("rounded to %s", quantity.Count(digits(Text(p.Stored)), "digit"))}, true
	}
	return Difference{}, false
}

// overflows is the number of bits of a type whose overflow makes one integer of the
// other, 0 where none does.
func overflows(sent, stored *big.Rat) int {
	if !sent.IsInt() || !stored.IsInt() || sent.Cmp(stored) == 0 {
		return 0
	}
	off := new(big.Int).Sub(sent.Num(), stored.Num())
	for _, bits := range []int{64, 32, 16} {
		if stored.Num().BitLen() <= bits && off.TrailingZeroBits() >= uint(bits) {
			return bits
		}
	}
	return 0
}

// isLimit reports whether a number is an end of a range: 2^n, 2^n-1, nines only, or one
// digit and zeros.
func isLimit(r *big.Rat) bool {
	text := strings.NewReplacer("-", "", ".", "").Replace(r.FloatString(2))
	if whole := strings.TrimSuffix(text, "00"); len(text) > 4 && (strings.Trim(whole, "9") == "" || len(whole) > 3 && strings.Trim(whole[1:], "0") == "") {
		return true
	}
	if !r.IsInt() {
		return false
	}
	n := new(big.Int).Abs(r.Num())
	up := new(big.Int).Add(n, big.NewInt(1))
	return n.BitLen() > 7 && (n.TrailingZeroBits() == uint(n.BitLen()-1) || up.TrailingZeroBits() == uint(up.BitLen()-1))
}

// digits counts the significant digits of a number.
func digits(text string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return len(strings.Trim(strings.NewReplacer("-", "", ".", "", "+", "").Replace(mantissa), "0"))
}

// asTime finds how far a date or a moment is from the one that was sent.
func asTime(p Pair) (Difference, bool) {
	if p.Field.Type != rpc.TypeDate && p.Field.Type != rpc.TypeDateTime || p.Stored[0] != '"' {
		return Difference{}, false
	}
	sent, ok := Moment(Text(p.Sent))
	stored, is := Moment(Text(p.Stored))
	if !ok || !is {
		return Difference{}, false
	}
	off := stored.Sub(sent)
	switch text := Text(p.Stored); {
	case off == 0 || off.Abs() < time.Second && p.Field.Type == rpc.TypeDateTime:
		return Difference{Class: Reformatted, How: "the same time in another notation"}, true
	case strings.HasPrefix(text, "1970-01-01") || strings.HasPrefix(text, "0001-01-01") || strings.HasPrefix(text, "1900-01-01"):
		return Difference{Class: Constant, How: "the first day of a calendar"}, true
	}
	if years := stored.Year() - sent.Year(); years != 0 && years%100 == 0 && sent.AddDate(years, 0, 0).Equal(stored) {
		return Difference{Class: Century, How: fmt.Sprintf("in the year %d", stored.Year())}, true
	}
	return Difference{Class: Shifted, How: shift(off)}, true
}

func shift(off time.Duration) string {
	where := "later"
	if off < 0 {
		where, off = "earlier", -off
	}
	const day = 24 * time.Hour
	switch {
	case off%day == 0:
		return quantity.Count(int(off/day), "day") + " " + where
	case off%time.Hour == 0:
		return quantity.Count(int(off/time.Hour), "hour") + " " + where
	}
	return off.Round(time.Second).String() + " " + where
}

func asType(p Pair) (Difference, bool) {
	if a, b := kindOf(p.Sent), kindOf(p.Stored); a != b {
		return Difference{Class: Retyped, How: "it is " + b + ", not " + a}, true
	}
	return Difference{}, false
}

func kindOf(raw json.RawMessage) string {
	switch raw = json.RawMessage(strings.TrimSpace(string(raw))); {
	case len(raw) == 0 || raw[0] == 'n':
		return "null"
	case raw[0] == '"':
		return "a text"
	case raw[0] == '[':
		return "a list"
	case raw[0] == '{':
		return "an object"
	case raw[0] == 't' || raw[0] == 'f':
		return "a boolean"
	}
	return "a number"
}

// shownWhole is the longest text that is shown as it is.
const shownWhole = 100

// Apart shows two values so that they are told from each other: long texts from a
// little before the place where they part.
func Apart(sent, stored json.RawMessage) (string, string) {
	a, b := []rune(string(sent)), []rune(string(stored))
	if len(a) <= shownWhole && len(b) <= shownWhole {
		return string(a), string(b)
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return window(a, n), window(b, n)
}

func window(text []rune, at int) string {
	if len(text) <= shownWhole {
		return string(text)
	}
	from, to := max(0, at-20), min(len(text), at+40)
	if from < 20 {
		from = 0
	}
	out := string(text[from:to])
	if from > 0 {
		out = string(text[:12]) + "\u2026" + out
	}
	if to < len(text) {
		out += "\u2026"
	}
	return out + " (" + quantity.Count(len(text), "character") + ")"
}
