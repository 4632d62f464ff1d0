package destsim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/destkit/destkit/destsim/rpc"
)

// keeps sends one contact with a value in a field, and tells what is answered
// and what is stored.
func keeps(field, value string) probe {
	return func(n *naive) string {
		record := fmt.Sprintf(`{"email":"a","last_name":"x",%q:%s}`, field, value)
		reply := n.call(rpc.MethodSyncBatch, planOf(n.sim, "contact", "upsert", "email", record))
		return reply + "\nkept " + stored(n.t, n.sim, "contact", "email", `"a"`)
	}
}

// sizedBody sends so many records with a name of so many characters.
func sizedBody(records, length int) probe {
	return func(n *naive) string {
		all := make([]string, records)
		for i := range all {
			all[i] = person(fmt.Sprint("n", i), strings.Repeat("x", length))
		}
		reply := n.call(rpc.MethodSyncBatch, planOf(n.sim, "contact", "upsert", "email", all...))
		return reply[:min(len(reply), 200)]
	}
}

func dataProbes() map[string]probe {
	all := calls()
	for name, value := range map[string][2]string{
		"astral":            {"first_name", `"a\ud83d\ude80b"`},
		"plain":             {"first_name", `"plain"`},
		"decomposed":        {"first_name", `"e\u0301"`},
		"NUL":               {"first_name", `"a\u0000b"`},
		"NUL in an array":   {"tags", `["x","a\u0000b"]`},
		"no NUL":            {"first_name", `"a\\u0000b"`},
		"other controls":    {"first_name", `"a\u0001\tb"`},
		"null string":       {"first_name", `null`},
		"null integer":      {"age", `null`},
		"large integer":     {"age", `9007199254740993`},
		"largest float int": {"age", `9007199254740992`},
		"negative integer":  {"age", `-9007199254740993`},
		"long decimal":      {"balance", `"123456789012345.678"`},
		"short decimal":     {"balance", `"-0.000000000000000001"`},
		"endless float":     {"score", `1e400`},
		"large float":       {"score", `1.7976931348623157e308`},
		"leap day":          {"birth_date", `"2024-02-29"`},
		"other day":         {"birth_date", `"2024-12-29"`},
		"summer":            {"last_seen_at", `"2021-03-29T16:32:23.456Z"`},
		"winter":            {"last_seen_at", `"2024-12-31T23:59:59Z"`},
		"yes":               {"subscribed", `true`},
		"array":             {"tags", `["a,b","c"]`},
		"empty array":       {"tags", `[]`},
		"array of integers": {"lucky_numbers", `[3,2]`},
		"spaces":            {"first_name", `"  x "`},
		"digits":            {"first_name", `"00042"`},
		"injection":         {"first_name", `"'; -- drop"`},
		"quotes":            {"first_name", `"it's; so"`},
		"escaped":           {"first_name", `"caf\u00e9"`},
		"not escaped":       {"first_name", `"café"`},
		"backslash":         {"first_name", `"caf\\u00e9"`},
		"escape of a":       {"first_name", `"c\u0061f"`},
		"markup":            {"first_name", `"<b>R&D</b>"`},
		"CRLF":              {"first_name", `"a\r\nb"`},
		"ends with LF":      {"first_name", `"a\n"`},
		"two characters":    {"first_name", `"a\\nb"`},
		"percent escape":    {"first_name", `"%41 1"`},
		"percent":           {"first_name", `"100%"`},
		"plus":              {"first_name", `"1+1"`},
		"full float":        {"score", `16777217.123456789`},
		"half float":        {"score", `0.1234567`},
		"short float":       {"score", `42.42`},
		"large int float":   {"score", `16777217`},
		"least float":       {"score", `5e-324`},
	} {
		all[name] = keeps(value[0], value[1])
	}
	all["null later"] = func(n *naive) string {
		keeps("age", "7")(n)
		return keeps("age", "null")(n)
	}
	all["keys"] = func(n *naive) string { // identifiers are not values
		var b strings.Builder
		for _, key := range []string{`" x "`, `"007"`, `"e\u0301"`, `"\u00e9"`, `"\ud83d\ude80"`} {
			b.WriteString(n.call(rpc.MethodSyncBatch, planOf(n.sim, "contact", "upsert", "email", `{"email":`+key+`,"last_name":"x"}`)))
			b.WriteString(stored(n.t, n.sim, "contact", "email", key))
		}
		return b.String()
	}
	all["90 KB"] = sizedBody(1, 90<<10)
	all["110 KB"] = sizedBody(1, 110<<10)
	all["1000 records"] = sizedBody(1000, 100)
	return all
}

