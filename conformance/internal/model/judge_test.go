package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/destsim/rpc"
)

// contact has a writable text, number and array, and a time that it keeps itself.
func contact(_, name string) (rpc.Field, bool) {
	kinds := map[string]string{"zip": rpc.TypeString, "age": rpc.TypeInteger, "tags": rpc.TypeString, "changed_at": rpc.TypeDateTime, "vip": rpc.TypeBoolean}
	own := name != "changed_at"
	return rpc.Field{APIName: name, Type: kinds[name], Array: name == "tags", Createable: own, Updateable: own}, kinds[name] != ""
}

// TestJudge plants a defect of each kind, and look-alikes that are no defects.
func TestJudge(t *testing.T) {
	bob := model.Place{Object: "contact", Field: "email", Key: "bob"}
	type sent struct {
		operation string
		outcome   model.Outcome
		place     model.Place
		values    string
	}
	created := sent{"upsert", yes, ada, `{"email":"ada","zip":"1","age":30,"tags":["a"],"vip":true}`}
	cases := []struct {
		name   string
		sent   []sent
		before string // what a read-back after the latest batch showed of ada; "" for none
		shown  map[string]string
		want   []model.Kind
	}{
		{"as it was sent", []sent{created}, "", map[string]string{"ada": `{"zip":"1","age":30,"tags":["a"],"vip":true,"changed_at":"2021-01-01T00:00:00Z"}`}, nil},
		{"lost", []sent{created}, "", map[string]string{}, []model.Kind{model.Lost}},
		{"a refused update that is written later", []sent{created, {"update", no, ada, `{"email":"ada","zip":"2"}`}}, "", map[string]string{"ada": `{"zip":"2","age":30,"tags":["a"]}`}, []model.Kind{model.Appeared}},
		{"a refused record that is written later", []sent{{"upsert", no, ada, `{"email":"ada","zip":"1"}`}}, "", map[string]string{"ada": `{"zip":"1"}`}, []model.Kind{model.Appeared}},
		{"a skipped insert that overwrites", []sent{created, {"insert", yes, ada, `{"email":"ada","age":31}`}}, "", map[string]string{"ada": `{"zip":"1","age":31,"tags":["a"]}`}, []model.Kind{model.Appeared}},
		{"a deleted record that returns", []sent{created, {"delete", yes, ada, `{"email":"ada"}`}}, "", map[string]string{"ada": `{}`}, []model.Kind{model.Returned}},
		{"old tags of deleted records", []sent{
			created, {"delete", yes, ada, `{"email":"ada"}`}, {"upsert", yes, ada, `{"email":"ada","zip":"2"}`},
			{"upsert", yes, bob, `{"email":"bob","tags":["b"]}`}, {"delete", yes, bob, `{"email":"bob"}`}, {"upsert", yes, bob, `{"email":"bob"}`},
		}, "", map[string]string{"ada": `{"zip":"2","tags":["a"]}`, "bob": `{"tags":["b"]}`}, []model.Kind{model.Returned, model.Returned}},
		{"an update that is lost", []sent{created, {"update", yes, ada, `{"email":"ada","age":31}`}}, "", map[string]string{"ada": `{"zip":"1","age":30,"tags":["a"]}`}, []model.Kind{model.OldValue}},
		{"older values that come back with a change of other fields", []sent{
			created, {"update", yes, ada, `{"email":"ada","zip":"2"}`}, {"update", yes, ada, `{"email":"ada","age":31}`},
			{"upsert", yes, bob, `{"email":"bob","zip":"7"}`}, {"update", yes, bob, `{"email":"bob","zip":"8"}`}, {"update", yes, bob, `{"email":"bob","age":3}`},
		}, "", map[string]string{"ada": `{"zip":"1","age":31}`, "bob": `{"zip":"7","age":3}`}, []model.Kind{model.Reverted, model.Reverted}},
		{"a value of another record", []sent{created, {"upsert", yes, bob, `{"email":"bob","zip":"7"}`}}, "",
			map[string]string{"ada": `{"zip":"7","age":30,"tags":["a"]}`, "bob": `{"zip":"7"}`}, []model.Kind{model.Mixed}},
		{"a record that a batch of others changed", []sent{created}, `{"zip":"one","age":30,"tags":["a"]}`, map[string]string{"ada": `{"zip":"two","age":30,"tags":["a"]}`}, []model.Kind{model.Changed}},
		{"a refused value that comes with a batch of others", []sent{created, {"update", no, ada, `{"email":"ada","zip":"2"}`}}, `{"zip":"1","age":30,"tags":["a"]}`, map[string]string{"ada": `{"zip":"2","age":30,"tags":["a"]}`}, []model.Kind{model.Appeared}},
		{"a late write", []sent{created}, `{"zip":"0","age":30,"tags":["a"]}`, map[string]string{"ada": `{"zip":"1","age":30,"tags":["a"]}`}, nil},
		{"a field that no record shows", []sent{created}, "", map[string]string{"ada": `{"zip":"1","age":30}`}, nil},
		{"a value that is always changed alike", []sent{created}, "", map[string]string{"ada": `{"zip":"1 ","age":29,"tags":["A"],"vip":false}`}, nil},
		{"a default that is an old value by chance", []sent{created, {"delete", yes, ada, `{"email":"ada"}`}, {"upsert", yes, ada, `{"email":"ada","age":2}`}}, "",
			map[string]string{"ada": `{"zip":"1","age":2}`}, nil},
		{"a default after a delete", []sent{created, {"delete", yes, ada, `{"email":"ada"}`}, {"upsert", yes, ada, `{"email":"ada","zip":"2"}`}}, "",
			map[string]string{"ada": `{"zip":"2","age":0,"tags":[],"vip":true}`}, nil},
		{"a lost batch", []sent{created, {"update", lost, ada, `{"email":"ada","zip":"2"}`}}, "", map[string]string{}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := &model.Ledger{}
			for _, s := range c.sent {
				send(l, s.operation, s.outcome, s.place, s.values)
			}
			sight := func(text string) model.Sight {
				s := model.Sight{Count: 1}
				require.NoError(t, json.Unmarshal([]byte(text), &s.Fields))
				return s
			}
			if c.before != "" {
				l.Saw(ada, sight(c.before))
			}
			var got []model.Kind
			for _, one := range l.Judge(l.Settled("contact"), func(p model.Place) model.Sight {
				if text, there := c.shown[p.Key]; there {
					return sight(text)
				}
				return model.Sight{}
			}, contact) {
				got = append(got, one.Kind)
			}
			require.ElementsMatch(t, c.want, got)
		})
	}
}
