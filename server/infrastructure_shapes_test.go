package server

import "encoding/json"

// connectionShapes are the connections that clients make, as they write them.
// %PATH% is a database that is there.
var connectionShapes = []struct {
	typ          string
	credentials  map[string]any
	details      map[string]any // what a read shows of them
	fails        bool           // nothing listens there: made all the same (spec 3)
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
	{ // ports as texts, and what is optional as an empty text
		typ:         "redshift",
		credentials: map[string]any{"hostname": "shop.abc123.eu-west-1.redshift.amazonaws.com", "port": "5440", "database": "dev", "user": "sync", "password": "p"},
		details:     map[string]any{"hostname": "shop.abc123.eu-west-1.redshift.amazonaws.com", "port": json.Number("5440"), "database": "dev", "user": "sync"},
		changed:     "database", now: "prod",
	},
	{
		typ: "big_query",
		credentials: map[string]any{"project_id": "my-project-123", "location": "",
			"service_account_key": `{"type":"service_account","project_id":"my-project-123","client_email":"reader@my-project-123.iam.gserviceaccount.com","private_key":"k"}`},
		details: map[string]any{"project_id": "my-project-123", "service_account": "reader@my-project-123.iam.gserviceaccount.com", "location_editable": true},
		changed: "location", now: "EU",
	},
	{
		typ: "databricks",
		credentials: map[string]any{"hostname": "dbc-a1b2c3d4-e5f6.cloud.databricks.com", "port": 443, "http_path": "/sql/1.0/warehouses/abc123",
			"catalog": "main", "access_token": "t"},
		details: map[string]any{"hostname": "dbc-a1b2c3d4-e5f6.cloud.databricks.com", "catalog": "main"}, changed: "catalog", now: "sales",
	},
	{
		typ:         "mysql",
		credentials: map[string]any{"hostname": "db.example.com", "port": "3306", "database": "shop", "user": "sync", "password": "p"},
		details:     map[string]any{"hostname": "db.example.com", "database": "shop"}, changed: "database", now: "crm",
	},
	{
		typ:         "sql_server",
		credentials: map[string]any{"hostname": "db.example.com", "port": 1433, "database": "shop", "user": "sync", "password": "p"},
		details:     map[string]any{"hostname": "db.example.com", "port": json.Number("1433"), "database": "shop"}, changed: "database", now: "crm",
	},
	{
		typ:         "azure_synapse",
		credentials: map[string]any{"hostname": "shop.sql.azuresynapse.net", "port": 1433, "database": "shop", "user": "sync", "password": "p"},
		details:     map[string]any{"hostname": "shop.sql.azuresynapse.net", "database": "shop"}, changed: "database", now: "crm",
	},
}
