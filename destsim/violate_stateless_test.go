package destsim

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestStatelessViolationsShow(t *testing.T) {
	table := []effect{
		{id: "STA-001", sees: map[string]string{"altered schema": "11 11 12"}},
		{id: "STA-003", sees: map[string]string{"empty before": `[{"identifier":null,"success":true}]`}},
		{id: "STA-003.2", sees: map[string]string{
			"event planned": `a in contact: , in event: {"event_id":"a"}`, "event planned, speed asked": `a in contact: , in event: {"event_id":"a"}`,
		}},
		{id: "STA-004", sees: map[string]string{"back the same": is(`"a"`, ""), "back same, seen": `true}]} "a" is ` + "\n"}},
		{id: "STA-006", sees: map[string]string{"update, later there": is(`"a"`, `{"email":"a","last_name":"2"}`)}},
		{id: "STA-007", sees: map[string]string{"restart": `"error":{"code":-32000,"message":"warming up"}` + "\n" + `"result"`}},
	}
	testEachShown(t, statelessViolations(), table, "STA-002", "STA-002.2", "STA-005")
	glances := effectGlances()
	maps.Copy(glances, plannedGlances())
	testEffects(t, glances, table)
}

// plannedGlances plan something and write a contact.
func plannedGlances() map[string]glance {
	planned := func(calls ...string) glance {
		return func(t *testing.T, s *Sim) string {
			for _, call := range calls {
				method, object, _ := strings.Cut(call, " ")
				invoke(s, method, about(object))
			}
			said := write(t, s, "contact", "insert", person("a", "1"))
			require.Equal(t, []string{"ok"}, write(t, s, "contact", "insert", person("b", "1")))
			return said[0] + ": a in contact: " + stored(t, s, "contact", "email", `"a"`) + ", in event: " + stored(t, s, "event", "event_id", `"a"`) +
				", b in contact: " + stored(t, s, "contact", "email", `"b"`)
		}
	}
	fields, operations := rpc.MethodListFields, rpc.MethodSupportedOperations
	return map[string]glance{
		"event planned":                planned(fields+" event", operations+" event"),
		"event planned, speed asked":   planned(operations+" event", fields+" event", rpc.MethodGetSyncSpeed),
		"event planned, then contact":  planned(fields+" event", operations+" event", fields+" contact", operations+" contact"),
		"event planned, then listed":   planned(fields+" event", operations+" event", rpc.MethodListObjects),
		"only the fields of event":     planned(fields + " event"),
		"event and contact half":       planned(fields+" event", operations+" contact"),
		"contact planned":              planned(fields+" contact", operations+" contact"),
		"an unknown one was asked for": planned(fields+" nope", operations+" nope"),
	}
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

// TestTheFirstBatchOfAConnectionIsLost: the results of STA-002.2 look right, and only
// the store shows it.
func TestTheFirstBatchOfAConnectionIsLost(t *testing.T) {
	for violation, want := range map[string]int{"": 7, "STA-002.2": 0} {
		cfg := Config{}
		if violation != "" {
			cfg.Violate = []string{violation}
		}
		sim, err := New(cfg)
		require.NoError(t, err)
		server := httptest.NewServer(sim)
		var records, keys []string
		for i := range 7 {
			key := fmt.Sprintf("%d@example.com", i)
			records, keys = append(records, fmt.Sprintf(`{"email":%q,"last_name":"x"}`, key)), append(keys, strconv.Quote(key))
		}
		field := func(name string, identifier bool) string {
			return fmt.Sprintf(`%q:{"active_identifier":%v,"field":{"field_api_name":%q,"label":"x","identifier":%v,"required":true,"createable":true,"updateable":true,"type":"string","array":false}}`, name, identifier, name, identifier)
		}
		body := `{"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"object":{"object_api_name":"contact","label":"Contact"},"operation":"upsert","sync_run_id":2,"sync_id":1,"schema":{` +
			field("email", true) + "," + field("last_name", false) + `}},"records":[` + strings.Join(records, ",") + `]},"id":"a1"}`
		require.Equal(t, 7, strings.Count(posted(t, server.URL+"/", body), `"success":true`))
		seen := posted(t, server.URL+"/_control/readback", `{"object":"contact","identifier_field":"email","identifiers":[`+strings.Join(keys, ",")+`]}`)
		require.Equal(t, want, strings.Count(seen, `"count":1`), seen)
		server.Close()
		require.NoError(t, sim.Close())
	}
}

// posted is the body of the response to a POST on a connection of its own.
func posted(t *testing.T, url, body string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(all)
}
