package destsim

import (
	"maps"
	"testing"
)

// allGlances are what every violation of planning, speed and results is put to.
func allGlances() map[string]glance {
	all := planningGlances()
	maps.Copy(all, speedGlances())
	maps.Copy(all, loadGlances())
	maps.Copy(all, batchGlances())
	maps.Copy(all, recordGlances())
	return all
}

func planningGlances() map[string]glance {
	return map[string]glance{
		"test_connection":       asks("test_connection", `{}`),
		"objects":               asks("list_objects", `{}`),
		"objects twice":         asks("list_objects", `{}`, `{}`),
		"fields of contact":     asks("list_fields", about("contact")),
		"fields of order":       asks("list_fields", about("order")),
		"fields of event":       asks("list_fields", about("event")),
		"fields of unknown":     asks("list_fields", about("nope")),
		"fields of relabelled":  asks("list_fields", `{"object":{"object_api_name":"order","label":"Contact"}}`),
		"fields of none":        asks("list_fields", `{}`),
		"operations of contact": asks("supported_operations", about("contact")),
		"operations of event":   asks("supported_operations", about("event")),
		"operations of unknown": asks("supported_operations", about("nope")),
		"operations of none":    asks("supported_operations", `{}`),
		"batch of unknown":      asks("sync_batch", `{"sync_plan":{"object":{"object_api_name":"nope"},"operation":"upsert","schema":{}},"records":[]}`),
	}
}

func speedGlances() map[string]glance {
	return map[string]glance{
		"speed":             asks("get_sync_speed", `{}`),
		"speed for a plan":  asks("get_sync_speed", `{"sync_plan":{"sync_id":1}}`),
		"speed with more":   asks("get_sync_speed", `{"x":1}`),
		"speed twice":       asks("get_sync_speed", `{"sync_plan":{}}`, `{"sync_plan":{}}`),
		"limit of speed":    headers("get_sync_speed"),
		"limit of objects":  headers("list_objects", "list_objects"),
		"limit of an error": headers("no_such_method"),
	}
}

// loadGlances send more than one batch or call in a moment, or a large one.
func loadGlances() map[string]glance {
	return map[string]glance{
		"500 connections":    statuses(500),
		"501 connections":    statuses(501),
		"half a batch":       sized(50),
		"more than half":     sized(51),
		"a full batch":       wholeBatch(100),
		"three fours":        together(4, 1, 1, 1),
		"two fours":          together(4, 1, 1),
		"fours in two runs":  together(4, 1, 1, 2, 2),
		"five fives":         together(5, 1, 1, 1, 1, 1),
		"an abandoned four":  abandoned,
		"five full batches":  durations(50, 5),
		"five small batches": durations(49, 5),
		"128 batches":        flood(128, 1),
		"130 batches":        flood(130, 1),
		"runs of batches":    flood(200, 2),
	}
}

func batchGlances() map[string]glance {
	a, b, c := `{"email":"a","last_name":"x"}`, `{"email":"b","last_name":"x"}`, `{"email":"c","last_name":"x"}`
	lasts := `{"email":"b","last_name":null}`
	return map[string]glance{
		"upsert one":             does(`"a"`, step{"contact upsert email", []string{a}}),
		"upsert two":             does(`"a" "b"`, step{"contact upsert email", []string{a, b}}),
		"upsert three":           does(`"a" "b" "c"`, step{"contact upsert email", []string{a, b, c}}),
		"upsert two twice":       does(`"a"`, step{"contact upsert email", []string{a, b}}, step{"contact upsert email", []string{b, a}}),
		"upsert one in two ways": does(`"a"`, step{"contact upsert email", []string{a, a}}),
		"upsert none":            does(``, step{"contact upsert email", nil}),
		"insert three":           does(`"a" "c"`, step{"contact insert email", []string{a, b, c}}),
		"insert a present one":   does(`"a"`, step{"contact insert email", []string{a}}, step{"contact insert email", []string{a, b, c}}),
		"insert two, one there":  does(`"a"`, step{"contact insert email", []string{a}}, step{"contact insert email", []string{a, b}}),
		"insert one in two ways": does(`"a"`, step{"contact insert email", []string{a, a}}),
		"insert none":            does(``, step{"contact insert email", nil}),
		"update three absent":    does(`"a"`, step{"contact update email", []string{a, b, c}}),
		"update two":             does(`"a"`, step{"contact insert email", []string{a, b}}, step{"contact update email", []string{`{"email":"a","last_name":"y"}`, b}}),
		"update one":             does(`"a"`, step{"contact insert email", []string{a, b}}, step{"contact update email", []string{`{"email":"a","last_name":"y"}`}}),
		"delete two":             does(`"a"`, step{"contact insert email", []string{a, b}}, step{"contact delete email", []string{`{"email":"a"}`, `{"email":"z"}`}}),
		"delete of events":       does(``, step{"event delete event_id", []string{`{"event_id":"a","name":"x"}`}}),
		"append":                 does(`"a"`, step{"contact append email", []string{a}}),
		"mirror":                 does(`"a"`, step{"contact mirror email", []string{a}}),
		"append by a name":       does(``, step{"contact append first_name", []string{`{"email":"a","last_name":"x","first_name":"y"}`}}),
		"by a name":              does(``, step{"contact insert first_name", []string{`{"email":"a","last_name":"x","first_name":"y"}`}}),
		"by an absent name":      does(``, step{"contact insert first_name", []string{`{"email":"a","last_name":"x"}`}}),
		"one bad of five":        does(`"a" "b" "c"`, step{"contact insert email", []string{a, lasts, c, `{"email":"d","last_name":"x"}`, `{"email":"e","last_name":"x"}`}}),
		"one bad by age":         does(`"a" "b" "c"`, step{"contact insert email", []string{a, `{"email":"b","last_name":"x","age":"y"}`, c}}),
		"one lacks its name":     does(`"a" "b"`, step{"contact insert email", []string{a, `{"email":"b"}`}}),
		"one bad alone":          does(`"b"`, step{"contact insert email", []string{lasts}}),
		"delete with a null":     does(`"b"`, step{"contact insert email", []string{b}}, step{"contact delete email", []string{lasts}}),
		"one custom and bad":     does(`"a"`, step{"event insert event_id", []string{`{"event_id":"a","zz":"1"}`, `{"event_id":"b","name":5}`}}, step{"event insert event_id", []string{`{"event_id":"a"}`}}),
	}
}

