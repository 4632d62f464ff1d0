package values

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStringKeys(t *testing.T) {
	k := NewKeys("7f3a", DefaultKeyTemplate, 0, 0)
	require.Equal(t, "zz-conf-7f3a-RES-002-1", k.NextText("RES-002"))
	require.Equal(t, "zz-conf-7f3a-RES-002-2", k.NextText("RES-002"))
	require.Equal(t, "zz-conf-7f3a-SEM-001-1", k.NextText("SEM-001"))

	k = NewKeys("7f3a", "zz-{run}-{check}-{n}@example.com", 0, 0)
	require.Equal(t, "zz-7f3a-RES-002-1@example.com", k.NextText("RES-002"))

	// Without {check} the number alone keeps the keys of all checks apart.
	k = NewKeys("7f3a", "{n}-{run}", 0, 0)
	require.Equal(t, "1-7f3a", k.NextText("RES-002"))
	require.Equal(t, "2-7f3a", k.NextText("SEM-001"))
}

func TestIntegerKeys(t *testing.T) {
	for _, r := range [][]int64{{5, 6}, {-3, -3}} {
		k := NewKeys("7f3a", DefaultKeyTemplate, r[0], r[1])
		for want := r[0]; want <= r[1]; want++ {
			require.Equal(t, want, k.UnusedInteger())
			n, ok := k.NextInteger()
			require.True(t, ok)
			require.Equal(t, want, n)
		}
		_, ok := k.NextInteger()
		require.False(t, ok, "the range is closed")
	}
	own := NewKeys("7f3a", DefaultKeyTemplate, 0, 0)
	require.Greater(t, own.From, int64(1)<<32)
	require.Less(t, own.To, int64(1)<<53)
	require.NotEqual(t, own.From, NewKeys("7f3b", DefaultKeyTemplate, 0, 0).From, "two runs do not share a range")
}

// TestAlikeKeys: keys that many systems take for one are recognised, and keys that differ in more
// are not.
func TestAlikeKeys(t *testing.T) {
	for _, c := range [][3]string{
		{"a-Case", "a-case", "in case only"}, {"a b", "a  b", "in spaces only"}, {"end", "end ", "in spaces only"}, {"\u00e9", "e\u0301", "in their Unicode form only"},
		{"a?x", "a?y", "behind a ? only"}, {"a_b", "a-b", "where one has _ only"}, {"a_b", "c_b", ""}, {"0018", "18", "in leading zeros only"}, {"a", "b", ""}, {"a", "a", ""}, {"a?x", "b?x", ""},
	} {
		require.Equal(t, c[2], AlikeKeys(c[0], c[1]), c)
	}
}