// storedAs is what a readback says of a value.
func storedAs(field, value string) string { return fmt.Sprintf("%q:%s}", field, value) }

func TestDataViolationsShow(t *testing.T) {
	one := oneSight
	table := []tamper{
		one("DAT-001", "astral", storedAs("first_name", `"a?b"`)),
		one("DAT-001.2", "decomposed", storedAs("first_name", "\"\u00e9\"")),
		sights("DAT-002", "no response", "NUL", "NUL in an array"),
		one("DAT-003", "null string", storedAs("first_name", `"null"`)),
		one("DAT-003.2", "null later", `{"age":7,`),
		{"DAT-004", map[string]string{
			"large integer": storedAs("age", "9007199254740992"), "negative integer": storedAs("age", "-9007199254740992"),
		}},
		one("DAT-005", "long decimal", storedAs("balance", `"123456789012345.67"`)),
		one("DAT-006", "endless float", "no response"),
		one("DAT-007", "leap day", storedAs("birth_date", `"2024-02-28"`)),
		one("DAT-008", "summer", storedAs("last_seen_at", `"2021-03-29T14:32:23.456Z"`)),
		one("DAT-009", "yes", storedAs("subscribed", `"true"`)),
		{"DAT-010", map[string]string{
			"array": storedAs("tags", `"a,b,c"`), "empty array": storedAs("tags", `""`),
			"array of integers": storedAs("lucky_numbers", `"3,2"`), "NUL in an array": storedAs("tags", `"x,a\u0000b"`),
		}},
		{"DAT-011", map[string]string{
			"spaces": storedAs("first_name", `"x"`), "ends with LF": storedAs("first_name", `"a"`),
		}},
		one("DAT-011.2", "digits", storedAs("first_name", "42")),
		one("DAT-011.3", "injection", "500 [Content-Type: text/plain; charset=utf-8] Internal Server Error\nkept "),
		one("DAT-012", "110 KB", `413 {"jsonrpc":"2.0","id":"a1","error":{"code":-32600,`),
		one("DAT-011.4", "markup", storedAs("first_name", `"&lt;b&gt;R&amp;D&lt;/b&gt;"`)),
		one("DAT-011.5", "CRLF", storedAs("first_name", `"a\nb"`)),
		one("DAT-011.6", "ends with LF", storedAs("first_name", `"a"`)),
		one("DAT-011.7", "two characters", storedAs("first_name", `"a\nb"`)),
		one("DAT-011.8", "percent escape", storedAs("first_name", `"A 1"`)),
		one("DAT-011.9", "plus", storedAs("first_name", `"1 1"`)),
		{"DAT-015", map[string]string{
			"full float": storedAs("score", "1.6777218e+07"), "large int float": storedAs("score", "1.6777216e+07"),
		}},
		{"DAT-015.2", map[string]string{
			"full float": storedAs("score", "1.67772e+07"), "large int float": storedAs("score", "1.67772e+07"),
			"half float": storedAs("score", "0.123457"),
		}},
		one("DAT-013", "escaped", storedAs("first_name", `"caf\\u00e9"`)),
	}
	testAllTampered(t, dataViolations(), table)
	testTampers(t, Config{}, dataProbes(), table)
}
