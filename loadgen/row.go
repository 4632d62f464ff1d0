package loadgen

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/destkit/destkit/destsim/rpc"
)

// row is one record as JSON text with the places of its keys. The active
// identifier is key[from:to] of the text, quotes included.
type row struct {
	text     []byte
	marks    []mark
	from, to int
}

// member appends `"name":` with what separates it from the member before.
func (r *row) member(name string) {
	if len(r.text) == 0 {
		r.text = append(r.text, '{')
	} else {
		r.text = append(r.text, ',')
	}
	r.text = append(rpc.AppendString(r.text, name), ':')
}

// key appends a key of the run as a value and leaves the mark.
func (r *row) key(k Keys, integer bool) {
	r.from = len(r.text)
	if integer {
		width := len(strconv.FormatInt(k.To, 10))
		r.marks = append(r.marks, mark{len(r.text), width, k.From})
		r.text = append(r.text, make([]byte, width)...)
		putDigits(r.text[r.from:], k.From)
	} else {
		quoted := rpc.AppendString(nil, k.Template)
		at := indexOf(quoted, "{n}")
		r.text = append(r.text, quoted[:at]...)
		r.marks = append(r.marks, mark{len(r.text), keyDigits, 0})
		for range keyDigits {
			r.text = append(r.text, '0')
		}
		r.text = append(r.text, quoted[at+3:]...)
	}
	r.to = len(r.text)
}

func indexOf(b []byte, word string) int {
	for i := range b {
		if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
			return i
		}
	}
	return -1
}

// maker makes records of an object from its declared fields.
type maker struct {
	object object
	keys   Keys
	random *rand.Rand
}

// row makes one record: the identifier, then every other field that may be
// written. Other fields that are identifiers get keys of their own number, so
// they are unique as well.
func (m *maker) row() row {
	var r row
	active := m.object.identifier
	r.member(active.APIName)
	r.key(m.keys, active.Type == rpc.TypeInteger)
	from, to := r.from, r.to
	for _, f := range m.object.mapped[1:] {
		r.member(f.APIName)
		if f.Identifier && !f.Array {
			r.key(m.keys, f.Type == rpc.TypeInteger)
			continue
		}
		r.text = appendField(r.text, f, m.random)
	}
	r.text = append(r.text, '}')
	r.from, r.to = from, to
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
	return rpc.AppendString(dst, words(random))
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
