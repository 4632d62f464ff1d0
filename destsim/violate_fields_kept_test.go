package destsim

import (
	"maps"
	"testing"
)

// keptFieldGlances write every field of a contact, or some, once or twice.
func keptFieldGlances() map[string]glance {
	const (
		first  = `{"email":"a","last_name":"L","first_name":"F","age":1,"subscribed":true,"lucky_numbers":[1]}`
		second = `{"email":"a","last_name":"M","first_name":"G","age":2,"subscribed":false,"lucky_numbers":[2]}`
		nulls  = `{"email":"a","last_name":"M","first_name":null,"age":null,"subscribed":null,"lucky_numbers":null}`
	)
	once := contact("upsert", first)
	all := effectGlances()
	maps.Copy(all, map[string]glance{
		"whole":          does(`"a"`, once),
		"whole, nulls":   does(`"a"`, contact("upsert", nulls)),
		"whole, upsert":  does(`"a"`, once, contact("upsert", second)),
		"whole, update":  does(`"a"`, once, contact("update", second)),
		"whole, insert":  does(`"a"`, once, contact("insert", second)),
		"nulls later":    does(`"a"`, once, contact("update", nulls)),
		"added later":    does(`"a"`, contact("upsert", person("a", "1")), contact("upsert", `{"email":"a","last_name":"1","subscribed":true,"lucky_numbers":[2]}`)),
		"status changed": does(`1`, step{"order upsert order_id", []string{`{"order_id":1,"order_number":"N1","status":"x"}`}}, step{"order upsert order_id", []string{`{"order_id":1,"order_number":"N1","status":"y"}`}}),
		"event changed":  does(`"a"`, step{"event upsert event_id", []string{`{"event_id":"a","zz":"1"}`}}, step{"event upsert event_id", []string{`{"event_id":"a","name":"x","zz":"2"}`}}),
	})
	return all
}

func TestKeptFieldViolationsShow(t *testing.T) {
	const (
		a         = `"a"`
		withoutF  = `{"email":"a","last_name":"L","age":1,"subscribed":true,"lucky_numbers":[1]}`
		dropped   = `{"email":"a","last_name":"M","age":null,"subscribed":null,"lucky_numbers":null}`
		repeated  = `{"email":"a","last_name":"M","first_name":"M","age":2,"subscribed":false,"lucky_numbers":[2]}`
		keptLast  = `{"email":"a","last_name":"M","first_name":"G","age":2,"subscribed":false,"lucky_numbers":[1]}`
		keptBool  = `{"email":"a","last_name":"M","first_name":"G","age":2,"subscribed":true,"lucky_numbers":[2]}`
		nullsLast = `{"email":"a","last_name":"M","first_name":null,"age":null,"subscribed":null,"lucky_numbers":[1]}`
		nullsBool = `{"email":"a","last_name":"M","first_name":null,"age":null,"subscribed":true,"lucky_numbers":null}`
	)
	table := []effect{
		{id: "FLD-011.2", sees: map[string]string{
			"whole": is(a, withoutF), "whole, nulls": is(a, dropped), "whole, insert": is(a, withoutF),
		}},
		{id: "FLD-011.3", sees: map[string]string{
			"whole": `"last_name":"L","first_name":"L","age":1`, "whole, nulls": `"last_name":"M","first_name":"M"`, "whole, insert": `"first_name":"L"`,
			"whole, upsert": is(a, repeated), "whole, update": is(a, repeated), "nulls later": `"last_name":"M","first_name":"M"`,
		}},
		{id: "FLD-014", sees: map[string]string{
			"whole, upsert": is(a, keptLast), "whole, update": is(a, keptLast), "nulls later": is(a, nullsLast),
			"added later": is(a, `{"email":"a","last_name":"1","subscribed":true}`),
		}},
		{id: "FLD-014.2", sees: map[string]string{
			"whole, upsert": is(a, keptBool), "whole, update": is(a, keptBool), "nulls later": is(a, nullsBool),
			"added later": is(a, `{"email":"a","last_name":"1","lucky_numbers":[2]}`),
		}},
		{id: "DAT-003.3", sees: map[string]string{"nulls later": is(a, nullsLast)}},
	}
	testEachShown(t, keptFieldViolations(), table)
	testEffects(t, keptFieldGlances(), table)
}
