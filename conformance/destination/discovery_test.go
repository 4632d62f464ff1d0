package destination

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// discovered is what discovery makes of an endpoint that answers one method
// with this result.
func discovered(t *testing.T, method, result string) *write.Catalog {
	t.Helper()
	e := newSmall()
	e.answer = func(m string, _ int, _ []byte) string {
		if m == method {
			return `{"jsonrpc":"2.0","id":$ID,"result":` + result + `}`
		}
		return ""
	}
	s := prepared(t, e, healthCheck, conformance.Options{})
	c, err := s.Discover(context.Background())
	require.NoError(t, err)
	return c
}

// TestDiscoveryIsLenient: discovery leaves out what it cannot read; the planning checks report why.
func TestDiscoveryIsLenient(t *testing.T) {
	cases := []struct {
		result string
		want   []string
	}{
		{`{"objects":[{"object_api_name":"a","label":"A"},{"object_api_name":"b"}]}`, []string{"a", "b"}},
		{`{"objects":[{"object_api_name":"a"},{"object_api_name":"a"}]}`, []string{"a"}},
		{`{"objects":[{"label":"A"},{"object_api_name":""},{"object_api_name":7},"x",null]}`, nil},
		{`{"objects":{"object_api_name":"a"}}`, nil},
		{`{}`, nil},
		{`[]`, nil},
	}
	for _, c := range cases {
		require.Equal(t, c.want, discovered(t, rpc.MethodListObjects, c.result).Names(), c.result)
	}

	field := func(rest string) string { return `{"fields":[{"field_api_name":"x","label":"x",` + rest + `}]}` }
	for rest, want := range map[string]int{
		`"type":"string"`: 1, `"type":"text"`: 0, `"type":7`: 0, `"identifier":"yes","type":"string"`: 0, `"array":true,"type":"date"`: 1,
	} {
		require.Len(t, discovered(t, rpc.MethodListFields, field(rest)).Objects[0].Fields, want, rest)
	}
	require.Equal(t, []string{"upsert", "append"}, discovered(t, rpc.MethodSupportedOperations, `{"operations":["upsert",1,"append","upsert"]}`).Objects[0].Operations)
	require.Empty(t, discovered(t, rpc.MethodSupportedOperations, `{"operations":"upsert"}`).Objects[0].Operations)
}

func TestDiscoveredSpeed(t *testing.T) {
	speed := func(batch string) string {
		return fmt.Sprintf(`{"maximum_batch_size":%s,"maximum_parallel_batches":2,"maximum_records_per_second":3}`, batch)
	}
	require.Equal(t, &rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 2, MaximumRecordsPerSecond: 3}, discovered(t, rpc.MethodGetSyncSpeed, speed("1")).Speed)
	for _, bad := range []string{`"1"`, `0`, `-1`, `2.5`, `1e2`, `null`, `99999999999999999999`} {
		require.Nil(t, discovered(t, rpc.MethodGetSyncSpeed, speed(bad)).Speed, bad)
	}
	require.Nil(t, discovered(t, rpc.MethodGetSyncSpeed, `{"maximum_batch_size":1}`).Speed)
}

func TestDiscoveredHealth(t *testing.T) {
	for result, want := range map[string]string{
		`{"success":true}`: "", `{"success":"false"}`: "", `{}`: "",
		`{"success":false,"error_message":"no disk"}`: "no disk",
		`{"success":false}`:                           "success is false, and no error_message says why",
		`{"success":false,"error_message":""}`:        "success is false, and no error_message says why",
		`{"success":false,"error_message":{"a":1}}`:   "success is false, and no error_message says why",
	} {
		require.Equal(t, want, discovered(t, rpc.MethodTestConnection, result).Unhealthy, result)
	}
}

func TestIdentifierOfAnObject(t *testing.T) {
	field := func(name, typ string, identifier, array bool) rpc.Field {
		return rpc.Field{APIName: name, Type: typ, Identifier: identifier, Array: array}
	}
	o := &write.Object{Fields: []rpc.Field{field("n", "integer", true, false), field("list", "string", true, true), field("d", "date", true, false), field("s", "string", true, false)}}
	id, err := o.Identifier()
	require.NoError(t, err)
	require.Equal(t, "s", id.APIName, "a string identifier comes first")
	o.Fields = o.Fields[:3]
	id, err = o.Identifier()
	require.NoError(t, err)
	require.Equal(t, "n", id.APIName)
	o.Fields = o.Fields[1:]
	_, err = o.Identifier()
	status, _, _ := engine.Decided(err)
	require.Equal(t, conformance.NotApplicable, status)
}
