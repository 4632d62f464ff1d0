package cell

import (
	"strings"

	"github.com/destkit/destkit/server/api"
)

// kindWord says which kind of values a declared type with this word holds.
type kindWord struct {
	word  string
	whole bool // the type's name is this word, not merely holds it
	kind  api.Kind
}

// kindWords are tried in their order. SQLite takes any word for a type, so this
// knows the words of many databases; those of SQLite's own affinity rules come
// after the words that contain them, such as POINT and INT.
var kindWords = []kindWord{
	{"ARRAY", false, api.KindArray}, {"[]", false, api.KindArray}, {"LIST", true, api.KindArray},
	{"BOOL", false, api.KindBoolean}, {"BIT", true, api.KindBoolean},
	{"DATETIME", false, api.KindDateTime}, {"TIMESTAMP", false, api.KindDateTime},
	{"DATE", true, api.KindDate},
	{"TIME", false, api.KindString}, {"INTERVAL", false, api.KindString}, {"POINT", false, api.KindString},
	{"JSON", false, api.KindObject}, {"VARIANT", true, api.KindObject}, {"OBJECT", true, api.KindObject},
	{"STRUCT", false, api.KindObject}, {"RECORD", true, api.KindObject}, {"MAP", true, api.KindObject},
	{"INT", false, api.KindInteger}, {"SERIAL", false, api.KindInteger},
	{"CHAR", false, api.KindString}, {"CLOB", false, api.KindString}, {"TEXT", false, api.KindString},
	{"STRING", true, api.KindString}, {"UUID", true, api.KindString}, {"ENUM", false, api.KindString},
	{"BLOB", false, api.KindBinary}, {"BINARY", false, api.KindBinary}, {"BYTEA", true, api.KindBinary}, {"BYTES", true, api.KindBinary},
	{"REAL", false, api.KindFloat}, {"FLOA", false, api.KindFloat}, {"DOUB", false, api.KindFloat},
	{"DEC", false, api.KindDecimal}, {"NUM", false, api.KindDecimal}, {"MONEY", false, api.KindDecimal},
}

// Declared reads a declared type such as "varchar(20)". A number with a
// precision and no places after the point is an integer.
func Declared(declared string) api.Kind {
	name := strings.ToUpper(strings.TrimSpace(declared))
	word, arguments, _ := strings.Cut(name, "(")
	word = strings.TrimSpace(word)
	for _, k := range kindWords {
		if k.whole && word != k.word || !strings.Contains(word, k.word) {
			continue
		}
		if k.kind == api.KindDecimal && strings.HasSuffix(strings.ReplaceAll(arguments, " ", ""), ",0)") {
			return api.KindInteger
		}
		return k.kind
	}
	return api.KindAny
}
