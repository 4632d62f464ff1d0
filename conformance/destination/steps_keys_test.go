package destination

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/judge"
)

// TestKeysOfARowDifferAsWritten: two rows whose keys differ by one thing do so in an
// address, too.
func TestKeysOfARowDifferAsWritten(t *testing.T) {
	for row, want := range map[string][2]string{ // with the keys k-1 and k-1@a.io
		`"{key}-end"`:       {`"k-1-end"`, `"k-1-end@a.io"`},
		`"{key}-end "`:      {`"k-1-end "`, `"k-1-end@a.io "`},
		`"{key}+a"`:         {`"k-1+a"`, `"k-1+a@a.io"`},
		`"{key}-{to 64}a"`:  {`"k-1-{to 64}a"`, `"k-1-{to 64}a@a.io"`},
		`"1728486000001"`:   {`"1728486000001"`, `"1728486000001"`},
		`"001728486000001"`: {`"001728486000001"`, `"001728486000001"`},
	} {
		require.Equal(t, want, [2]string{judge.KeyIn(row, "k-1"), judge.KeyIn(row, "k-1@a.io")}, row)
	}
}
