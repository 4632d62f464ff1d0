package generated

import (
	"maps"
	"slices"
	"strconv"

	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// valueType makes the values of one type: JSON text from the number of the
// value and 64 random bits that belong to it.
type valueType struct {
	kind api.Kind
	make func(dst []byte, n int64, random uint64) []byte
}

// types make a value of row n from r, random bits of that cell alone.
// So a cell is the same whatever other columns there are.
var types = map[string]*valueType{
	"id":      {api.KindInteger, func(dst []byte, n int64, _ uint64) []byte { return strconv.AppendInt(dst, n+1, 10) }},
	"integer": {api.KindInteger, func(dst []byte, _ int64, r uint64) []byte { return strconv.AppendUint(dst, r%1_000_000_000, 10) }},
	"float": {api.KindFloat, func(dst []byte, _ int64, r uint64) []byte {
		return cell.AppendFloat(dst, float64(r>>11)/(1<<53)*1e6, 64)
	}},
	"decimal": {api.KindDecimal, appendMoney},
	"boolean": {api.KindBoolean, func(dst []byte, _ int64, r uint64) []byte { return cell.AppendBool(dst, r&1 == 1) }},
	"string":  {api.KindString, appendWords},
	"uuid":    {api.KindString, appendUUID},
	"email":   {api.KindString, appendEmail},

	"first_name": {api.KindString, choice(firstNames)},
	"last_name":  {api.KindString, choice(lastNames)},
	"city":       {api.KindString, choice(cities)},
	"company":    {api.KindString, appendCompany},

	"date":      {api.KindDate, appendDay},
	"date_time": {api.KindDateTime, appendMoment},
	changedType: {api.KindDateTime, appendMoment},
	"object":    {api.KindObject, appendObject},
	"array":     {api.KindArray, appendTags},
}

// Kind is the kind of the values of a type; false: there is no such type.
func Kind(typ string) (api.Kind, bool) {
	t := types[typ]
	if t == nil {
		return "", false
	}
	return t.kind, true
}

// Types are the types of columns, sorted.
func Types() []string { return slices.Sorted(maps.Keys(types)) }

// mix spreads 64 bits (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// AppendCell writes the value of a cell that was never updated: a function of
// seed, row and column and of nothing else.
func (t *Table) AppendCell(dst []byte, row int64, column int) []byte {
	return t.appendVersion(dst, row, column, 0)
}

// appendVersion is AppendCell for a row that was updated in a step.
func (t *Table) appendVersion(dst []byte, row int64, column int, updated int64) []byte {
	c := &t.Columns[column]
	// The bits of different questions about a cell must not depend on each other.
	base := mix(uint64(t.Seed) ^ mix(uint64(column)+1))
	if updated > 0 && !lasting[c.Type] {
		base = mix(base ^ uint64(updated))
	}
	if c.NullPercent != nil && mix(base+1^uint64(row))%100 < uint64(*c.NullPercent) {
		return append(dst, cell.Null...)
	}
	n := row
	if c.Distinct != nil {
		n = int64(mix(base+2^uint64(row)) % uint64(*c.Distinct))
	}
	return c.made.make(dst, n, mix(base^uint64(n)))
}

var (
	// Names with accents and apostrophes are among them on purpose.
	firstNames = []string{"Ada", "Alan", "Barbara", "Björn", "Chidi", "Dorothy", "Edsger", "Fatima", "Grace", "Hedy", "Ines", "Jun", "Katherine", "Leila", "Margaret", "Niels", "Olga", "Priya", "Rosa", "Zoë"}
	lastNames  = []string{"Abiola", "Becker", "Castro", "Dubois", "Eriksen", "Fischer", "García", "Haddad", "Ivanova", "Jansen", "Kowalski", "Lindqvist", "Moreau", "Nakamura", "O'Neill", "Petrov", "Rossi", "Silva", "Tanaka", "Weber"}
	cities     = []string{"Accra", "Bergen", "Córdoba", "Dublin", "Edinburgh", "Florence", "Ghent", "Hanoi", "Izmir", "Jakarta", "Kyoto", "Lima", "Malmö", "Nairobi", "Osaka", "Porto", "Quito", "Riga", "São Paulo", "Tallinn"}
	trades     = []string{"Bakery", "Foods", "Freight", "Gardens", "Instruments", "Labs", "Media", "Mills", "Optics", "Press", "Software", "Textiles", "Tools", "Travel", "Works"}
	words      = []string{"amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbour", "island", "jasper", "kelp", "lagoon", "meadow", "north", "opal", "prairie"}
)

// choice picks from a list.
func choice(of []string) func([]byte, int64, uint64) []byte {
	return func(dst []byte, _ int64, r uint64) []byte { return cell.AppendString(dst, of[r%uint64(len(of))]) }
}

// appendMoney is an amount with two places.
func appendMoney(dst []byte, _ int64, r uint64) []byte {
	cents := r % 10_000_000
	dst = append(strconv.AppendUint(dst, cents/100, 10), '.')
	return cell.AppendPadded(dst, int(cents%100), 2)
}

// appendWords is three words and a number, so that texts seldom repeat.
func appendWords(dst []byte, _ int64, r uint64) []byte {
	dst = append(dst, '"')
	for i := range 3 {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, words[r>>(4*i)&15]...)
	}
	return append(strconv.AppendUint(append(dst, ' '), r>>12, 36), '"')
}

