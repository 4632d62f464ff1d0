package values

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// Seed is what the values of one record are derived from: a number that no other
// record of the run has. Unique columns of a destination then never collide.
type Seed uint32

// versions is how many sets of values a record can have under one key.
const versions = 128

// NewSeed numbers the n-th record of a check, both from 0.
func NewSeed(check, n int) Seed {
	return Seed(check%256)<<20 | Seed(n%8192)<<7
}

// Version is the seed of other values under the same key.
func (s Seed) Version(n int) Seed { return s/versions*versions + (s+Seed(n))%versions }

// Maker makes ordinary values. Its numbers fit into 28 bits: what an ordinary
// column takes.
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

// Value makes the ordinary value of a field for a seed, as raw JSON. Values of
// different seeds differ, but for booleans, dates and the codes of countries and
// currencies, which repeat.
func (v Maker) Value(f rpc.Field, s Seed, how Style) json.RawMessage {
	if f.Array {
		f.Array = false
		return json.RawMessage(fmt.Sprintf("[%s,%s]", v.Value(f, s, how), v.Value(f, s.Version(versions/2), how)))
	}
	n := v.Number(s)
	switch f.Type {
	case rpc.TypeBoolean:
		return json.RawMessage(strconv.FormatBool((s/versions+s%versions)%2 == 0))
	case rpc.TypeDecimal:
		if how >= Small {
			return Quote(fmt.Sprintf("%d.5", n%100))
		}
		return Quote(fmt.Sprintf("%d.%02d", n/100, n%90+10))
	case rpc.TypeFloat:
		if how >= Small {
			return json.RawMessage(fmt.Sprintf("%d.5", n%100))
		}
		return json.RawMessage(strconv.FormatFloat(float64(n%10_000)+0.5, 'f', -1, 64))
	case rpc.TypeInteger:
		if how >= Small {
			return json.RawMessage(strconv.Itoa(int(n%99) + 1))
		}
		return json.RawMessage(strconv.Itoa(int(n) + 1))
	case rpc.TypeDate:
		return Quote(v.day(n, how).Format(time.DateOnly))
	case rpc.TypeDateTime:
		return Quote(v.day(n, how).Add(time.Duration(n%86400) * time.Second).Format(time.RFC3339))
	default:
		return Quote(v.text(f, n, how))
	}
}

// day lies in the past, as birthdays and orders do.
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

// Expand fills in {n}, a number that no other record has, and {key}, the
// identifier of the record, in the author's fixture.
func (v Maker) Expand(raw string, s Seed, key json.RawMessage) json.RawMessage {
	if !strings.Contains(raw, "{") {
		return json.RawMessage(raw)
	}
	text := string(Quote(Text(key)))
	return json.RawMessage(strings.NewReplacer("{n}", strconv.Itoa(int(v.Number(s))), "{key}", text[1:len(text)-1]).Replace(raw))
}
