package values

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// Pair is a value that was sent, the one that is stored, and what could be there by mistake.
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

// sign is what a difference can be, and whether it looks so.
type sign struct {
	shown bool
	class Class
	how   string
}

// firstOf is the difference of the first sign that is shown; without a class where none is.
func firstOf(signs []sign) Difference {
	for _, s := range signs {
		if s.shown {
			return Difference{Class: s.class, How: s.how}
		}
	}
	return Difference{}
}

// Classify reads a pair.
func Classify(p Pair) Difference {
	switch {
	case p.Stored == nil && isNull(p.Sent): // hooks may leave null fields out
		return Difference{Class: Equal}
	case p.Stored == nil:
		return Difference{Class: Absent, How: "the field is missing"}
	}
	if same, note := hook.SameValue(p.Field, p.Sent, p.Stored); same {
		return Difference{Class: Equal, Note: note}
	}
	for _, reading := range []func(Pair) Difference{older, lostNull, added, asTransform, ofAnother, asArray, asText, asNumber, asTime} {
		if d := reading(p); d.Class != "" {
			return d
		}
	}
	a, b := kindOf(p.Sent), kindOf(p.Stored)
	return firstOf([]sign{{a != b, Retyped, "it is " + b + ", not " + a}, {true, Other, ""}})
}

func isNull(raw json.RawMessage) bool { return strings.TrimSpace(string(raw)) == "null" }

func same(f rpc.Field, a, b json.RawMessage) bool {
	ok, _ := hook.SameValue(f, a, b)
	return ok
}

func older(p Pair) Difference {
	if p.Before == nil || !same(p.Field, p.Before, p.Stored) || same(p.Field, p.Before, p.Sent) {
		return Difference{}
	}
	if p.Before = nil; Text(p.Stored) != "0" {
		// A value that was cut to the limit before is cut to it again.
		if d := Classify(p); d.Class == Clamped || d.Class == Overflown {
			return d
		}
	}
	return Difference{Class: Older, How: "as before"}
}

func lostNull(p Pair) Difference {
	if !isNull(p.Sent) {
		return Difference{}
	}
	text := Text(p.Stored)
	return firstOf([]sign{
		{p.Stored[0] == '"' && (strings.EqualFold(text, "null") || slices.Contains([]string{"None", "nil", "undefined"}, text)),
			NullLost, "null became a text"},
		{slices.Contains([]string{"", "0", "0.0", "false", "[]"}, text) || firstDay(text), NullLost, "null became the zero value of the type"},
		{true, NullLost, "null became a value"},
	})
}

// firstDay reports whether a date or a moment is the first day of a calendar.
func firstDay(text string) bool {
	return strings.HasPrefix(text, "1970-01-01") || strings.HasPrefix(text, "0001-01-01") || strings.HasPrefix(text, "1900-01-01")
}

// added finds the old value in the stored one: a sum, or a text that grows.
func added(p Pair) Difference {
	sent, before, stored := Text(p.Sent), Text(p.Before), Text(p.Stored)
	if p.Field.Array || sent == "" || before == "" || isNull(p.Before) {
		return Difference{}
	}
	if p.Field.Type == rpc.TypeString {
		grown := strings.HasPrefix(stored, before) && strings.HasSuffix(stored, sent) && len(stored) >= len(before)+len(sent)
		return firstOf([]sign{{grown, Added, "the old value, and behind it the one that was sent"}})
	}
	a, b, sum := number(p.Sent), number(p.Before), number(p.Stored)
	if a == nil || b == nil || sum == nil || a.Sign() == 0 || b.Sign() == 0 {
		return Difference{}
	}
	off := new(big.Rat).Sub(sum, new(big.Rat).Add(a, b)) // floating point adds a little
	near := off.Sign() == 0 || p.Field.Type == rpc.TypeFloat && off.Abs(off).Cmp(sum.Abs(sum.Mul(sum, big.NewRat(1, 1e12)))) < 0
	return firstOf([]sign{{near, Added, "the sum of the old value and the one that was sent"}})
}

// number is that of a value; nil where it is none.
func number(raw json.RawMessage) *big.Rat {
	n, _ := new(big.Rat).SetString(Text(raw))
	return n
}

// IsLimit reports whether a value is where a smaller type would cut a larger one.
func IsLimit(raw json.RawMessage) bool { return isLimit(number(raw)) }

