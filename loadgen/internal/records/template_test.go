package records

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

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
