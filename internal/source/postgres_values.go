package source

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/destkit/destkit/internal/source/internal/cell"
)

// postgresWriter turns a value as the server sends it into JSON, and reports
// whether the binary form is asked for. A type that is not known here reads as
// its text.
func postgresWriter(oid uint32) (write func(dst, value []byte) []byte, binaryForm bool) {
	switch oid {
	case pgtype.BoolOID:
		return func(dst, v []byte) []byte { return cell.AppendBool(dst, len(v) == 1 && v[0] == 1) }, true
	case pgtype.Int2OID:
		return func(dst, v []byte) []byte {
			return strconv.AppendInt(dst, int64(int16(binary.BigEndian.Uint16(v))), 10)
		}, true
	case pgtype.Int4OID:
		return func(dst, v []byte) []byte {
			return strconv.AppendInt(dst, int64(int32(binary.BigEndian.Uint32(v))), 10)
		}, true
	case pgtype.Int8OID:
		return func(dst, v []byte) []byte { return strconv.AppendInt(dst, int64(binary.BigEndian.Uint64(v)), 10) }, true
	case pgtype.OIDOID:
		return func(dst, v []byte) []byte { return strconv.AppendUint(dst, uint64(binary.BigEndian.Uint32(v)), 10) }, true
	case pgtype.Float4OID:
		return func(dst, v []byte) []byte {
			return cell.AppendFloat(dst, float64(math.Float32frombits(binary.BigEndian.Uint32(v))), 32)
		}, true
	case pgtype.Float8OID:
		return func(dst, v []byte) []byte {
			return cell.AppendFloat(dst, math.Float64frombits(binary.BigEndian.Uint64(v)), 64)
		}, true
	case pgtype.NumericOID:
		return appendNumeric, true
	case pgtype.DateOID:
		return appendPostgresDate, true
	case pgtype.TimestampOID:
		return func(dst, v []byte) []byte { return appendPostgresMoment(dst, v, "") }, true
	case pgtype.TimestamptzOID:
		return func(dst, v []byte) []byte { return appendPostgresMoment(dst, v, "Z") }, true
	case pgtype.JSONOID:
		return appendJSONText, false
	case pgtype.JSONBOID:
		return appendJSONText, false
	case pgtype.ByteaOID:
		return cell.AppendBinary, true
	case pgtype.UUIDOID:
		return cell.AppendUUID, true
	}
	return func(dst, v []byte) []byte { return cell.AppendString(dst, v) }, false
}

// appendJSONText writes what the server holds as JSON. Its json may be of
// another form than ours, and in an old database not even valid.
func appendJSONText(dst, text []byte) []byte { return cell.AppendEmbedded(dst, json.RawMessage(text)) }

// appendNumeric writes a decimal from its digits of base 10,000: their number,
// the weight of the first, the sign, the places after the point, the digits.
func appendNumeric(dst, v []byte) []byte {
	digits, weight := int(binary.BigEndian.Uint16(v)), int(int16(binary.BigEndian.Uint16(v[2:])))
	sign, scale := binary.BigEndian.Uint16(v[4:]), int(binary.BigEndian.Uint16(v[6:]))
	switch sign {
	case 0xc000:
		return append(dst, `"NaN"`...)
	case 0xd000:
		return append(dst, `"Infinity"`...)
	case 0xf000:
		return append(dst, `"-Infinity"`...)
	case 0x4000:
		dst = append(dst, '-')
	}
	group := func(place int) int { // of 10,000 to the power of place
		if i := weight - place; i >= 0 && i < digits {
			return int(binary.BigEndian.Uint16(v[8+2*i:]))
		}
		return 0
	}
	dst = strconv.AppendInt(dst, int64(group(max(weight, 0))), 10)
	for place := weight - 1; place >= 0; place-- {
		dst = cell.AppendPadded(dst, group(place), 4)
	}
	if scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	end := len(dst) + scale
	for place := -1; len(dst) < end; place-- {
		dst = cell.AppendPadded(dst, group(place), 4)
	}
	return dst[:end]
}

// Days and times count from 2000-01-01; the ends of the range are infinite.
const (
	postgresEpochDays    = 10957
	postgresEpochSeconds = postgresEpochDays * 86400
)

// appendPostgresDate: days since 2000, with two values for the infinities,
// which are texts here as in the server's own output.
func appendPostgresDate(dst, v []byte) []byte {
	switch days := int32(binary.BigEndian.Uint32(v)); days {
	case math.MaxInt32:
		return append(dst, `"infinity"`...)
	case math.MinInt32:
		return append(dst, `"-infinity"`...)
	default:
		return append(cell.AppendDate(append(dst, '"'), int64(days)+postgresEpochDays), '"')
	}
}

// appendPostgresMoment: microseconds since 2000; zone is Z, or nothing for a
// type without one.
func appendPostgresMoment(dst, v []byte, zone string) []byte {
	switch micros := int64(binary.BigEndian.Uint64(v)); micros {
	case math.MaxInt64:
		return append(dst, `"infinity"`...)
	case math.MinInt64:
		return append(dst, `"-infinity"`...)
	default:
		dst = cell.AppendTimestamp(append(dst, '"'), micros+postgresEpochSeconds*1_000_000, 1_000_000)
		return append(append(dst, zone...), '"')
	}
}
