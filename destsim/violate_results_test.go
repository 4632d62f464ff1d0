package destsim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// result texts that many rows share.
const (
	aGood = `{"identifier":"a","success":true}`
	bGood = `{"identifier":"b","success":true}`
	cGood = `{"identifier":"c","success":true}`
	aKept = `"a" is {"email":"a","last_name":"x"}`
	bKept = `"b" is {"email":"b","last_name":"x"}`
)

// answered is a list of results as the naive client writes it down.
func answered(results string) string { return `"result":{"record_results":[` + results + `]}` + "\n" }

// beside are neighbours of a violation that concerns upsert alone.
func beside(more ...string) []string {
	return append(more, "objects", "speed", "limit of speed", "insert three", "insert a present one", "insert none",
		"insert of digits", "numbers inserted", "update two", "update three absent", "delete two",
		"one bad of five", "one bad by age", "no key", "append", "by a name")
}

// ofFailures are those that do not meet a failure.
var ofFailures = []string{"objects", "speed", "insert three", "upsert three", "update two", "delete two", "upsert none", "numbers", "append"}

func TestViolateResults(t *testing.T) {
	testSightings(t, resultsViolations(), append([]sighting{
		{id: "RES-001", sees: map[string]string{
			"upsert two": `{"record_results":{"a":true,"b":true}}`, "numbers": `{"record_results":{"1":true,"9007199254740993":true}}`,
		}, same: beside()},
		{id: "RES-002", sees: map[string]string{"upsert three": answered(aGood+`,`+bGood) + aKept},
			same: beside("upsert one", "upsert two", "upsert none", "upsert two twice")},
		{id: "RES-002.2", sees: map[string]string{
			"insert a present one": answered(aGood) + answered(bGood+`,`+cGood), "update three absent": answered(""),
		}},
		{id: "RES-002.3", sees: map[string]string{
			"upsert three": answered(aGood + `,` + bGood + `,` + cGood + `,{"identifier":"a","success":false,"error_message":"the record could not be stored"}`),
		}, same: beside("upsert one", "upsert two", "upsert none")},
		{id: "RES-003", sees: map[string]string{
			"upsert two": answered(aGood+`,`+bGood+`,{"identifier":"zz-nobody","success":true}`) + aKept,
		}, same: beside("upsert none")},
		{id: "RES-003.2", sees: map[string]string{
			"upsert two": answered(aGood+`,`+bGood+`,`+aGood) + aKept, "upsert one": answered(aGood+`,`+aGood) + aKept,
		}, same: beside("upsert none")},
		{id: "RES-004", sees: map[string]string{
			"string of digits": answered(`{"identifier":"9007199254740992","success":true}`) + `"9007199254740993" is {`,
			"numbers":          answered(`{"identifier":1,"success":true},{"identifier":9007199254740992,"success":true}`),
		}},
		one("RES-004.2", "spaces", "{\"identifier\":\"a\u0301\",\"success\":true}"),
		one("RES-004.3", "capitals", answered(`{"identifier":"ab","success":true}`)+`"Ab" is {"email":"Ab"`),
		{id: "RES-005", sees: map[string]string{"upsert two": answered(`{"identifier":"a","success":1},{"identifier":"b","success":1}`) + aKept},
			same: beside("upsert none")},
		{id: "RES-005.2", sees: map[string]string{"upsert two": answered(`{"identifier":"a","success":"ok"},{"identifier":"b","success":"ok"}`) + aKept},
			same: beside("upsert none")},
		{id: "RES-006", sees: map[string]string{
			"one bad alone":        `"success":false,"error_message":{"detail":"required field \"last_name\" is null"}}`,
			"insert a present one": `{"identifier":"a","success":false,"error_message":{"detail":"record already present"}},` + bGood,
		}, same: ofFailures},
		{id: "RES-006.2", sees: map[string]string{
			"one bad alone": `[{"identifier":"b","success":false}]`, "update three absent": `{"identifier":"a","success":false},`,
		}, same: ofFailures},
	}, recordSightings()...))
}

