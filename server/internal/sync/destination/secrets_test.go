package destination

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForeign(t *testing.T) {
	r := newRedactor([]string{"secret"})
	require.Equal(t, "a b \uFFFD", r.Foreign("a\nb\x00\xff"))
	require.Equal(t, "the [hidden] is wrong", r.Foreign("the SECRET is wrong\n"))
	require.Len(t, []rune(r.Foreign(strings.Repeat("é", 2*maxForeign))), maxForeign+1)
}
