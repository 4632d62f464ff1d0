package destsim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestStatelessViolationsShow(t *testing.T) {
	table := []effect{
		{id: "STA-001", sees: map[string]string{"altered schema": "11 11 12"}},
		{id: "STA-003", sees: map[string]string{"empty before": `[{"identifier":null,"success":true}]`}},
		{id: "STA-004", sees: map[string]string{"back the same": is(`"a"`, ""), "back same, seen": `true}]} "a" is ` + "\n"}},
		{id: "STA-006", sees: map[string]string{"update, later there": is(`"a"`, `{"email":"a","last_name":"2"}`)}},
		{id: "STA-007", sees: map[string]string{"restart": `"error":{"code":-32000,"message":"warming up"}` + "\n" + `"result"`}},
	}
	testEachShown(t, statelessViolations(), table, "STA-002", "STA-005")
	testEffects(t, effectGlances(), table)
}

// connectionProbes make calls on a connection of their own, in the order of
// the words; a batch has so many records.
func connectionProbes() map[string]probe {
	all := calls()
	for name, sequence := range map[string]string{
		"operations first":         "operations",
		"operations later":         "objects operations",
		"operations twice":         "operations operations operations",
		"six records first":        "6",
		"seven records first":      "7",
		"nine records first":       "9",
		"ten records first":        "10",
		"seven records later":      "objects 7 7",
		"seven records after that": "7 7",
	} {
		all[name] = func(n *naive) string {
			n.http.CloseIdleConnections()
			var replies []string
			for _, word := range strings.Fields(sequence) {
				switch word {
				case "operations":
					replies = append(replies, n.call(rpc.MethodSupportedOperations, about("contact")))
				case "objects":
					n.call(rpc.MethodListObjects, `{}`)
				default:
					count := map[string]int{"6": 6, "7": 7, "9": 9, "10": 10}[word]
					replies = append(replies, n.call(rpc.MethodSyncBatch, planOf(n.sim, "contact", "upsert", "email", contacts(0, count)...)))
				}
			}
			return strings.Join(replies, "\n")
		}
	}
	all["operations with a cookie"] = func(n *naive) string {
		return n.call(rpc.MethodSupportedOperations, about("contact"), "Cookie", "session=1")
	}
	return all
}

func TestConnectionMemoryShows(t *testing.T) {
	const (
		session = `{"jsonrpc":"2.0","id":"a1","error":{"code":-32000,"message":"no session"}}`
		listed  = `"error":{"code":-32000,"message":"call list_fields first"}}`
	)
	operations := `200 {"jsonrpc":"2.0","id":"a1","result":{"operations":["upsert","insert","update","mirror"]}}`
	require.Contains(t, probing(t, Config{}, "", connectionProbes()["operations twice"]), operations)
	testTampers(t, Config{}, connectionProbes(), []tamper{
		{"STA-002", map[string]string{
			"seven records first": listed, "nine records first": listed, "seven records after that": listed + "\n200 " + `{"jsonrpc":"2.0","id":"a1","result":`,
		}},
		{"STA-005", map[string]string{
			"operations first": session, "supported_operations": session, "operations of none": session,
			"operations twice": "200 " + session + "\n" + operations + "\n" + operations,
		}},
	})
}
