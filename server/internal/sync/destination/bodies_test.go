package destination

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// TestBodies: an exchange keeps what was sent and answered, without the token
// that an endpoint has put into its answer, and not what is too large.
func TestBodies(t *testing.T) {
	const token = "a-token-that-nobody-may-see"
	answer := endpoint(t, map[string]string{rpc.MethodSyncBatch: `"result":{"record_results":[{"identifier":"a","success":false,"error_message":"called with ` + token + `"}]}`})
	var seen []Exchange
	g := newGate(t, Options{Observe: func(x Exchange) { seen = append(seen, x) }})
	s, err := g.Sender(1, "custom_api", Credentials{
		"webhook_url": []byte(`"` + server(t, answer) + `"`), "api_version": []byte("1"), "auth_token": []byte(`"` + token + `"`),
	})
	require.NoError(t, err)
	reply, err := s.Send(t.Context(), restaurants(rpc.OperationUpsert), batchOf(`{"name":"a"}`))
	require.NoError(t, err)
	require.Equal(t, seen[0].RequestID, reply.Call)
	params, result := seen[0].Bodies()
	require.Contains(t, string(params), `"records":[{"name":"a"}]`)
	require.Contains(t, string(result), "called with [hidden]")
	require.NotContains(t, string(result), token)
	bare := seen[0].WithoutBodies()
	params, result = bare.Bodies()
	require.Nil(t, params)
	require.Nil(t, result)

	_, err = s.Send(t.Context(), restaurants(rpc.OperationUpsert), batchOf(`{"name":"`+strings.Repeat("x", MaxBodies)+`"}`))
	require.NoError(t, err)
	params, result = seen[1].Bodies()
	require.Nil(t, params)
	require.NotNil(t, result)
}
