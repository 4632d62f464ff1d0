package loadgen

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// FuzzResult: a result file that is taken can be shown and compared, whatever it says.
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
		require.NoError(t, WriteCSV(io.Discard, r))
		_ = WriteJSON(io.Discard, r)           // refuses what JSON has no word for
		_ = WriteHistogramLog(io.Discard, r)   // refuses histograms that are none
		_, _ = Merge([]*Result{r, r})          // the same
		require.NotNil(t, Compare(r, r, 0.05)) // nothing to refuse
		require.Empty(t, Compare(r, r, 0.05).Apart)
	})
}

// FuzzTemplate: a template that is taken makes records, each of them JSON with the key of
// the run.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		`{"email":"{{key}}","age":"{{int 18 90}}","city":"{{pick Oslo Rome}}"}`, `{"age":"{{float 1 2}}","city":["{{hex 4}}",null]}`, `{"city":"{{int 9 1}}"}`,
		`{"city":"{{int -9223372036854775808 9223372036854775807}}"}`, `{"city":"{{hex 999999999}}"}`, `{"city":"{{words"}`, `{"other":1}`, `[]`, `{"age":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		email, age, city := rpc.Field{APIName: "email", Type: rpc.TypeString}, rpc.Field{APIName: "age", Type: rpc.TypeInteger}, rpc.Field{APIName: "city", Type: rpc.TypeString}
		m := fuzzMaker(email, age, city)
		rows, err := m.fromTemplate(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, rows)
		for _, r := range rows[:3] {
			require.NoError(t, rpc.Valid(r.text), "%s", r.text)
		}
	})
}

func fuzzMaker(fields ...rpc.Field) *maker {
	return &maker{
		random: rand.New(rand.NewPCG(1, 2)), keys: Keys{Template: "k-{n}@fuzz.test", From: 1, To: 1000},
		object: object{fields: fields, mapped: fields, identifier: fields[0]},
	}
}
