package records

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

func TestRecordsHaveTheTypesOfTheirFields(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range rpc.FieldTypes() {
		for range 200 {
			for _, array := range []bool{false, true} {
				raw := appendField(nil, rpc.Field{Type: typ, Array: array}, r)
				require.True(t, json.Valid(raw), string(raw))
				var v any
				require.NoError(t, json.Unmarshal(raw, &v))
				if array {
					list := v.([]any)
					require.NotEmpty(t, list)
					v = list[0]
				}
				want := map[string]any{rpc.TypeBoolean: true, rpc.TypeFloat: 1.0, rpc.TypeInteger: 1.0}[typ]
				if want == nil {
					want = ""
				}
				require.IsType(t, want, v, typ)
			}
		}
	}
}

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
		rows, err := m.FromTemplate(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, rows)
		for _, r := range rows[:3] {
			require.NoError(t, rawjson.Valid(r.Text), "%s", r.Text)
		}
	})
}

func fuzzMaker(fields ...rpc.Field) *Maker {
	return &Maker{
		Random: rand.New(rand.NewPCG(1, 2)), Keys: Keys{Template: "k-{n}@fuzz.test", From: 1, To: 1000},
		Object: Object{Fields: fields, Mapped: fields, Identifier: fields[0]},
	}
}
