package destsim

import (
	"maps"
	"strings"
	"testing"

	"github.com/destkit/destkit/destsim/rpc"
)

// is is what a readback of a key says, and nothing behind it.
func is(key, stored string) string { return key + " is " + stored + "\n" }

func TestSemanticsViolationsShow(t *testing.T) {
	const (
		a, b = `"a"`, `"b"`
		a1   = `{"email":"a","last_name":"1"}`
		a2   = `{"email":"a","last_name":"2"}`
		b1   = `{"email":"b","last_name":"1"}`
		okA  = `"result":{"record_results":[{"identifier":"a","success":true}]}` + "\n"
		// refused is an insert of a record that is taken to be there.
		refused = `"result":{"record_results":[{"identifier":"a","success":false,"error_message":"record already present"}]}`

		skip = `"success":true,"error_message":"record `
		abc  = `"result":{"record_results":[{"identifier":"a","success":true},{"identifier":"b","success":true},{"identifier":"c","success":true}]}` + "\n"
	)
	table := []effect{
		{id: "SEM-001", sees: map[string]string{"inserted again": okA + okA + okA + is(a, ""), "inserted after upsert": okA + okA + okA + is(a, ""), "insert": okA + is(a, ""), "insert twice": is(a, ""), "insert old and new": is(b, ""), "delete beside": " \n"}},
		{id: "SEM-002", sees: map[string]string{
			"insert twice": okA + okA + is(a, a2), "insert old and new": is(a, a2), "insert three again": abc + abc,
		}},
		{id: "SEM-002.2", sees: map[string]string{
			"insert twice":       `"success":false,"error_message":"record already present"}]}` + "\n" + is(a, a2),
			"insert old and new": is(a, a2) + is(b, b1),
		}},
		{id: "SEM-003", sees: map[string]string{
			"insert twice": okA + okA + is(a, "2×"+a1), "insert old and new": is(a, "2×"+a1) + is(b, b1), "insert three again": "4×",
		}},
		{id: "SEM-003.2", sees: map[string]string{"insert old and new": `"error":{"code":-32000,"message":"duplicate key"}` + "\n" + is(a, a1) + is(b, "")}},
		{id: "SEM-004", sees: map[string]string{"update": okA + okA + is(a, a1), "update, later there": is(a, a2)}},
		{id: "SEM-005", sees: map[string]string{
			"update absent": okA + is(a, a1), "update three absent": abc + abc, "update, later there": okA + okA + okA,
		}},
		{id: "SEM-005.2", sees: map[string]string{
			"update absent":       `"success":false,"error_message":"record not present"}]}` + "\n" + is(a, a1),
			"update three absent": abc + abc,
		}},
		// Where nothing is created there is little that stays the same.
		{
			id:   "SEM-006",
			sees: map[string]string{"upsert": okA + is(a, ""), "upsert changed": okA + okA + is(a, ""), "update": is(a, "")},
			same: []string{"insert", "insert twice", "update absent", "update three absent", "delete absent", "altered schema", "other object"},
		},
		{id: "SEM-007", sees: map[string]string{
			"upsert changed": okA + okA + is(a, a1), "changed by another sync": okA + okA + is(a, a1), "empty before": is(a, a1),
			"second identifier": is("1", `{"order_id":1,"order_number":"N1"}`),
		}},
		{id: "SEM-008", sees: map[string]string{
			"upsert changed": okA + okA + is(a, "2×"+a2), "empty before": is(a, "2×"+a2), "changed by another sync": okA + okA + is(a, "2×"+a2),
			"second identifier": is("1", `2×{"order_number":"N1","order_id":1,"status":"x"}`),
		}},
		{id: "SEM-008.2", sees: map[string]string{"changed by another sync": okA + okA + is(a, "2×"+a1)}},
		{id: "SEM-009", sees: map[string]string{
			"delete": okA + is(a, a1) + is(b, b1), "back same, seen": is(a, a1) + "then",
			"inserted again": okA + okA + refused, "inserted after upsert": okA + okA + refused,
		}},
		{id: "SEM-009.2", sees: map[string]string{
			"delete":         okA + is(a, `{"last_name":"1","email":"a"}`),
			"inserted again": is(a, `{"last_name":"1","email":"a"}`), "inserted after upsert": is(a, `{"last_name":"1","email":"a"}`),
			"delete absent":   `required field \"last_name\" is missing`,
			"back same, seen": is(a, `{"last_name":"1","email":"a"}`) + "then",
		}},
		{id: "SEM-010", sees: map[string]string{
			"delete":             okA + is(a, "") + is(b, ""),
			"delete of a prefix": is(`"12345678b"`, "") + is(`"1234"`, ""),
		}},
		{id: "SEM-010.2", sees: map[string]string{
			"delete of a prefix": is(`"12345678b"`, "") + is(`"1234"`, `{"email":"1234","last_name":"x"}`),
			"delete of digits":   is("1234567801", "") + is("2234567801", `{"order_id":2234567801,"order_number":"N3"}`),
		}},
		{id: "SEM-011", sees: map[string]string{"delete absent": `"error":{"code":-32000,"message":"record not found"}`}},
		{id: "SEM-012", sees: map[string]string{"back changed": okA + okA + okA + is(a, "")}},
		{id: "SEM-013", sees: map[string]string{
			"second identifier": is("1", `2×{"order_id":1,"order_number":"N1"}`),
			"other first one":   is("1", "") + is("2", `{"order_id":2,"order_number":"N1"}`),
		}},
		{id: "SEM-014", sees: map[string]string{
			"two cases": `{"identifier":"Ab","success":true},{"identifier":"aB","success":true}]}` + "\n" +
				is(`"Ab"`, "") + is(`"aB"`, "") + is(`"ab"`, `{"email":"ab","last_name":"2"}`),
		}},
		{id: "SEM-015", sees: map[string]string{"update three absent": skip + "not present"}},
		{id: "SEM-015.2", sees: map[string]string{"insert three again": skip + "already present"}},
		{id: "SEM-016", sees: map[string]string{"other object": `{"event_id":"a"}`}},
		{id: "SEM-018", sees: map[string]string{"delete beside": " \n"}},
		{id: "SEM-019", sees: map[string]string{
			"inserted again": okA + okA + refused + "\n" + is(a, ""),
		}},
		{id: "SEM-019.2", sees: map[string]string{"inserted again": okA + okA + okA + is(a, "")}},
	}
	// SEM-010 takes all that the sync has written.
	for i := range table {
		if table[i].id == "SEM-010" {
			table[i].sees["delete of digits"] = is("1234567801", "") + is("2234567801", "")
		}
	}
	testEachShown(t, semanticsViolations(), table, idsOf(neighbourViolations())...)
	glances := effectGlances()
	maps.Copy(glances, againGlances())
	testEffects(t, glances, table)
}

// againGlances write a record that was written before, in another way.
func againGlances() map[string]glance {
	a1, a2 := person("a", "1"), person("a", "2")
	return map[string]glance{
		"inserted again":        does(`"a"`, contact("insert", a1), contact("delete", key("a")), contact("insert", a1)),
		"inserted after upsert": does(`"a"`, contact("upsert", a1), contact("delete", key("a")), contact("insert", a1)),
		"changed by another sync": func(t *testing.T, s *Sim) string {
			first := does("", contact("upsert", a1))(t, s)
			plan := strings.Replace(planOf(s, "contact", "upsert", "email", a2), `"sync_id":2`, `"sync_id":3`, 1)
			return first + "\n" + bareReply(invoke(s, rpc.MethodSyncBatch, plan)) + "\n" + is(`"a"`, stored(t, s, "contact", "email", `"a"`))
		},
	}
}
