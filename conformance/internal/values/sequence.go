package values

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// Of one record after the other, each has the value that the one before it will have
// next. So one batch that changes all of them makes every change of a sequence.

// Nth is the number of the record, within its check, that a seed is of.
func (s Seed) Nth() int { return int(s % (1 << 20) / versions) }

// lengths are those that arrays have in turn; null stands for no array.
var lengths = []int{3, 1, 0, null, 2}

const null = -1

// ArrayInTurn is the array of a record in a turn: three items, one, none, null (where the
// field takes it) and two. Items of different turns differ.
func (v Maker) ArrayInTurn(f rpc.Field, s Seed, turn int, how Style, nullable bool) json.RawMessage {
	n := lengths[(s.Nth()+turn)%len(lengths)]
	if n == null && nullable {
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

// Opposite is a value on the other side of one that the field has: longer or shorter,
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
			switch {
			case x > y:
				return 1
			case x < y:
				return -1
			}
			return 0
		}
	}
	return strings.Compare(textA, textB)
}
