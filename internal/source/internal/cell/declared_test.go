package cell

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestDeclaredKind(t *testing.T) {
	for declared, want := range map[string]api.Kind{
		"INTEGER": api.KindInteger, "bigint": api.KindInteger, "UNSIGNED BIG INT": api.KindInteger, "INT64": api.KindInteger, "bigserial": api.KindInteger,
		"NUMBER(38,0)": api.KindInteger, "NUMBER(38, 2)": api.KindDecimal, "NUMERIC": api.KindDecimal, "decimal(10)": api.KindDecimal, "MONEY": api.KindDecimal, "NUM": api.KindDecimal,
		"REAL": api.KindFloat, "DOUBLE PRECISION": api.KindFloat, "FLOAT64": api.KindFloat,
		"VARCHAR(20)": api.KindString, "text": api.KindString, "STRING": api.KindString, "UUID": api.KindString, "TIME": api.KindString, "INTERVAL": api.KindString, "POINT": api.KindString,
		"BOOLEAN": api.KindBoolean, "bool": api.KindBoolean, "BIT": api.KindBoolean,
		"DATE": api.KindDate, "DATETIME": api.KindDateTime, "timestamp with time zone": api.KindDateTime, "TIMESTAMP_NTZ(9)": api.KindDateTime,
		"JSON": api.KindObject, "jsonb": api.KindObject, "VARIANT": api.KindObject, "STRUCT<a INT64>": api.KindObject,
		"ARRAY<INT64>": api.KindArray, "text[]": api.KindArray,
		"BLOB": api.KindBinary, "VARBINARY(10)": api.KindBinary, "BYTES": api.KindBinary, "bytea": api.KindBinary,
		"": api.KindAny, "ANY": api.KindAny, "something": api.KindAny,
	} {
		require.Equal(t, want, Declared(declared), declared)
	}
}
