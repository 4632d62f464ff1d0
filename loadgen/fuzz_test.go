package loadgen

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzResult: a result file that is taken can be shown and compared, whatever it holds.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"schema_version":1,"load":{"mode":"closed"}}`, `{"schema_version":9}`, `[]`, ``, `{"schema_version":1,"load":{"mode":"rate","rate":1e308},"series":[null]}`,
		`{"schema_version":1,"load":{"mode":"closed"},"histograms":{"latency":"HISTFAAAACF42pNpmSzMwMDAxAABzFCaEUoz2X+AMIKZAEARAtM=","service_time":""}}`,
		`{"keys":[{"object":"contact","field":"email","count":3}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "result.json")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		if keys, err := ReadKeys(path); err == nil {
			for _, k := range keys {
				require.NotEmpty(t, k.Object)
				require.GreaterOrEqual(t, k.Count, int64(0))
			}
		}
		r, err := ReadResult(path)
		if err != nil {
			return
		}
		require.NoError(t, r.WriteCSV(io.Discard))
		_ = r.WriteJSON(io.Discard)            // refuses what JSON has no word for
		_ = r.WriteHistogramLog(io.Discard)    // refuses histograms that are none
		_, _ = Merge([]*Result{r, r})          // the same
		require.NotNil(t, Compare(r, r, 0.05)) // nothing to refuse
		require.Empty(t, Compare(r, r, 0.05).Apart)
	})
}
