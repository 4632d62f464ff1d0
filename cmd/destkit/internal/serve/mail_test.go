package serve

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadPassword(t *testing.T) {
	file := t.TempDir() + "/password"
	for name, tc := range map[string]struct{ text, want, said string }{
		"as it is":         {" with spaces ", " with spaces ", ""},
		"with a line end":  {"secret-word\r\n", "secret-word", ""},
		"empty":            {"\n", "", "is empty"},
		"two lines":        {"secret-word\nmore", "", "holds more than one line"},
		"another file":     {string(make([]byte, maxPassword+1)), "", "is larger than 4096 bytes"},
		"a NUL at the end": {"secret-word\x00", "", "holds more than one line"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
			got, err := readPassword(file)
			if tc.said == "" {
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
				return
			}
			require.ErrorContains(t, err, tc.said)
			require.NotContains(t, err.Error(), "secret-word")
		})
	}
}
