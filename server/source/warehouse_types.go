package source

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// wrongHint documents the word in the catalogue that clients see.
const wrongHint = `This type is emulated: every value is taken, except "wrong", which fails the connection test.`

// snowflakeType stores names in upper case, as the product does with names that
// are not quoted.
func snowflakeType() *sourceType {
	d := describe("snowflake", "Snowflake (emulated)",
		matching(text("account", "Account", "xy12345.eu-west-1", "The part of the address before .snowflakecomputing.com."), `^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`),
		matching(text("warehouse", "Warehouse", "COMPUTE_WH", "The warehouse that runs the queries."), namePattern),
		matching(text("database", "Database", "DEMO", "The database that is read; it is the catalog of the tables."), namePattern),
		matching(text("user", "User", "SYNC", "The user that reads."), namePattern),
		password(wrongHint),
	)
	d.SupportedSyncEngines = []string{api.EngineBasic, api.EngineAdvanced}
	return emulated(d, &warehouseDialect{
		catalogField: "database", secretField: "password", defaultSchema: "PUBLIC",
		schemas: []string{"PUBLIC", "SALES", "TRACKING"}, upper: true,
		types: map[api.Kind]string{
			api.KindBoolean: "BOOLEAN", api.KindInteger: "NUMBER(38,0)", api.KindFloat: "FLOAT", api.KindDecimal: "NUMBER(38,9)",
			api.KindString: "VARCHAR(16777216)", api.KindDate: "DATE", api.KindDateTime: "TIMESTAMP_TZ(9)",
			api.KindArray: "ARRAY", api.KindObject: "VARIANT", api.KindBinary: "BINARY(8388608)", api.KindAny: "VARIANT",
		},
	}, nil)
}

// bigqueryType has its password inside a key file: the file is checked for the
// members that a client library needs.
func bigqueryType() *sourceType {
	key := text("service_account_key", "Service account key", `{"type": "service_account", …}`,
		"The key file of the service account, as an object or as its text. "+
			`This type is emulated: every private_key is taken, except "wrong", which fails the connection test.`)
	key.Type, key.InputType, key.IsPasswordTypeField = fieldObject, "textarea", true
	d := describe("bigquery", "BigQuery (emulated)",
		matching(text("project_id", "Project", "my-project-123", "6 to 30 lower-case letters, digits and hyphens; it is the catalog of the tables."), `^[a-z][a-z0-9-]{4,28}[a-z0-9]$`),
		key,
	)
	d.SupportedSyncEngines = []string{api.EngineBasic, api.EngineAdvanced}
	return emulated(d, &warehouseDialect{
		catalogField: "project_id", secretField: "service_account_key", defaultSchema: "crm",
		schemas: []string{"crm", "sales", "tracking"},
		types: map[api.Kind]string{
			api.KindBoolean: "BOOL", api.KindInteger: "INT64", api.KindFloat: "FLOAT64", api.KindDecimal: "NUMERIC(38,9)",
			api.KindString: "STRING", api.KindDate: "DATE", api.KindDateTime: "TIMESTAMP",
			api.KindArray: "ARRAY<STRING>", api.KindObject: "JSON", api.KindBinary: "BYTES", api.KindAny: "JSON",
		},
	}, checkServiceAccount)
}

// materializeType is the streaming database of spec 2.6: live syncs read it, and
// mapRecords is not for them.
func materializeType() *sourceType {
	d := describe("materialize", "Materialize (emulated)",
		hostField(), portField("6875"),
		matching(text("database", "Database", "materialize", "The database that is read; it is the catalog of the tables."), namePattern),
		matching(text("user", "User", "sync@example.com", "The user that reads."), namePattern),
		password(wrongHint),
	)
	d.StreamingDatabase = true
	return emulated(d, &warehouseDialect{
		catalogField: "database", secretField: "password", defaultSchema: "public",
		schemas: []string{"public", "sales", "tracking"},
		types: map[api.Kind]string{
			api.KindBoolean: "boolean", api.KindInteger: "bigint", api.KindFloat: "double precision", api.KindDecimal: "numeric(38,9)",
			api.KindString: "text", api.KindDate: "date", api.KindDateTime: "timestamp with time zone",
			api.KindArray: "text[]", api.KindObject: "jsonb", api.KindBinary: "bytea", api.KindAny: "jsonb",
		},
	}, nil)
}

// accountKey is the key file of a service account as far as it is checked.
type accountKey struct {
	Type        string `json:"type"`
	ProjectID   string `json:"project_id"`
	PrivateKey  string `json:"private_key"`
	ClientEmail string `json:"client_email"`
}

// serviceAccount reads the key from an object or from a string that holds one.
func serviceAccount(raw json.RawMessage) (key accountKey, err error) {
	var inside string
	if json.Unmarshal(raw, &inside) == nil {
		raw = json.RawMessage(inside)
	}
	if !strings.HasPrefix(strings.TrimSpace(string(raw)), "{") || json.Unmarshal(raw, &key) != nil {
		return key, errors.New("read key: not a key file")
	}
	return key, nil
}

// checkServiceAccount reports all missing members together.
func checkServiceAccount(s settings) []api.Problem {
	const place = "credentials.service_account_key"
	if !s.has("service_account_key") {
		return nil
	}
	key, err := serviceAccount(s["service_account_key"])
	if err != nil {
		return []api.Problem{{Field: place, Message: "must be the key file of a service account, as an object or as its text"}}
	}
	var problems []api.Problem
	if key.Type != "service_account" {
		problems = append(problems, api.Problem{Field: place + ".type", Message: "must be service_account"})
	}
	for _, member := range []struct{ name, value string }{
		{"project_id", key.ProjectID}, {"private_key", key.PrivateKey}, {"client_email", key.ClientEmail},
	} {
		if member.value == "" {
			problems = append(problems, api.Problem{Field: place + "." + member.name, Message: "is required"})
		}
	}
	return problems
}
