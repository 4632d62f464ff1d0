package records

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDigits(t *testing.T) {
	var a, b [6]byte
	PutDigits(a[:], 998)
	require.Equal(t, "000998", string(a[:]))
	for n := 999; n < 1203; n++ {
		NextDigits(b[:], a[:])
		require.Equal(t, fmt.Sprintf("%06d", n), string(b[:]))
		a = b
	}
}