// appendUUID looks like a random one (RFC 9562, version 4).
func appendUUID(dst []byte, n int64, r uint64) []byte {
	high, low := r&^0xf000|0x4000, mix(r^uint64(n))&^(3<<62)|2<<62 // version 4, its variant
	dst = append(dst, '"')
	for i := range 32 {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			dst = append(dst, '-')
		}
		half := high
		if i >= 16 {
			half = low
		}
		dst = append(dst, "0123456789abcdef"[half>>(60-4*(i%16))&15])
	}
	return append(dst, '"')
}

// appendEmail holds the number of the value, so that no two are the same.
func appendEmail(dst []byte, n int64, r uint64) []byte {
	dst = append(append(dst, '"'), words[r&15]...)
	dst = append(append(dst, '.'), words[r>>4&15]...)
	dst = strconv.AppendInt(dst, n+1, 10)
	return append(dst, `@example.com"`...)
}

// appendCompany is a name and a trade.
func appendCompany(dst []byte, _ int64, r uint64) []byte {
	dst = append(append(dst, '"'), lastNames[r%uint64(len(lastNames))]...)
	dst = append(append(dst, ' '), trades[r>>8%uint64(len(trades))]...)
	return append(dst, '"')
}

// Generated days are from 2020 to 2024.
const (
	firstDay = 18262 // 2020-01-01 in days since 1970
	days     = 1827
)

// appendDay and appendMoment fall into the same span of days.
func appendDay(dst []byte, _ int64, r uint64) []byte {
	return append(cell.AppendDate(append(dst, '"'), firstDay+int64(r%days)), '"')
}

func appendMoment(dst []byte, _ int64, r uint64) []byte {
	dst = cell.AppendDate(append(dst, '"'), firstDay+int64(r%days))
	dst = cell.AppendClock(append(dst, 'T'), int64(r>>16%86400)*1e9)
	return append(dst, `Z"`...)
}

// appendObject is nested, for mappings that read inside.
func appendObject(dst []byte, n int64, r uint64) []byte {
	dst = cell.AppendString(append(dst, `{"plan":`...), []string{"free", "team", "business"}[r%3])
	dst = strconv.AppendUint(append(dst, `,"seats":`...), r>>8%500, 10)
	return append(appendTags(append(dst, `,"tags":`...), n, mix(r)), '}')
}

// appendTags is a list of at most three words; it may be empty.
func appendTags(dst []byte, _ int64, r uint64) []byte {
	dst = append(dst, '[')
	for i := range int(r % 4) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = cell.AppendString(dst, words[r>>(8+4*i)&15])
	}
	return append(dst, ']')
}
