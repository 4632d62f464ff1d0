// Package records makes the records of a load as JSON text: of the declared fields of an
// object, of a template or of a file, with the places of their keys, and the keys that a
// run can use. Batches and who sends them it leaves to others.
package records

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// Row is one record as JSON text with the places of its keys. The active
// identifier is key[from:to] of the text, quotes included.
type Row struct {
	Text     []byte
	Marks    []Mark
	From, To int
}

// Member appends `"name":` with what separates it from the member before.
func (r *Row) Member(name string) {
	if len(r.Text) == 0 {
		r.Text = append(r.Text, '{')
	} else {
		r.Text = append(r.Text, ',')
	}
	r.Text = append(rawjson.AppendString(r.Text, name), ':')
}

// Key appends a key of the run as a value and leaves the mark.
func (r *Row) Key(k Keys, integer bool) {
	r.From = len(r.Text)
	if integer {
		width := len(strconv.FormatInt(k.To, 10))
		r.Marks = append(r.Marks, Mark{len(r.Text), width, k.From})
		r.Text = append(r.Text, make([]byte, width)...)
		PutDigits(r.Text[r.From:], k.From)
	} else {
		quoted := rawjson.AppendString(nil, k.Template)
		at := indexOf(quoted, "{n}")
		r.Text = append(r.Text, quoted[:at]...)
		r.Marks = append(r.Marks, Mark{len(r.Text), KeyDigits, 0})
		for range KeyDigits {
			r.Text = append(r.Text, '0')
		}
		r.Text = append(r.Text, quoted[at+3:]...)
	}
	r.To = len(r.Text)
}

func indexOf(b []byte, word string) int {
	for i := range b {
		if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
			return i
		}
	}
	return -1
}

// Maker makes records of an object from its declared fields.
type Maker struct {
	Object Object
	Keys   Keys
	Random *rand.Rand
}

// Row makes one record: the identifier, then every other field that may be
// written. Other identifier fields get keys from their own number, so they
// are unique as well.
func (m *Maker) Row() Row {
	var r Row
	active := m.Object.Identifier
	r.Member(active.APIName)
	r.Key(m.Keys, active.Type == rpc.TypeInteger)
	from, to := r.From, r.To
	for _, f := range m.Object.Mapped[1:] {
		r.Member(f.APIName)
		if f.Identifier && !f.Array {
			r.Key(m.Keys, f.Type == rpc.TypeInteger)
			continue
		}
		r.Text = appendField(r.Text, f, m.Random)
	}
	r.Text = append(r.Text, '}')
	r.From, r.To = from, to
	return r
}

// appendField appends a random value of a field; arrays have one to three.
func appendField(dst []byte, f rpc.Field, random *rand.Rand) []byte {
	if !f.Array {
		return appendValue(dst, f, random)
	}
	dst = append(dst, '[')
	for i := range 1 + random.IntN(3) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, f, random)
	}
	return append(dst, ']')
}

// appendValue appends one value as its type travels.
func appendValue(dst []byte, f rpc.Field, random *rand.Rand) []byte {
	switch f.Type {
	case rpc.TypeBoolean:
		return strconv.AppendBool(dst, random.IntN(2) == 0)
	case rpc.TypeDecimal:
		return fmt.Appendf(dst, `"%d.%04d"`, random.IntN(100000), random.IntN(10000))
	case rpc.TypeFloat:
		return strconv.AppendFloat(dst, float64(random.IntN(1000000))/100, 'g', -1, 64)
	case rpc.TypeInteger:
		return strconv.AppendInt(dst, int64(random.IntN(100000)), 10)
	case rpc.TypeDate:
		return fmt.Appendf(dst, `"%04d-%02d-%02d"`, 1950+random.IntN(80), 1+random.IntN(12), 1+random.IntN(28))
	case rpc.TypeDateTime:
		return fmt.Appendf(dst, `"%04d-%02d-%02dT%02d:%02d:%02dZ"`, 2000+random.IntN(30), 1+random.IntN(12), 1+random.IntN(28),
			random.IntN(24), random.IntN(60), random.IntN(60))
	}
	return rawjson.AppendString(dst, words(random))
}

// words makes a short text with a little beyond ASCII, as real data has.
func words(random *rand.Rand) string {
	text := vocabulary[random.IntN(len(vocabulary))]
	return text + " " + vocabulary[random.IntN(len(vocabulary))] + " " + strconv.Itoa(random.IntN(10000))
}

var vocabulary = []string{
	"Amber", "Birch", "Cedar", "Delta", "Ember", "Fjord", "Garnet", "Harbour", "Indigo", "Juniper", "Kestrel", "Linden",
	"Meadow", "Nordlys", "Orchard", "Pebble", "Quarry", "Ridge", "Saffron", "Tundra", "Umber", "Valley", "Willow", "Zephyr",
	"Übersee", "Île", "Señal",
}
