package destination

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// seed is what the values of one record are derived from: a number that no other
// record of the run has. Unique columns of a destination then never collide.
type seed uint32

// versions is how many sets of values a record can have under one key.
const versions = 128

// newSeed numbers the n-th record of a check, from 0.
func newSeed(check *conformance.Check, n int) seed {
	return seed(check.Number%256)<<20 | seed(n%8192)<<7
}

// version is the seed of other values under the same key.
func (s seed) version(n int) seed { return s/versions*versions + (s+seed(n))%versions }

// valuer makes ordinary values. Its numbers fit into 28 bits: what an ordinary
// column takes.
type valuer struct {
	run uint32 // runs that left records behind do not collide with later ones
}

func newValuer(run string) valuer {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run)) // never fails
	return valuer{h.Sum32()}
}

const numberBits = 28

// number maps seeds one to one onto 0 to 2^28-1, so that neighbours look unlike.
func (v valuer) number(s seed) uint32 {
	const odd = 0x9E3779B1
	return (uint32(s)*odd ^ v.run) & (1<<numberBits - 1)
}

// style is how plain a value is. A refused value leads to a plainer one.
type style int

// The styles of values, from the one that fits the name of the field best.
const (
	styleGuess  style = iota // a format guessed from name and label, else a text that names the field
	styleWord                // letters and digits
	styleSmall               // small numbers, recent dates, letters only
	styleDigits              // digits only, one
	styles
)

// value makes the ordinary value of a field for a seed, as raw JSON. Values of
// different seeds differ, but for booleans, dates and the codes of countries and
// currencies, which repeat.
func (v valuer) value(f rpc.Field, s seed, how style) json.RawMessage {
	if f.Array {
		f.Array = false
		return json.RawMessage(fmt.Sprintf("[%s,%s]", v.value(f, s, how), v.value(f, s.version(versions/2), how)))
	}
	n := v.number(s)
	switch f.Type {
	case rpc.TypeBoolean:
		return json.RawMessage(strconv.FormatBool((s/versions+s%versions)%2 == 0))
	case rpc.TypeDecimal:
		if how >= styleSmall {
			return quote(fmt.Sprintf("%d.5", n%100))
		}
		return quote(fmt.Sprintf("%d.%02d", n/100, n%90+10))
	case rpc.TypeFloat:
		if how >= styleSmall {
			return json.RawMessage(fmt.Sprintf("%d.5", n%100))
		}
		return json.RawMessage(strconv.FormatFloat(float64(n%10_000)+0.5, 'f', -1, 64))
	case rpc.TypeInteger:
		if how >= styleSmall {
			return json.RawMessage(strconv.Itoa(int(n%99) + 1))
		}
		return json.RawMessage(strconv.Itoa(int(n) + 1))
	case rpc.TypeDate:
		return quote(v.day(n, how).Format(time.DateOnly))
	case rpc.TypeDateTime:
		return quote(v.day(n, how).Add(time.Duration(n%86400) * time.Second).Format(time.RFC3339))
	default:
		return quote(v.text(f, n, how))
	}
}

// day lies in the past, as birthdays and orders do.
func (v valuer) day(n uint32, how style) time.Time {
	first, days := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), uint32(14_000)
	if how >= styleSmall {
		first, days = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), 1_000
	}
	return first.AddDate(0, 0, int(n%days))
}

// text is lower case, without spaces at its ends and without marks, so that what
// an endpoint does to text shows in the checks about text and in no other.
func (v valuer) text(f rpc.Field, n uint32, how style) string {
	code := strconv.FormatUint(uint64(n), 36)
	switch how {
	case styleGuess:
		if make := guessed(f); make != nil {
			return make(n, code)
		}
		return strings.TrimSpace(foreign.Clip("conf "+code+" "+strings.ToLower(f.APIName), 40))
	case styleSmall:
		return letters(n)
	case styleDigits:
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

// expand fills in {n}, a number that no other record has, and {key}, the
// identifier of the record, in the author's fixture.
func (v valuer) expand(raw string, s seed, key json.RawMessage) json.RawMessage {
	if !strings.Contains(raw, "{") {
		return json.RawMessage(raw)
	}
	text := string(quote(keyText(key)))
	return json.RawMessage(strings.NewReplacer("{n}", strconv.Itoa(int(v.number(s))), "{key}", text[1:len(text)-1]).Replace(raw))
}
