package values

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// Seed is the source of the values of one record: a number that no other record of the run has.
// Unique columns of a destination then never collide.
type Seed uint32

// versions is how many sets of values a record can have under one key.
const versions = 128

// NewSeed numbers the n-th record of a check, both from 0.
func NewSeed(check, n int) Seed {
	return Seed(check%256)<<20 | Seed(n%8192)<<7
}

// Version is the seed of other values under the same key.
func (s Seed) Version(n int) Seed { return s/versions*versions + (s+Seed(n))%versions }

// Maker makes ordinary values, whose numbers fit into an ordinary column.
type Maker struct {
	run uint32 // runs that left records behind do not collide with later ones
}

// NewMaker makes the values of a run.
func NewMaker(run string) Maker {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run)) // never fails
	return Maker{h.Sum32()}
}

const numberBits = 28

// Number maps seeds one to one onto 0 to 2^28-1, so that neighbours look unlike.
func (v Maker) Number(s Seed) uint32 {
	const odd = 0x9E3779B1
	return (uint32(s)*odd ^ v.run) & (1<<numberBits - 1)
}

// Style is how plain a value is. A refused value leads to a plainer one.
type Style int

// The styles of values, from the one that fits the name of the field best.
const (
	Guess  Style = iota // a format guessed from name and label, else a text that names the field
	Word                // letters and digits
	Small               // small numbers, recent dates, letters only
	Digits              // digits only, one
	Styles              // the number of styles
)

// Value makes the ordinary value of a field for a seed, as raw JSON. Values of different seeds
// differ, but for booleans, dates and codes of countries and currencies.
func (v Maker) Value(f rpc.Field, s Seed, how Style) json.RawMessage {
	if f.Array {
		f.Array = false
		return json.RawMessage(fmt.Sprintf("[%s,%s]", v.Value(f, s, how), v.Value(f, s.Version(versions/2), how)))
	}
	n := v.Number(s)
	decimal, float, integer := fmt.Sprintf("%d.%02d", n/100, n%90+10), fmt.Sprintf("%d.5", n%10_000), n+1
	if how >= Small {
		decimal, float, integer = fmt.Sprintf("%d.5", n%100), fmt.Sprintf("%d.5", n%100), n%99+1
	}
	switch f.Type {
	case rpc.TypeBoolean:
		return json.RawMessage(strconv.FormatBool((s/versions+s%versions)%2 == 0))
	case rpc.TypeDecimal:
		return Quote(decimal)
	case rpc.TypeFloat:
		return json.RawMessage(float)
	case rpc.TypeInteger:
		return json.RawMessage(strconv.Itoa(int(integer)))
	case rpc.TypeDate:
		return Quote(v.day(n, how).Format(time.DateOnly))
	case rpc.TypeDateTime:
		return Quote(v.day(n, how).Add(time.Duration(n%86400) * time.Second).Format(time.RFC3339))
	default:
		return Quote(v.text(f, n, how))
	}
}

// day is in the past, as birthdays and orders are.
func (v Maker) day(n uint32, how Style) time.Time {
	first, days := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), uint32(14_000)
	if how >= Small {
		first, days = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), 1_000
	}
	return first.AddDate(0, 0, int(n%days))
}

// text is lower case, without spaces at its ends and without marks, so that what
// an endpoint does to text shows in the checks about text and in no other.
func (v Maker) text(f rpc.Field, n uint32, how Style) string {
	code := strconv.FormatUint(uint64(n), 36)
	switch how {
	case Guess:
		if make := Guessed(f); make != nil {
			return make(n, code)
		}
		return strings.TrimSpace(foreign.Clip("conf "+code+" "+strings.ToLower(f.APIName), 40))
	case Small:
		return letters(n)
	case Digits:
		return strconv.Itoa(int(n%9) + 1)
	}
	return "c" + code
}

// letters writes a number with the letters a to z.
func letters(n uint32) string {
	var b []byte
	for n += 26; n > 0; n /= 26 {
		b = append(b, 'a'+byte(n%26))
	}
	return string(b)
}

// Formatted is a value of a given format.
func (v Maker) Formatted(format Format, s Seed) json.RawMessage {
	n := v.Number(s)
	return Quote(format(n, strconv.FormatUint(uint64(n), 36)))
}

// Expand fills in {n}, a number that no other record has, and {key} in the author's fixture.
func (v Maker) Expand(raw string, s Seed, key json.RawMessage) json.RawMessage {
	if !strings.Contains(raw, "{") {
		return json.RawMessage(raw)
	}
	text := string(Quote(Text(key)))
	return json.RawMessage(strings.NewReplacer("{n}", strconv.Itoa(int(v.Number(s))), "{key}", text[1:len(text)-1]).Replace(raw))
}

// Nth is the number of the record, within its check, that a seed is of.
func (s Seed) Nth() int { return int(s % (1 << 20) / versions) }

// ArrayInTurn is the array of a record in a turn, of which each record begins with another:
// three items, one, none, null (where the field takes it), two. Items of turns differ.
func (v Maker) ArrayInTurn(f rpc.Field, s Seed, turn int, how Style, nullable bool) json.RawMessage {
	n := []int{3, 1, 0, -1, 2}[(s.Nth()+turn)%5]
	if n < 0 && nullable {
		return json.RawMessage("null")
	}
	f.Array = false
	items := make([]string, max(0, n))
	for i := range items {
		items[i] = string(v.Value(f, s.Version(10*turn+len(items)-i), how))
	}
	return json.RawMessage("[" + strings.Join(items, ",") + "]")
}

// NullInTurn reports whether a record has nulls in a turn: every other one has.
func (s Seed) NullInTurn(turn int) bool { return (s.Nth()+turn)%2 == 0 }

// Opposite is a value that differs in direction from one that the field has: longer or shorter,
// larger or smaller, later or earlier, by turns. candidate gives the values of a seed.
func Opposite(f rpc.Field, s Seed, turn int, was json.RawMessage, candidate func(Seed) json.RawMessage) json.RawMessage {
	if f.Type == rpc.TypeBoolean && !f.Array && (string(was) == "true" || string(was) == "false") {
		return json.RawMessage(strconv.FormatBool(string(was) == "false"))
	}
	up, other := (s.Nth()+turn)%2 == 0, was
	for i := range 24 {
		c := candidate(s.Version(24*turn + i + 1))
		if side := compare(f, c, was); string(c) != string(was) {
			other = c
			if up == (side > 0) && side != 0 {
				break
			}
		}
	}
	return other
}

// compare orders two values of a field: by length, size or time.
func compare(f rpc.Field, a, b json.RawMessage) int {
	textA, textB := strings.Trim(string(a), `"`), strings.Trim(string(b), `"`)
	switch {
	case f.Array:
		return strings.Count(textA, ",") - strings.Count(textB, ",")
	case f.Type == rpc.TypeString:
		return len(textA) - len(textB)
	case slices.Contains([]string{rpc.TypeInteger, rpc.TypeFloat, rpc.TypeDecimal}, f.Type):
		x, errX := strconv.ParseFloat(textA, 64)
		y, errY := strconv.ParseFloat(textB, 64)
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
	}
	return strings.Compare(textA, textB)
}