// asTransform finds the known change that makes one of the other.
func asTransform(p Pair) Difference {
	for _, t := range all {
		if t.Type != kindOfField(p) {
			continue
		}
		if made := t.Apply(p.Sent); string(made) != string(p.Sent) && alike(p, made) {
			return Difference{Class: t.Class, How: t.Says}
		}
	}
	return firstOf([]sign{{isNull(p.Stored), Dropped, "no value"}})
}

// OfAll is the one change that explains two or more values of a field; without a class where there is none.
func OfAll(pairs []Pair) Difference {
	if len(pairs) < 2 {
		return Difference{}
	}
	for _, t := range all {
		if t.Type == kindOfField(pairs[0]) && !slices.ContainsFunc(pairs, func(p Pair) bool {
			return p.Stored == nil || isNull(p.Sent) || !alike(p, t.Apply(p.Sent))
		}) {
			return Difference{Class: t.Class, How: t.Says}
		}
	}
	sent, stored := Text(pairs[0].Sent), Text(pairs[0].Stored)
	one := !slices.ContainsFunc(pairs, func(p Pair) bool { return p.Stored == nil || isNull(p.Sent) || Text(p.Stored) != stored })
	several := slices.ContainsFunc(pairs, func(p Pair) bool { return Text(p.Sent) != sent })
	return firstOf([]sign{{one && several && stored == "null", Dropped, "no value"}, {one && several, Constant, "the same for different values"}})
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

// ofAnother finds the stored value among those of other fields and records, if few have it.
func ofAnother(p Pair) Difference {
	text := Text(p.Stored)
	if utf8.RuneCountInString(text) < 3 || text == "true" || text == "false" || p.Stored[0] == '[' {
		return Difference{}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Beside)) {
		if name != p.Field.APIName && Text(p.Beside[name]) == text {
			return Difference{Class: OtherField, How: "the value of " + name}
		}
	}
	another := slices.ContainsFunc(p.Records, func(raw json.RawMessage) bool { return Text(raw) == text })
	return firstOf([]sign{{another, OtherRecord, "the value of another record"}})
}

// asText finds what texts have in common where no single transform explains them.
func asText(p Pair) Difference {
	if p.Field.Type != rpc.TypeString || p.Stored[0] != '"' || p.Sent[0] != '"' {
		return Difference{}
	}
	sent, stored := Text(p.Sent), Text(p.Stored)
	n, all := utf8.RuneCountInString(stored), utf8.RuneCountInString(sent)
	return firstOf([]sign{
		{stored == "", Constant, "an empty text"},
		{strings.HasPrefix(sent, stored), Prefix, fmt.Sprintf("cut after %s of %d", quantity.Count(n, "character"), all)},
		{strings.HasPrefix(sent, strings.TrimRight(stored, ".\u2026 ")) && n < all, Prefix, "cut, with an ellipsis at its end"},
		{hashed.MatchString(stored), Hidden, "it looks like a hash"},
		{strings.Trim(stored, "*\u2022xX") == "", Hidden, "it is masked"},
		{strings.EqualFold(sent, stored), Case, "in another case"},
		{html.UnescapeString(stored) == sent, Escaped, "with HTML entities"},
		{strings.Join(strings.Fields(sent), "") == strings.Join(strings.Fields(stored), ""), Trimmed, "with other spaces"},
		{n == all && strings.ContainsAny(stored, "?\ufffd") && onlyReplaced(sent, stored), Charset, "with another character in place of some"},
		{subsequence(stored, sent), Removed, fmt.Sprintf("%s of %d are gone", quantity.Count(all-n, "character"), all)},
	})
}

func onlyReplaced(sent, stored string) bool {
	a, b := []rune(sent), []rune(stored)
	for i := range a {
		if a[i] != b[i] && b[i] != '?' && b[i] != '\ufffd' {
			return false
		}
	}
	return true
}

