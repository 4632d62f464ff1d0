package server

import "encoding/json"

// connectionShapes are the connections that clients make, as they write them.
// %PATH% is a database that is there.
var connectionShapes = []struct {
	typ          string
	credentials  map[string]any
	details      map[string]any // what a read shows of them
	fails        bool           // nobody listens there: made all the same (spec 3)
	changed, now string         // a credential of an update, and its new value
}{
	{typ: "sqlite", credentials: map[string]any{"path": "%PATH%"}, details: map[string]any{"path": "%PATH%"}, changed: "path", now: "%PATH%"},
	{
		typ: "postgres", credentials: map[string]any{"host": "127.0.0.1", "port": 1, "database": "d", "username": "u", "password": "p", "sslmode": "disable"},
		details: map[string]any{"host": "127.0.0.1", "port": json.Number("1"), "database": "d"}, fails: true, changed: "database", now: "e",
	},
	{
		typ:         "snowflake",
		credentials: map[string]any{"account": "xy12345", "warehouse": "LOADING", "database": "SHOP", "user": "reader", "password": "p"},
		details:     map[string]any{"account": "xy12345", "warehouse": "LOADING", "user": "reader"}, changed: "warehouse", now: "OTHER",
	},
}
