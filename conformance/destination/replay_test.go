package destination

import (
	"context"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

func TestReplay(t *testing.T) {
	e := failing(2, 3, 4)
	target := Target{Handler: e, Token: "the-token-of-the-tests"}
	r := judged(t, e, healthCheck, conformance.Options{})
	require.Equal(t, []string{"AAA-001"}, r.Failed)

	again, err := Replay(context.Background(), target, conformance.Options{}, r, []string{"AAA-001"})
	require.NoError(t, err)
	require.Len(t, again, 1)
	require.Equal(t, "AAA-001", again[0].Check)
	require.Empty(t, again[0].Skipped)
	require.True(t, again[0].Same, "%+v", again[0].After)
	require.Equal(t, again[0].Before.Request.Body, again[0].After.Request.Body, "the same bytes, the id too")

	e.answer = nil // mended
	again, err = Replay(context.Background(), target, conformance.Options{}, r, nil)
	require.NoError(t, err)
	require.False(t, again[0].Same)
	require.Contains(t, again[0].After.Response.Body.Text, `"success":true`)
}

// TestReplaySendsTheSecretsAgain: the report holds placeholders for them.
func TestReplaySendsTheSecretsAgain(t *testing.T) {
	e := newSmall()
	var got string
	e.answer = func(method string, _ int, body []byte) string {
		got = string(body)
		return ""
	}
	x := conformance.Exchange{RPC: "test_connection", Request: wire.Message{Method: "POST", Body: wire.Body{Text: `{"jsonrpc":"2.0","method":"test_connection","params":{"t":"$DESTKIT_TOKEN"},"id":"1"}`}}}
	r := &conformance.Report{Checks: []conformance.CheckResult{{ID: "AAA-001", Findings: []conformance.Finding{{Exchanges: []conformance.Exchange{x}}}}}}
	again, err := Replay(context.Background(), Target{Handler: e, Token: "the-token-of-the-tests"}, conformance.Options{}, r, nil)
	require.NoError(t, err)
	require.Contains(t, got, `"t":"the-token-of-the-tests"`)
	require.NotContains(t, encoded(again), "the-token-of-the-tests")
}

func TestReplaySkips(t *testing.T) {
	text := `{"jsonrpc":"2.0","method":"sync_batch","params":{},"id":"1"}`
	cases := []struct {
		name  string
		x     conformance.Exchange
		write bool
		want  string // "" when it is sent
	}{
		{"a write", conformance.Exchange{RPC: "sync_batch", Request: wire.Message{Body: wire.Body{Text: text}}}, false, "add --write"},
		{"a permitted write of no records", conformance.Exchange{RPC: "sync_batch", Request: wire.Message{Method: "POST", Body: wire.Body{Text: text}}}, true, ""},
		{"a truncated request", conformance.Exchange{RPC: "test_connection", Request: wire.Message{Body: wire.Body{Text: "{", Truncated: true}}}, false, "only the beginning"},
		{"a damaged request", conformance.Exchange{RPC: "test_connection", Request: wire.Message{Body: wire.Body{Base64: "*"}}}, false, "is damaged"},
		{"bytes that no check sends", conformance.Exchange{RPC: "test_connection", Request: wire.Message{Method: "POST", Body: wire.Body{Base64: base64.StdEncoding.EncodeToString([]byte("\xff"))}}}, false, "none that this program sends"},
		{"a body in Base64", conformance.Exchange{RPC: "test_connection", Request: wire.Message{Method: "POST", Body: wire.Body{Base64: base64.StdEncoding.EncodeToString([]byte(`{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"1"}`))}}}, false, ""},
		{"a body that is no call", conformance.Exchange{Request: wire.Message{Method: "POST", Body: wire.Body{Text: `{"jsonrpc":"2.0","method":"test_connection","params":{`}}}, false, ""},
		{"an unknown method", conformance.Exchange{Request: wire.Message{Method: "POST", Body: wire.Body{Text: `{"jsonrpc":"2.0","method":"zz_no_such_method","params":{},"id":"1"}`}}}, false, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := newSmall()
			arrived := 0
			e.answer = func(string, int, []byte) string { arrived++; return "" }
			r := &conformance.Report{Checks: []conformance.CheckResult{{ID: "AAA-001", Findings: []conformance.Finding{{Exchanges: []conformance.Exchange{c.x}}}}}}
			again, err := Replay(context.Background(), Target{Handler: e}, conformance.Options{Write: c.write, Objects: []string{"contact"}}, r, nil)
			require.NoError(t, err)
			require.Len(t, again, 1)
			if c.want != "" {
				require.Contains(t, again[0].Skipped, c.want)
				require.Zero(t, arrived)
				require.Empty(t, e.calls[rpc.MethodSyncBatch])
				return
			}
			require.Empty(t, again[0].Skipped)
			require.NotNil(t, again[0].After.Response)
		})
	}
}

func TestReplayMistakes(t *testing.T) {
	r := &conformance.Report{Checks: []conformance.CheckResult{{ID: "AAA-001"}}}
	_, err := Replay(context.Background(), Target{Handler: newSmall()}, conformance.Options{}, r, []string{"AAA-001"})
	requireUsage(t, err, "no finding of AAA-001")
	_, err = Replay(context.Background(), Target{Handler: newSmall()}, conformance.Options{}, r, []string{"NOP-001"})
	requireUsage(t, err, "no finding of NOP-001")
	_, err = Replay(context.Background(), Target{Handler: newSmall()}, conformance.Options{}, r, nil)
	requireUsage(t, err, "no finding to replay")
}
