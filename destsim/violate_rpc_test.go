package destsim

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oneSight is a violation that one probe sees.
func oneSight(id, name, part string) tamper { return tamper{id, map[string]string{name: part}} }

// ofUnknown is a violation that every call of an unknown method sees.
func ofUnknown(id, part string) tamper {
	return tamper{id, map[string]string{
		"unknown method": part, "method in capitals": part, "method with a space": part,
	}}
}

// ofSpeed is a violation that every get_sync_speed sees.
func ofSpeed(id, part string) tamper {
	return tamper{id, map[string]string{"get_sync_speed": part, "speed reordered": part}}
}

// ofObjects is a violation that every list_objects sees.
func ofObjects(id, part string) tamper {
	return tamper{id, map[string]string{
		"list_objects": part, "objects params": part, "objects and more": part,
		"objects reordered": part, "objects spaced": part, "objects escaped": part,
	}}
}

// ids are the forms of an id that servers like to change.
var ids = map[string]string{
	"id 007":        `"007"`,
	"id 1e3":        `"1e3"`,
	"id uuid":       `"0198c6a4-5f0e-7d33-9d2c-2f4b8f3c1a77"`,
	"id padded":     `" padded "`,
	"id long":       `"` + strings.Repeat("x", 300) + `"`,
	"id quotes":     `"say \"hi\" \u005c"`,
	"id emoji":      `"\ud83d\ude80"`,
	"id decomposed": `"e\u0301"`,
	"id number":     `12`,
}

func rpcProbes() map[string]probe {
	probes := calls()
	for name, id := range ids {
		probes[name] = func(n *naive) string {
			return n.post(`{"jsonrpc":"2.0","method":"test_connection","params":{},"id":` + id + `}`)
		}
	}
	probes["speed id 007"] = func(n *naive) string { return n.post(requestBody("get_sync_speed", `{}`, "007")) }
	return probes
}

const (
	speedNumbers = `"maximum_batch_size":1000,"maximum_parallel_batches":16,"maximum_records_per_second":1000000`
	connected    = `"result":{"success":true}`
)

func rpcTampers() []tamper {
	// Whoever looks at all replies of get_sync_speed looks at this one too.
	speed := func(id, part string) tamper {
		row := ofSpeed(id, part)
		row.sees["speed id 007"] = strings.ReplaceAll(part, `"a1"`, `"007"`)
		return row
	}
	everyID := func(id string) tamper {
		row := oneSight(id, "test_connection", `"id":"1"`)
		row.sees["connection params"] = `"id":"1"`
		for name := range ids {
			row.sees[name] = `"id":"1"`
		}
		delete(row.sees, "id number") // was never a string
		return row
	}
	objects := func(id, part string, probes ...string) tamper {
		row := tamper{id, map[string]string{}}
		for _, name := range probes {
			row.sees[name] = part
		}
		return row
	}
	return []tamper{
		speed("RPC-001", "200 <!DOCTYPE html>"),
		ofObjects("RPC-001.2", `}]}}{"jsonrpc":"2.0","id":"a1","result":{"objects":[`),
		oneSight("RPC-001.3", "list_fields", "\"label\":\"Email\xe9\""),
		speed("RPC-002", `{"jsonrpc":2.0,"id"`),
		speed("RPC-002.2", `{"jsonrpc":"1.0","id"`),
		ofUnknown("RPC-002.3", `200 {"id":"a1","error":{"code":-32601,`),
		everyID("RPC-003"),
		{"RPC-003.2", map[string]string{"id 007": `"id":7,`, "id 1e3": `"id":1000,`}},
		oneSight("RPC-003.3", "id padded", `"id":"padded"`),
		oneSight("RPC-003.4", "id long", `"id":"`+strings.Repeat("x", 255)+`"`),
		oneSight("RPC-003.5", "id decomposed", `"id":"é"`),
		ofUnknown("RPC-004", `},"result":{}}`),
		speed("RPC-004.2", speedNumbers+`},"error":null}`),
		speed("RPC-005", `200 {}`),
		speed("RPC-005.2", `200 {"jsonrpc":"2.0","id":"a1"}`),
		speed("RPC-006", `"result":[1000,16,1000000]}`),
		speed("RPC-006.2", `"result":"{\"maximum_batch_size\":1000,`),
		speed("RPC-006.3", `"result":null}`),
		ofUnknown("RPC-007", `"error":"method not found: `),
		ofUnknown("RPC-007.2", `"error":{"code":"-32601","message":"method not found`),
		ofUnknown("RPC-007.3", `"error":{"code":-32601}`),
		ofUnknown("RPC-008", `200 {"jsonrpc":"2.0","id":"a1","result":{"success":false}}`),
		ofUnknown("RPC-008.2", "500 [Content-Type: text/html; charset=utf-8] <html>"),
		ofUnknown("RPC-009", `"error":{"code":-32000,"message":"method not found`),
		oneSight("RPC-010", "body cut", "no response"),
		oneSight("RPC-010.2", "body cut", `200 {"jsonrpc":"2.0","id":null,`+connected),
		oneSight("RPC-010.3", "body cut", "no response"),
		oneSight("RPC-011", "no method", `200 {"jsonrpc":"2.0","id":"a1",`+connected),
		oneSight("RPC-012", "fields of no object", `"id":"a1","result":{"fields":[]}`),
		oneSight("RPC-012.2", "fields of no object", "no response"),
		objects("RPC-013", `"error":{"code":-32602,`, "objects params", "objects and more"),
		speed("RPC-014", `200 [{"jsonrpc":"2.0","id":"a1","result":{`+speedNumbers+`}}]`),
		speed("RPC-015", `"result":{`+speedNumbers+`},"result":{`+speedNumbers+`}}`),
		objects("RPC-016", `"error":{"code":-32601,`, "objects reordered", "objects spaced", "objects escaped"),
		oneSight("RPC-019", "method in capitals", `"result":{"objects":[{`),
	}
}

func TestRPCViolationsShow(t *testing.T) {
	testAllTampered(t, rpcViolations(), rpcTampers())
	testTampers(t, Config{}, rpcProbes(), rpcTampers())
}

// TestRPCViolationsLeaveRefusalsAlone: whoever may not call sees no difference.
func TestRPCViolationsLeaveRefusalsAlone(t *testing.T) {
	config := Config{Token: "right-token"}
	probes := maps.Clone(rpcProbes())
	delete(probes, "health")
	for name, do := range probes {
		t.Run(name, func(t *testing.T) {
			clean := probing(t, config, "", do)
			config := config
			for _, row := range rpcTampers() {
				config.Violate = append(config.Violate, row.id)
			}
			require.Equal(t, clean, probing(t, config, "", do))
		})
	}
}

// TestAHangingCallEndsWithItsCaller: RPC-010 gives no answer at all, and holds
// nothing once the caller has gone.
func TestAHangingCallEndsWithItsCaller(t *testing.T) {
	s := newSim(t, Config{Violate: []string{"RPC-010"}, Delays: Delays{Hang: time.Hour}})
	server := httptest.NewServer(s)
	defer server.Close() // waits for the call
	client := &http.Client{Timeout: 50 * time.Millisecond}
	_, err := client.Post(server.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0",`))
	require.ErrorContains(t, err, "Client.Timeout exceeded")
}
