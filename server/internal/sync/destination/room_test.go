package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// echo answers every call with a result, which gets the id of the request.
func echo(result string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct{ ID json.RawMessage }
		_ = json.Unmarshal(body, &request)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, result)
	}
}

// TestResultsAreCountedAgainstRecords: a reply that has far more results than records
// were sent is no reply, and is not taken apart to its end.
func TestResultsAreCountedAgainstRecords(t *testing.T) {
	s := sender(t, newGate(t, Options{}), server(t, echo(`{"record_results":[`+strings.Repeat("{},", 5_000_000)+`{}]}`)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.Send(t.Context(), restaurants(rpc.OperationUpsert), batchOf(`{"id":1}`))
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "result.record_results holds more than 102 results for 1 records")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(160<<20), "the bodies on both sides")
	few := sender(t, newGate(t, Options{}), server(t, echo(`{"record_results":[`+strings.Repeat("{},", 101)+`{}]}`)))
	reply := sent(t, few, restaurants(rpc.OperationUpsert), batchOf(`{"id":1}`))
	require.Len(t, reply.Results, 102)
}

// TestLargeRepliesTakeTurns: no more of them are held at once than there are places,
// each gives its place back, however its call ends, and who waits ends with its call.
func TestLargeRepliesTakeTurns(t *testing.T) {
	long := strings.Repeat("x", 2*rpc.LargeReply)
	good := sender(t, newGate(t, Options{}), server(t, echo(`{"padding":"`+long+`","record_results":[{"identifier":1,"success":true},{"identifier":"`+long+`","success":true}]}`)))
	bad := sender(t, newGate(t, Options{}), server(t, echo(`{"padding":"`+long+`"}`)))
	record := batchOf(`{"id":1}`)
	for range 2 * largeReplies {
		reply := sent(t, good, restaurants(rpc.OperationUpsert), record)
		require.Equal(t, "1", string(reply.Results[0].Identifier))
		require.Empty(t, reply.Results[1].Identifier, "longer than any record")
		_, err := bad.Send(t.Context(), restaurants(rpc.OperationUpsert), record)
		require.Error(t, err)
		_, err = bad.Speed(t.Context())
		require.Error(t, err)
	}
	require.True(t, large.TryAcquire(largeReplies))
	ctx, cancel := context.WithCancel(t.Context())

	go cancel()
	_, err := good.Send(ctx, restaurants(rpc.OperationUpsert), record)
	require.Error(t, err)
	large.Release(largeReplies)
	sent(t, good, restaurants(rpc.OperationUpsert), record)
	require.True(t, large.TryAcquire(largeReplies), "all places are free again")
	large.Release(largeReplies)
}

// TestBodiesOfCallsKeepNothingElse: the journal's part of a reply must not keep all of
// a long reply in memory.
func TestBodiesOfCallsKeepNothingElse(t *testing.T) {
	body := append(bytes.Repeat([]byte(" "), 1<<20), `{"a":1}`...)
	var x Exchange
	x.keep(nil, body[1<<20:], nil)
	require.LessOrEqual(t, cap(x.result), 64)
}

// TestBodies: an exchange keeps request and answer, without the token that an
// endpoint has put into its answer, and without bodies that are too large.
func TestBodies(t *testing.T) {
	const token = "a-token-that-nobody-may-see"
	answer := endpoint(t, map[string]string{rpc.MethodSyncBatch: `"result":{"record_results":[{"identifier":"a","success":false,"error_message":"called with ` + token + `"}]}`})
	var seen []Exchange
	g := newGate(t, Options{Observe: func(x Exchange) { seen = append(seen, x) }})
	s, err := g.Sender(1, "custom_api", Credentials{
		"webhook_url": []byte(`"` + server(t, answer) + `"`), "api_version": []byte("1"), "auth_token": []byte(`"` + token + `"`),
	})
	require.NoError(t, err)
	reply := sent(t, s, restaurants(rpc.OperationUpsert), batchOf(`{"name":"a"}`))
	require.Equal(t, seen[0].RequestID, reply.Call)
	params, result := seen[0].Bodies()
	require.Contains(t, string(params), `"records":[{"name":"a"}]`)
	require.Contains(t, string(result), "called with [hidden]")
	require.NotContains(t, string(result), token)
	bare := seen[0].WithoutBodies()
	params, result = bare.Bodies()
	require.Nil(t, params)
	require.Nil(t, result)

	sent(t, s, restaurants(rpc.OperationUpsert), batchOf(`{"name":"`+strings.Repeat("x", MaxBodies)+`"}`))
	params, result = seen[1].Bodies()
	require.Nil(t, params)
	require.NotNil(t, result)
}

func TestForeign(t *testing.T) {
	r := newRedactor([]string{"secret"})
	require.Equal(t, "a b \uFFFD", r.Foreign("a\nb\x00\xff"))
	require.Equal(t, "the [hidden] is wrong", r.Foreign("the SECRET is wrong\n"))
	require.Len(t, []rune(r.Foreign(strings.Repeat("é", 2*maxForeign))), maxForeign+1)
}
