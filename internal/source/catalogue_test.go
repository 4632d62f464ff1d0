package source

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestTypes(t *testing.T) {
	var got []string
	for _, typ := range Types() {
		got = append(got, typ.ServiceName)
		require.NotEmpty(t, typ.Label)
		require.NotEmpty(t, typ.DocumentationSlug)
		require.True(t, typ.CreatableViaAPI)
		require.False(t, typ.CreatableViaConnectLink)
		require.Contains(t, typ.SupportedSyncEngines, api.EngineBasic)
		require.NotNil(t, typ.ConfigurationFields.Fields)
		for _, f := range typ.ConfigurationFields.Fields {
			require.NotEmpty(t, f.Label, f.ID)
			require.NotEmpty(t, f.InputType, f.ID)
			require.NotEmpty(t, f.Hint, "%s.%s", typ.ServiceName, f.ID)
			require.Contains(t, []string{"string", "integer", "boolean", "object", "array"}, f.Type)
			require.NotNil(t, f.PossibleValues, f.ID)
		}
	}
	require.Equal(t, []string{"sqlite", "postgres", "csv", "jsonl", "parquet", "generator", "topic_log",
		"azure_synapse", "big_query", "databricks", "materialize", "mysql", "redshift", "snowflake", "sql_server"}, got)
}

func TestTypeFlags(t *testing.T) {
	type flags struct{ Streaming, StreamingDatabase, Emulated, File, SQL bool }
	want := map[string]flags{
		"sqlite": {SQL: true}, "postgres": {SQL: true},
		"csv": {File: true}, "jsonl": {File: true}, "parquet": {File: true},
		"generator": {}, "topic_log": {Streaming: true},
		"snowflake": {Emulated: true, SQL: true}, "big_query": {Emulated: true, SQL: true},
		"azure_synapse": {Emulated: true, SQL: true}, "databricks": {Emulated: true, SQL: true}, "mysql": {Emulated: true, SQL: true},
		"redshift": {Emulated: true, SQL: true}, "sql_server": {Emulated: true, SQL: true},
		"materialize": {Emulated: true, SQL: true, StreamingDatabase: true},
	}
	require.Len(t, Types(), len(want))
	for name, f := range want {
		d, ok := Type(name)
		require.True(t, ok, name)
		require.Equal(t, f, flags{d.Streaming, d.StreamingDatabase, d.Emulated, d.File, d.SQL}, name)
	}
	_, ok := Type("oracle")
	require.False(t, ok)
	postgres, _ := Type("postgres")
	require.Equal(t, []string{"basic", "advanced"}, postgres.SupportedSyncEngines)
	require.True(t, postgres.SupportsWarehouseWriteback)
}

// TestTypesAreCopies: the server sets the form of the rules per dialect.
func TestTypesAreCopies(t *testing.T) {
	first := Types()
	first[1].ConfigurationFields.Fields[0].Rules.AsList = true
	first[1].SupportedSyncEngines[0] = "changed"
	require.False(t, Types()[1].ConfigurationFields.Fields[0].Rules.AsList)
	require.Equal(t, api.EngineBasic, Types()[1].SupportedSyncEngines[0])
}

// TestTypeOnTheWire: the misspelt key, rules as a string, lists never null
// (spec 2.10).
func TestTypeOnTheWire(t *testing.T) {
	d, _ := Type("postgres")
	text, err := json.Marshal(d.SourceType)
	require.NoError(t, err)
	require.NotContains(t, string(text), "null")
	require.Contains(t, string(text), `"placholder":"db.example.com"`)
	require.Contains(t, string(text), `"rules":"required"`)
	require.Contains(t, string(text), `"possible_values":["disable","allow","prefer","require","verify-ca","verify-full"]`)
}