// recordSightings are those that concern single records or refuse a batch.
func recordSightings() []sighting {
	return []sighting{
		{id: "RES-008", sees: map[string]string{
			"one bad of five": `is null"},{"identifier":"c","success":false,"error_message":"the statement was aborted"},{"identifier":"d","success":true}`,
			"one bad by age":  `{"identifier":"c","success":false,"error_message":"the statement was aborted"}]}` + "\n" + aKept,
		}},
		{id: "RES-008.2", sees: map[string]string{
			"one bad of five": `{"identifier":"c","success":false,"error_message":"the statement was aborted"},{"identifier":"d","success":false,"error_message":"the statement was aborted"},{"identifier":"e","success":false,`,
			"one bad by age":  `{"identifier":"c","success":false,"error_message":"the statement was aborted"}]}` + "\n" + aKept,
		}},
		{id: "RES-008.3", sees: map[string]string{
			"one bad of five":    `[{"identifier":"a","success":false,"error_message":"required field \"last_name\" is null"},` + bGood + `,` + cGood,
			"one bad by age":     bGood + `,` + cGood + `]}` + "\n" + aKept,
			"one lacks its name": `is missing"},` + bGood + `]}` + "\n" + aKept,
			"one custom and bad": `not a number"},` + bGood,
		}},
		{id: "RES-009", sees: map[string]string{
			"one bad alone":   answered(bGood) + `"b" is `,
			"one bad of five": aGood + `,` + bGood + `,` + cGood,
		}},
		{id: "RES-010", sees: map[string]string{
			"one bad of five":    `[{"identifier":"a","success":false,"error_message":"required field \"last_name\" is null"},` + bGood + `,` + cGood,
			"one bad by age":     bGood + `,` + cGood + `]}` + "\n" + aKept,
			"one lacks its name": bGood + `]}` + "\n" + aKept,
			"one custom and bad": bGood,
			"no key":             `[{"identifier":null,"success":false,"error_message":"the identifier \"email\" is null"}`,
		}},
		{id: "RES-011", sees: map[string]string{"upsert none": `"error":{"code":-32603`, "insert none": `"error":{"code":-32603`}},
		{id: "RES-011.2", sees: map[string]string{"upsert none": `{"record_results":null}`, "insert none": `{"record_results":null}`}},
		{id: "RES-012", sees: map[string]string{
			"update one": `"error":{"code":-32603,"message":"the bulk interface needs two rows"}` + "\n" + aKept, "half mapped update": `-32603`,
		}},
		{id: "RES-013", sees: map[string]string{
			"only the key": `"error":{"code":-32603,"message":"syntax error near WHERE"}` + "\n" + `"a" is `, "one custom and bad": `-32603`,
		}},
		one("RES-014", "half mapped", `"a" is {"name":null,"event_id":"a","occurred_at":"2021-03-29T16:32:23Z"}`),
		one("RES-015", "upsert one in two ways", `"error":{"code":-32603,"message":"cannot affect row a second time"}`),
		one("RES-016", "members in reverse", `{"first_name":"L","last_name":"F","email":"a"}{"email":"b","last_name":"M","first_name":"G"}`),
		{id: "RES-016.2", sees: map[string]string{
			"members in reverse": `{"identifier":"F","success":true},{"identifier":"b","success":true}`, "members and a null": `{"identifier":1,"success":true}`,
		}},
		one("RES-017", "numbers", answered(`{"identifier":"1","success":true},{"identifier":"9007199254740993","success":true}`)+`1 is {"order_id":1`),
		{id: "RES-018", sees: map[string]string{
			"one bad of five":    `"error":{"code":-32000,"message":"record 1: required field \"last_name\" is null"}` + "\n" + `"a" is ` + "\n",
			"one bad by age":     `"error":{"code":-32000`,
			"one lacks its name": `is missing"}` + "\n" + `"a" is ` + "\n",
			"one custom and bad": `-32000,"message":"record 1: field \"name\" must be a string, not a number"}` + "\n" + answered(aGood) + `"a" is {"event_id":"a"}`,
			"no key":             `"error":{"code":-32000`,
		}},
		one("RES-019", "no key", `[{"identifier":null,"success":true},{"identifier":null,"success":true}]`),
	}
}

// TestViolateStores: what looks into the store does so in both kinds.
func TestViolateStores(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		config.Violate = []string{"FLD-010", "RES-014", "RES-018"}
		s := newSim(t, config)
		require.Contains(t, invoke(s, "list_fields", about("contact")), `"fields":[]`)
		require.Contains(t, write(t, s, "contact", "insert", `{"email":"a","last_name":"x"}`, `{"email":"b"}`)[0], "record 1: required field")
		require.Empty(t, stored(t, s, "contact", "email", `"a"`))
		require.Equal(t, []string{"ok", "ok"}, write(t, s, "contact", "upsert", `{"email":"a","last_name":"x","age":1}`, `{"email":"b","last_name":"x"}`))
		require.Equal(t, []string{"ok"}, write(t, s, "contact", "upsert", `{"email":"a","last_name":"y"}`))
		require.Equal(t, `{"age":null,"email":"a","last_name":"y"}`, stored(t, s, "contact", "email", `"a"`))
		require.Contains(t, invoke(s, "list_fields", about("contact")), `"field_api_name":"email"`)
	})
}