func recordGlances() map[string]glance {
	return map[string]glance{
		"only the key":       does(`"a"`, step{"event upsert event_id", []string{`{"event_id":"a"}`, `{"event_id":"b"}`}}),
		"only the key, gone": does(`"a"`, step{"contact delete email", []string{`{"email":"a"}`}}),
		"half mapped":        does(`"a"`, step{"event upsert event_id", []string{`{"event_id":"a","name":"x","occurred_at":null}`}}, step{"event upsert event_id", []string{`{"event_id":"a","occurred_at":"2021-03-29T16:32:23Z"}`}}),
		"half mapped update": does(`"a"`, step{"contact insert email", []string{`{"email":"a","last_name":"x","age":1}`}}, step{"contact update email", []string{`{"email":"a","last_name":"y"}`}}),
		"string of digits":   does(`"9007199254740993"`, step{"contact upsert email", []string{`{"email":"9007199254740993","last_name":"x"}`}}),
		"few digits":         does(``, step{"contact upsert email", []string{`{"email":"9007199254740991","last_name":"x"}`, `{"email":"007","last_name":"x"}`}}),
		"insert of digits":   does(``, step{"contact insert email", []string{`{"email":"9007199254740993","last_name":"X"}`, `{"email":" Ab ","last_name":"X"}`}}),
		"capitals":           does(`"Ab"`, step{"contact upsert email", []string{`{"email":"Ab","last_name":"X"}`}}),
		"spaces":             does(``, step{"contact upsert email", []string{`{"email":" a\u0301 ","last_name":"X"}`}}),
		"escapes":            does(``, step{"contact upsert email", []string{`{"email":"a\u0301","last_name":"X"}`}}),
		"numbers":            does(`1`, step{"order upsert order_id", []string{`{"order_id":1,"order_number":"x"}`, `{"order_id":9007199254740993,"order_number":"y"}`}}),
		"numbers inserted":   does(`1`, step{"order insert order_id", []string{`{"order_id":1,"order_number":"x"}`}}),
		"numbers as strings": does(`"x"`, step{"order upsert order_number", []string{`{"order_id":-5,"order_number":"x"}`}}),
		"negative":           does(`"a"`, step{"contact insert email", []string{`{"email":"a","last_name":"x","age":-42}`}}),
		"very negative":      does(`"a"`, step{"contact insert email", []string{`{"email":"a","last_name":"x","age":-1000,"lucky_numbers":[-42],"score":-42}`}}),
		"a new field":        does(`"a"`, step{"event insert event_id", []string{`{"event_id":"a","zz":"1"}`}}),
		"a new field, listed": func(t *testing.T, s *Sim) string {
			return does(``, step{"event insert event_id", []string{`{"event_id":"a","zz":"1"}`}})(t, s) + asks("list_fields", about("event"))(t, s)
		},
		"no such field":      does(`"a"`, step{"contact insert email", []string{`{"email":"a","last_name":"x","zz":"1"}`}}),
		"no key":             does(``, step{"contact insert email", []string{`{"last_name":"x"}`, `{"email":null,"last_name":"x"}`}}),
		"members in order":   ordered([]string{"email", "last_name", "first_name"}, `{"email":"a","last_name":"L","first_name":"F"}`, `{"first_name":"G","email":"b","last_name":"M"}`),
		"members in reverse": ordered([]string{"email", "last_name", "first_name"}, `{"first_name":"F","last_name":"L","email":"a"}`, `{"email":"b","last_name":"M","first_name":"G"}`),
		"members and a null": ordered([]string{"email", "last_name", "first_name", "age"}, `{"age":1,"first_name":null,"last_name":"L","email":"a"}`),
	}
}
