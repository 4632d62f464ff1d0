package destsim

import "testing"

func TestConnectionViolationsShow(t *testing.T) {
	probes := calls()
	probes["connected six times"] = times(6, "test_connection", `{}`)
	probes["broken downstream"] = func(n *naive) string {
		n.hook("break_downstream")
		return n.call("test_connection", `{}`)
	}
	connection := func(id, part string) tamper {
		return tamper{id, map[string]string{"test_connection": part, "connection params": part, "connected six times": part}}
	}
	object := func(id string) tamper {
		part := `"error":{"code":-32602,"message":"invalid params: a parameter is missing"}`
		return tamper{id, map[string]string{
			"list_objects": part, "objects and more": part, "objects reordered": part,
			"objects spaced": part, "objects escaped": part,
		}}
	}
	failed := `"result":{"success":false,"error_message":"already connected"}}` + "\n"
	ok := `200 {"jsonrpc":"2.0","id":"a1","result":{"success":true}}` + "\n"
	empty := `"error":{"code":-32602,"message":"invalid params: a parameter is missing"}`
	table := []tamper{
		connection("CON-001", `"result":{}`),
		connection("CON-001.2", `"result":{"success":"true"}`),
		connection("CON-001.3", `"result":{"success":1}`),
		oneSight("CON-002", "broken downstream", connected),
		oneSight("CON-003", "connected six times", ok+ok+`200 {"jsonrpc":"2.0","id":"a1",`+failed+ok+ok+`200 {"jsonrpc":"2.0","id":"a1",`+failed),
		{"CON-004", map[string]string{"test_connection": empty, "connected six times": empty, "broken downstream": empty}},
		object("CON-005"),
	}
	testAllTampered(t, connectionViolations(), table)
	testTampers(t, Config{}, probes, table)
}
