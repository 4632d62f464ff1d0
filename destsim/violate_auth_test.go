package destsim

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	rightToken  = "Right-Token-17"
	rightSecret = "Right-Secret-23"
)

// authProbes send every method and the wrong credentials in every form; at is
// the path with the URL secret, elsewhere are wrong ones by name.
func authProbes(at string, elsewhere map[string]string) map[string]probe {
	params := map[string]string{
		"test_connection": `{}`, "list_objects": `{}`, "get_sync_speed": `{}`,
		"list_fields":          `{"object":{"object_api_name":"contact"}}`,
		"supported_operations": `{"object":{"object_api_name":"contact"}}`,
	}
	call := func(method, at string, tokens ...string) probe {
		return func(n *naive) string {
			headers := []string{}
			for _, token := range tokens {
				headers = append(headers, "Authorization", token)
			}
			p := params[method]
			if method == "sync_batch" {
				p = contactBatch(n.sim)
			}
			reply := n.send(http.MethodPost, at, requestBody(method, p, "a1"), headers...)
			if method == "sync_batch" {
				reply += "\nstored: " + stored(n.t, n.sim, "contact", "email", `"a@example.com"`)
			}
			return reply
		}
	}
	right := "Bearer " + rightToken
	probes := map[string]probe{
		"truncated":    call("list_objects", at, right[:len(right)-1]),
		"extended":     call("list_objects", at, right+"x"),
		"changed case": call("list_objects", at, "Bearer "+strings.ToLower(rightToken)),
		"basic":        call("list_objects", at, "Basic "+rightToken),
		"empty":        call("list_objects", at, "Bearer "),
		"twice":        call("list_objects", at, right, right),
		"old": func(n *naive) string {
			n.hook("rotate_token")
			return call("list_objects", at, right)(n)
		},
		"new": func(n *naive) string {
			n.hook("rotate_token")
			return call("list_objects", at, right+"-rotated")(n)
		},
		"malformed": func(n *naive) string { return n.send(http.MethodPost, at, `{"jsonrpc"`) },
	}
	for _, method := range []string{"sync_batch", "test_connection", "list_objects", "get_sync_speed", "list_fields", "supported_operations"} {
		probes[method] = call(method, at, right)
		probes[method+" without token"] = call(method, at)
		probes[method+" wrong"] = call(method, at, "Bearer wrong")
	}
	for name, path := range elsewhere {
		probes["secret "+name] = call("list_objects", path, right)
		probes["secret and token "+name] = call("list_objects", path)
		probes["secret and extended "+name] = call("list_objects", path, right+"x")
		probes["batch, secret "+name] = call("sync_batch", path, right)
	}
	return probes
}

// sights joins probes that see the same.
func sights(id, part string, names ...string) tamper {
	row := tamper{id, map[string]string{}}
	for _, name := range names {
		row.sees[name] = part
	}
	return row
}

const (
	refusal = `401 [Www-Authenticate: Bearer realm="destination"] {"jsonrpc":"2.0","id":"a1","error":{"code":-32001,`
	listed  = `"result":{"objects":[{`
	kept    = `stored: {"email":"a@example.com","last_name":"A"}`
)