// subsequence reports whether a text is another one with less than half of it taken out.
func subsequence(short, long string) bool {
	rest := []rune(long)
	for _, r := range short {
		i := slices.Index(rest, r)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return 2*len(short) >= len(long)
}

// asNumber finds how far a number is from the one that was sent.
func asNumber(p Pair) Difference {
	if !slices.Contains([]string{rpc.TypeInteger, rpc.TypeDecimal, rpc.TypeFloat}, p.Field.Type) {
		return Difference{}
	}
	sent, stored := number(p.Sent), number(p.Stored)
	if sent == nil || stored == nil {
		return Difference{}
	}
	off, bits := new(big.Rat).Sub(sent, stored), overflows(sent, stored)
	off.Abs(off)
	return firstOf([]sign{
		{off.Sign() == 0 && (p.Stored[0] == '"') != (p.Field.Type == rpc.TypeDecimal), Retyped, "it is " + kindOf(p.Stored)},
		{bits != 0, Overflown, fmt.Sprintf("the value modulo 2^%d", bits)},
		{stored.Sign() == 0, Constant, "zero"},
		{isLimit(stored) && stored.Cmp(sent) != 0 && (stored.Sign() > 0) == (sent.Cmp(stored) > 0), Clamped, "the limit of a smaller type"},
		{new(big.Rat).Mul(off, big.NewRat(1000, 1)).Cmp(new(big.Rat).Abs(sent)) < 0, Rounded,
			"rounded to " + quantity.Count(digits(Text(p.Stored)), "digit")},
	})
}

// overflows is the bits of a type whose overflow makes one integer of the other, 0 for none.
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

// isLimit reports whether a number ends a range: 2^n, 2^n-1, nines only, or one digit and zeros.
func isLimit(r *big.Rat) bool {
	if r == nil {
		return false
	}
	text := strings.NewReplacer("-", "", ".", "").Replace(r.FloatString(2))
	if whole := strings.TrimSuffix(text, "00"); len(text) > 4 && (strings.Trim(whole, "9") == "" || len(whole) > 3 && strings.Trim(whole[1:], "0") == "") {
		return true
	}
	n := new(big.Int).Abs(r.Num())
	up := new(big.Int).Add(n, big.NewInt(1))
	return r.IsInt() && n.BitLen() > 7 && (n.TrailingZeroBits() == uint(n.BitLen()-1) || up.TrailingZeroBits() == uint(up.BitLen()-1))
}

// digits counts the significant digits of a number.
func digits(text string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return len(strings.Trim(strings.NewReplacer("-", "", ".", "", "+", "").Replace(mantissa), "0"))
}

// asTime finds how far a date or a moment is from the one that was sent.
func asTime(p Pair) Difference {
	sent, ok := Moment(Text(p.Sent))
	stored, is := Moment(Text(p.Stored))
	if p.Field.Type != rpc.TypeDate && p.Field.Type != rpc.TypeDateTime || p.Stored[0] != '"' || !ok || !is {
		return Difference{}
	}
	off, years := stored.Sub(sent), stored.Year()-sent.Year()
	return firstOf([]sign{
		{off == 0 || off.Abs() < time.Second && p.Field.Type == rpc.TypeDateTime, Reformatted, "the same time in another notation"},
		{firstDay(Text(p.Stored)), Constant, "the first day of a calendar"},
		{years != 0 && years%100 == 0 && sent.AddDate(years, 0, 0).Equal(stored), Century, fmt.Sprintf("in the year %d", stored.Year())},
		{true, Shifted, shift(off)},
	})
}

func shift(off time.Duration) string {
	where := "later"
	if off < 0 {
		where, off = "earlier", -off
	}
	const day = 24 * time.Hour
	text := off.Round(time.Second).String()
	switch {
	case off%day == 0:
		text = quantity.Count(int(off/day), "day")
	case off%time.Hour == 0:
		text = quantity.Count(int(off/time.Hour), "hour")
	}
	return text + " " + where
}

func kindOf(raw json.RawMessage) string {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return "null"
	}
	kinds := map[byte]string{'n': "null", '"': "a text", '[': "a list", '{': "an object", 't': "a boolean", 'f': "a boolean"}
	return cmp.Or(kinds[raw[0]], "a number")
}

// shownWhole is the longest text that is shown as it is.
const shownWhole = 100

// Apart shortens two long values so that they remain distinct, from a little before they differ.
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
	from, to, head, tail := at-20, min(len(text), at+40), string(text[:12])+"\u2026", ""
	if from < 20 {
		from, head = 0, ""
	}
	if to < len(text) {
		tail = "\u2026"
	}
	return head + string(text[from:to]) + tail + " (" + quantity.Count(len(text), "character") + ")"
}
