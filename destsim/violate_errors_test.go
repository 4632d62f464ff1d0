package destsim

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// posts sends bodies one after the other and joins the answers by lines.
func posts(bodies ...string) probe {
	return func(n *naive) string {
		lines := make([]string, len(bodies))
		for i, body := range bodies {
			lines[i] = n.post(body)
		}
		return strings.Join(lines, "\n")
	}
}

func errorProbes() map[string]probe {
	const garbage = "zz not json"
	objects, test := requestBody(rpc.MethodListObjects, `{}`, "a1"), requestBody(rpc.MethodTestConnection, `{}`, "a2")
	all := calls()
	all["objects after garbage"] = posts(garbage, objects, objects)
	all["test after garbage"] = posts(garbage, test, objects)
	all["objects after half"] = posts(objects[:20], objects)
	all["objects after a scalar"] = posts(`"zz"`, objects)
	all["garbage twice"] = posts(garbage, garbage)
	all["broken"] = func(n *naive) string {
		n.hook("break_downstream")
		return n.call(rpc.MethodSyncBatch, contactBatch(n.sim)) + "\nkept " + stored(n.t, n.sim, "contact", "email", `"a@example.com"`)
	}
	all["broken test"] = func(n *naive) string {
		n.hook("break_downstream")
		return n.call(rpc.MethodTestConnection, `{}`) + n.call(rpc.MethodListObjects, `{}`)
	}
	all["NUL"] = func(n *naive) string {
		batch := planOf(n.sim, "contact", "upsert", "email", `{"email":"a","last_name":"x\u0000"}`)
		return n.call(rpc.MethodSyncBatch, batch) + "\n" + n.call(rpc.MethodTestConnection, `{}`)
	}
	all["escape of NUL as text"] = func(n *naive) string {
		batch := planOf(n.sim, "contact", "upsert", "email", `{"email":"a","last_name":"\\u0000"}`)
		return n.call(rpc.MethodSyncBatch, batch)
	}
	return all
}

func TestErrorViolationsShow(t *testing.T) {
	const parse = `200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,`
	const listed = `200 {"jsonrpc":"2.0","id":"a1","result":{"objects":[`
	table := []tamper{
		{"ERR-001", map[string]string{"broken": `"result":{"record_results":[{"identifier":"a@example.com","success":true}]}}` + "\nkept "}},
		{"ERR-002", map[string]string{
			"objects after garbage": "\nno response\n" + listed,
			"test after garbage":    `{"success":true}}` + "\nno response",
		}},
		{"ERR-002.2", map[string]string{
			"objects after garbage": "\n" + parse, "test after garbage": "\n" + parse,
		}},
		{"ERR-003", map[string]string{"fields of unknown": `unknown object \"x\"\nTraceback (most recent call last):\n`}},
		{"ERR-004", map[string]string{"fields of unknown": strings.Repeat(" and so on", 1000)}},
		{"ERR-004.2", map[string]string{"fields of unknown": `"error":{"code":-32602,"message":""}`}},
		{"ERR-006", map[string]string{
			"body not JSON": "no response", "objects after garbage": "no response\nno response\nno response",
			"test after garbage": "no response\nno response\nno response", "garbage twice": "no response\nno response",
		}},
		{"ERR-006.2", map[string]string{"NUL": "no response\nno response"}},
	}
	// ERR-005 is a matter of time.
	testAllTampered(t, errorsViolations(), table, []tamper{{id: "ERR-005"}})
	testTampers(t, Config{}, errorProbes(), table)
}

func TestSlowRetryShows(t *testing.T) {
	broken := func(look glance) glance {
		return func(t *testing.T, s *Sim) string {
			s.broken.Store(true)
			return look(t, s)
		}
	}
	testEffects(t, map[string]glance{
		"objects":         timed(rpc.MethodListObjects, 1),
		"objects, broken": broken(timed(rpc.MethodListObjects, 1)),
		"test, broken":    broken(timed(rpc.MethodTestConnection, 1)),
	}, []effect{{id: "ERR-005", sees: map[string]string{"objects, broken": "[" + time.Minute.String() + "]"}}})
}

// TestProcessComesBack: it is gone for Delays.Down and no longer.
func TestProcessComesBack(t *testing.T) {
	var now atomic.Int64
	now.Store(int64(time.Hour))
	config := Config{Clock: func() time.Time { return time.Unix(0, now.Load()) }, Delays: Delays{Down: 700 * time.Millisecond}}
	got := probing(t, config, "ERR-006", func(n *naive) string {
		connection := func() string { return n.call(rpc.MethodTestConnection, `{}`) }
		lines := []string{connection(), n.post("zz not json"), connection()}
		now.Add(int64(699 * time.Millisecond))
		lines = append(lines, connection())
		now.Add(int64(time.Millisecond))
		return strings.Join(append(lines, connection()), "\n")
	})
	good := `200 {"jsonrpc":"2.0","id":"a1","result":{"success":true}}`
	require.Equal(t, strings.Join([]string{good, "no response", "no response", "no response", good}, "\n"), got)
}