// tokenTampers show with any URL secret.
func tokenTampers() []tamper {
	without := tamper{"AUTH-002", map[string]string{
		"list_objects without token": listed, "list_fields without token": `"result":{"fields":[{`,
		"supported_operations without token": `"result":{"operations":[`,
		"get_sync_speed without token":       speedNumbers, "sync_batch without token": kept,
		"malformed": `"error":{"code":-32700,`,
	}}
	return []tamper{
		oneSight("AUTH-001", "list_fields", refusal),
		without,
		oneSight("AUTH-003", "extended", listed),
		oneSight("AUTH-003.2", "changed case", listed),
		sights("AUTH-006", `"result":{"success":false}`, "list_objects without token", "list_fields without token",
			"supported_operations without token", "get_sync_speed without token", "sync_batch without token",
			"test_connection without token", "malformed", "secret and token wrong", "secret and token absent"),
		{"AUTH-007", map[string]string{
			"truncated": "Authorization: Bearer Right-Token-1\"", "extended": "Authorization: Bearer Right-Token-17x",
			"changed case": "Authorization: Bearer right-token-17", "basic": "Authorization: Basic Right-Token-17",
			"empty": "bad header: Authorization: Bearer", "twice": "Authorization: Bearer Right-Token-17, Bearer Right-Token-17",
			"old": "Authorization: Bearer Right-Token-17", "list_objects wrong": "Authorization: Bearer wrong",
			"list_fields wrong": "Authorization: Bearer wrong", "supported_operations wrong": "Authorization: Bearer wrong",
			"get_sync_speed wrong": "Authorization: Bearer wrong", "sync_batch wrong": "Authorization: Bearer wrong",
			"test_connection wrong":      "Authorization: Bearer wrong",
			"secret and extended wrong":  "Authorization: Bearer Right-Token-17x",
			"secret and extended absent": "Authorization: Bearer Right-Token-17x",
		}},
		sights("AUTH-008", kept, "sync_batch without token", "sync_batch wrong", "batch, secret wrong", "batch, secret absent"),
		oneSight("AUTH-009", "old", listed),
	}
}

func TestAuthViolationsShow(t *testing.T) {
	one := 1
	query := Config{Token: rightToken, URLSecret: URLSecret{Query: "key", Value: rightSecret}}
	path := Config{Token: rightToken, URLSecret: URLSecret{Path: &one, Value: rightSecret}}
	inQuery := authProbes("/rpc?key="+rightSecret, map[string]string{
		"wrong": "/rpc?key=wrong", "absent": "/rpc",
		"wrong first": "/rpc?key=wrong&key=" + rightSecret, "wrong last": "/rpc?key=" + rightSecret + "&key=wrong",
	})
	inPath := authProbes("/rpc/"+rightSecret+"/x", map[string]string{"wrong": "/rpc/wrong/x", "absent": "/rpc"})

	// A repeated secret that is refused is one more refusal.
	repeated := func(table []tamper) []tamper {
		for _, row := range table {
			for _, probe := range []string{"secret and token ", "secret and extended ", "batch, secret "} {
				if part := row.sees[probe+"wrong"]; part != "" {
					row.sees[probe+"wrong first"], row.sees[probe+"wrong last"] = part, part
				}
			}
		}
		return table
	}
	ofQuery := append(repeated(tokenTampers()), tamper{"AUTH-004", map[string]string{
		"secret wrong": listed, "secret absent": listed, "secret wrong first": listed, "secret wrong last": listed,
		"batch, secret wrong": kept, "batch, secret absent": kept, "batch, secret wrong first": kept, "batch, secret wrong last": kept,
	}}, tamper{"AUTH-005", map[string]string{"secret wrong first": listed, "batch, secret wrong first": kept}})
	ofPath := append(tokenTampers(), tamper{"AUTH-004.2", map[string]string{
		"secret wrong": listed, "secret absent": listed, "batch, secret wrong": kept, "batch, secret absent": kept,
	}})
	testAllTampered(t, authViolations(), ofQuery, ofPath[len(ofPath)-1:])
	t.Run("query", func(t *testing.T) { testTampers(t, query, inQuery, ofQuery) })
	t.Run("path", func(t *testing.T) { testTampers(t, path, inPath, ofPath) })
}

// TestAStoredBatchIsStillRefused: what AUTH-008 does is seen in the store only.
func TestAStoredBatchIsStillRefused(t *testing.T) {
	for _, violation := range []string{"", "AUTH-008"} {
		probing(t, Config{Token: rightToken}, violation, func(n *naive) string {
			require.Contains(t, n.call("sync_batch", contactBatch(n.sim), "Authorization", "Bearer wrong"), refusal)
			require.Contains(t, n.call("list_objects", `{}`), refusal)
			return ""
		})
	}
}
