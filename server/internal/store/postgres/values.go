package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/destkit/destkit/server/internal/store/database"
)

// The two forms of a value on the wire.
const (
	asText  int16 = 0
	asBytes int16 = 1
)

// formatOf is the form in which a column is asked for.
func formatOf(oid uint32) int16 {
	if oid == pgtype.ByteaOID {
		return asBytes
	}
	return asText
}

// arguments puts values into the form in which they are sent; nil is NULL.
func arguments(args []any) (values [][]byte, formats []int16, err error) {
	values, formats = make([][]byte, len(args)), make([]int16, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case nil:
		case int64:
			values[i] = strconv.AppendInt(nil, v, 10)
		case *int64:
			if v != nil {
				values[i] = strconv.AppendInt(nil, *v, 10)
			}
		case bool:
			values[i] = flag(v)
		case *bool:
			if v != nil {
				values[i] = flag(*v)
			}
		case string:
			values[i] = encodeText(v)
		case []byte:
			// Empty and not NULL, as SQLite takes it.
			values[i], formats[i] = append([]byte{}, v...), asBytes
		case time.Time:
			if !v.IsZero() {
				values[i] = strconv.AppendInt(nil, v.UnixMilli(), 10)
			}
		case database.Document:
			text, err := v.JSON()
			if err != nil {
				return nil, nil, err
			}
			values[i] = encodeText(text)
		default:
			panic(fmt.Sprintf("argument %d is a %T", i+1, arg))
		}
	}
	return values, formats, nil
}

// flag is a truth as both databases keep it.
func flag(v bool) []byte {
	if v {
		return []byte("1")
	}
	return []byte("0")
}

// escape begins what stands for a byte that PostgreSQL's text cannot hold: U+0000,
// and what is no UTF-8. It stands for itself in the same way, so that every text
// has one form and two texts never share one.
const escape = '\x1a'

// encodeText writes such a byte as escape and two hex digits.
func encodeText(text string) []byte {
	if strings.IndexByte(text, 0) < 0 && strings.IndexByte(text, escape) < 0 && utf8.ValidString(text) {
		return []byte(text) // nearly always
	}
	b := make([]byte, 0, len(text)+8)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == 0 || r == escape || r == utf8.RuneError && size == 1 {
			b = fmt.Appendf(b, "%c%02x", escape, text[i])
		} else {
			b = append(b, text[i:i+size]...)
		}
		i += size
	}
	return b
}

// decodeText reads what encodeText has written.
func decodeText(stored []byte) string {
	text := string(stored)
	if strings.IndexByte(text, escape) < 0 {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == escape && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(n))
				i += 2
				continue
			}
		}
		b = append(b, text[i])
	}
	return string(b)
}

// columns are the present row of a result.
type columns [][]byte

// Number implements database.Cells.
func (r columns) Number(col int) (int64, bool) {
	if r[col] == nil {
		return 0, false
	}
	n, _ := strconv.ParseInt(string(r[col]), 10, 64) // 0 for a text, as SQLite says
	return n, true
}

// Text implements database.Cells.
func (r columns) Text(col int) string { return decodeText(r[col]) }

// Blob implements database.Cells.
func (r columns) Blob(col int) []byte { return append([]byte{}, r[col]...) }
