package fileformat

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwosComplement(t *testing.T) {
	for want, b := range map[int64][]byte{0: {0}, 5: {5}, -1: {0xff}, -128: {0x80}, 256: {1, 0}, -256: {0xff, 0}} {
		require.Zero(t, big.NewInt(want).Cmp(twosComplement(b)), b)
	}
	require.Equal(t, "0", twosComplement(nil).String())
}

func TestFloat16(t *testing.T) {
	for want, bits := range map[float64]uint16{1: 0x3c00, -2: 0xc000, 65504: 0x7bff, math.Ldexp(1, -24): 1, 0: 0, math.Inf(1): 0x7c00, math.Inf(-1): 0xfc00} {
		require.InDelta(t, 0, map[bool]float64{true: 0, false: 1}[float16([]byte{byte(bits), byte(bits >> 8)}) == want], 0, "%x", bits)
	}
	require.True(t, math.IsNaN(float16([]byte{1, 0x7c})))
}
