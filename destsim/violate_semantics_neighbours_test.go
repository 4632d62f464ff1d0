package destsim

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// idsOf are the ids of violations that are shown by a test of their own.
func idsOf(all []violation) (ids []string) {
	for _, v := range all {
		ids = append(ids, v.ID)
	}
	return ids
}

// lookalikes are keys that begin with "ab", end with it, or differ from it by
// case or white space.
var lookalikes = []string{"ab", "aB", " ab", "abc", "xab", "zz"}

// besides writes all lookalikes, does one thing by "operation", and tells what
// is stored under each key: the name, or nothing.
func besides(operation string, records ...string) glance {
	return func(t *testing.T, s *Sim) string {
		var all []string
		for _, key := range lookalikes {
			all = append(all, fmt.Sprintf(`{"email":%q,"last_name":"old","age":1}`, key))
		}
		write(t, s, "contact", "upsert", all...)
		said := strings.Join(write(t, s, "contact", operation, records...), " ")
		for _, key := range lookalikes {
			var value string
			for _, name := range []string{"old", "new"} {
				if strings.Contains(stored(t, s, "contact", "email", quoted(key)), name) {
					value += name
				}
			}
			said += fmt.Sprintf(" %q:%s", key, value)
		}
		return said
	}
}

func neighbourGlances() map[string]glance {
	all := effectGlances()
	maps.Copy(all, map[string]glance{
		"delete beside lookalikes": besides("delete", key("ab")),
		"delete of a stranger":     besides("delete", key("zz")),
		"delete of an absent one":  besides("delete", key("yy")),
		"update beside lookalikes": besides("update", person("ab", "new")),
		"upsert beside lookalikes": besides("upsert", person("ab", "new")),
		"insert beside lookalikes": besides("insert", person("ab", "new")),
		"upsert of a new one":      besides("upsert", person("a", "new")),
		"numbers beside others": does("1 10", step{"order upsert order_id", []string{`{"order_id":1,"order_number":"N1"}`, `{"order_id":10,"order_number":"N2"}`}},
			step{"order update order_id", []string{`{"order_id":1,"status":"x"}`}}, step{"order delete order_id", []string{`{"order_id":1}`}}),
	})
	return all
}

func TestNeighbourViolationsShow(t *testing.T) {
	shows := func(id, glance, sees string) effect {
		return effect{id: id, sees: map[string]string{glance: sees}}
	}
	const deleted = "delete beside lookalikes"
	written := func(id, sees string) effect {
		return effect{id: id, sees: map[string]string{"update beside lookalikes": sees, "upsert beside lookalikes": sees}}
	}
	table := []effect{
		shows("SEM-010.3", deleted, `ok "ab": "aB": " ab":old "abc":old "xab":old "zz":old`),
		shows("SEM-010.4", deleted, `ok "ab": "aB":old " ab": "abc":old "xab":old "zz":old`),
		shows("SEM-010.5", deleted, `ok "ab": "aB":old " ab": "abc":old "xab": "zz":old`),
		written("SEM-017", `ok "ab":new "aB":old " ab":old "abc":new "xab":old "zz":old`),
		written("SEM-017.2", `ok "ab":new "aB":new " ab":old "abc":old "xab":old "zz":old`),
	}
	testEachShown(t, neighbourViolations(), table)
	testEffects(t, neighbourGlances(), table)
}
