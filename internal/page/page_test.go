package page

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentence(t *testing.T) {
	require.EqualValues(t, `3 need <span class="flag">--write</span> <span class="flag">--object NAME</span>, --, -x`, Sentence("3 need --write --object NAME, --, -x"))
	require.EqualValues(t, `&lt;b&gt;--&lt;script&gt; <span class="flag">--a-b</span>&#34;`, Sentence(`<b>--<script> --a-b"`))
}

// TestStyleIsWhole: nothing from outside, and the colours for light, dark and paper.
func TestStyleIsWhole(t *testing.T) {
	require.NotRegexp(t, `(?i)url\(|@import|</style`, Style)
	require.Contains(t, Style, "prefers-color-scheme: dark")
	require.Contains(t, Style, "@media print")
}
