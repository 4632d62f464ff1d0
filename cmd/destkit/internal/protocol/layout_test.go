package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLayoutJSON(t *testing.T) {
	for _, tc := range []struct {
		name, text, want string
		width            int
	}{
		{"fits", `{"b":1,"a":[true,null]}`, `{"b": 1, "a": [true, null]}`, 40},
		{"breaks", `{"b":1.50,"a":{"c":"<&>"}}`, "{\n  \"b\": 1.50,\n  \"a\": {\"c\": \"<&>\"}\n}", 20},
		{"empty", `{"a":{},"b":[]}`, "{\n  \"a\": {},\n  \"b\": []\n}", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := layoutJSON([]byte(tc.text), tc.width)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
	for _, bad := range []string{``, `{`, `{"a"}`, `[1`} {
		_, err := layoutJSON([]byte(bad), 10)
		require.Error(t, err, bad)
	}
}

func TestIDRanges(t *testing.T) {
	require.Equal(t, "A-001, A-003 to A-005, B-006, B-007", idRanges([]string{"B-007", "A-001", "A-004", "A-003", "A-005", "B-006", "A-001"}))
	require.Empty(t, idRanges(nil))
}
