package destsim

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// newSim makes a simulator that is closed with the test.
func newSim(t testing.TB, config Config) *Sim {
	t.Helper()
	s, err := New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// post sends a body to the endpoint.
func post(h http.Handler, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// invoke makes one call and gives the raw reply.
func invoke(h http.Handler, method, params string) string {
	return post(h, string(rpc.EncodeRequest(nil, method, []byte(params), "id-1"))).Body.String()
}

// planOf makes the params of a sync_batch over the catalogue of the simulator.
func planOf(s *Sim, object, operation, active string, records ...string) string {
	fields := map[string]rpc.SchemaField{}
	o := s.catalogue.Load().byName[object]
	for _, record := range records {
		var r map[string]json.RawMessage
		if json.Unmarshal([]byte(record), &r) != nil {
			continue
		}
		for name := range r {
			f := rpc.Field{APIName: name, Label: name, Type: rpc.TypeString}
			if have := o.byName[name]; have != nil {
				f = have.Field
			}
			fields[name] = rpc.SchemaField{Field: f}
		}
	}
	id := rpc.SchemaField{ActiveIdentifier: true, Field: rpc.Field{APIName: active}}
	if f := o.byName[active]; f != nil {
		id.Field = f.Field
	}
	fields[active] = id
	plan, _ := json.Marshal(rpc.SyncPlan{Object: o.Ref(), Operation: operation, SyncRunID: 1, SyncID: 2, Schema: fields})
	return `{"sync_plan":` + string(plan) + `,"records":[` + strings.Join(records, ",") + `]}`
}

// write sends a batch by the first identifier and gives one word per record:
// "ok" or the message.
func write(t testing.TB, s *Sim, object, operation string, records ...string) []string {
	t.Helper()
	active := ""
	for _, f := range s.catalogue.Load().byName[object].fields {
		if f.Identifier {
			active = f.APIName
			break
		}
	}
	return words(t, invoke(s, rpc.MethodSyncBatch, planOf(s, object, operation, active, records...)))
}

func words(t testing.TB, reply string) []string {
	t.Helper()
	result, rpcErr, err := rpc.DecodeResponse([]byte(reply), "id-1")
	require.NoError(t, err, reply)
	if rpcErr != nil {
		return []string{rpcErr.Error()}
	}
	out := []string{}
	require.NoError(t, rpc.ScanResults(result, func(_ []byte, success bool, message []byte) error {
		word := rawjson.MessageText(message)
		if success && word == "" {
			word = "ok"
		}
		out = append(out, word)
		return nil
	}))
	return out
}

// stored reads a record back by a field; "" when it is absent, with the count
// in front when it is not 1.
func stored(t testing.TB, s *Sim, object, field, identifier string) string {
	t.Helper()
	body := fmt.Sprintf(`{"object":%q,"identifier_field":%q,"identifiers":[%s]}`, object, field, identifier)
	w := control(s, http.MethodPost, "/_control/readback", body)
	require.Equal(t, 200, w.Code, w.Body.String())
	var reply readbackReply
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
	require.True(t, reply.Complete)
	if len(reply.Records) == 0 {
		return ""
	}
	if n := reply.Records[0].Count; n != 1 {
		return fmt.Sprintf("%d×%s", n, reply.Records[0].Fields)
	}
	return string(reply.Records[0].Fields)
}

func TestHeadersAndCodings(t *testing.T) {
	s := newSim(t, Config{Compress: "auto", Headers: map[string]string{"X-Region": "north"}, RateLimit: -1})
	call := `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"a"}`
	plain := post(s, call)
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	require.Empty(t, plain.Header().Get("X-RateLimit-Limit"))
	require.Equal(t, "north", plain.Header().Get("X-Region"))
	for offer, coding := range map[string]string{
		"gzip;q=1.0,deflate;q=0.6,identity;q=0.3": "gzip", "deflate": "deflate", "gzip;q=0.1, deflate;q=0.9": "deflate",
		"br": "", "gzip;q=0": "", "identity": "",
	} {
		w := post(s, call, "Accept-Encoding", offer)
		require.Equal(t, coding, w.Header().Get("Content-Encoding"), offer)
		var body io.Reader = w.Body
		var err error
		switch coding {
		case "gzip":
			body, err = gzip.NewReader(body)
		case "deflate":
			body, err = zlib.NewReader(body)
		}
		require.NoError(t, err)
		got, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, plain.Body.String(), string(got))
	}
}

// TestLongestBody: with a length and without one.
func TestLongestBody(t *testing.T) {
	_, address := serve(t, Config{MaxBody: 1000})
	for _, body := range []io.Reader{bytes.NewReader(make([]byte, 1001)), struct{ io.Reader }{bytes.NewReader(make([]byte, 1001))}} {
		resp, err := http.Post("http://"+address, "application/json", body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 413, resp.StatusCode)
	}
}

// TestAuth: requests that the AUTH cells of the matrices do not send.
func TestAuth(t *testing.T) {
	one := 1
	call := `{"jsonrpc":"2.0","method":"sync_batch","params":{},"id":"a"}`
	for name, c := range map[string]struct {
		config  Config
		url     string
		headers []string
		allowed bool
	}{
		"right token":     {Config{Token: "s3cret"}, "/", []string{"Bearer s3cret"}, true},
		"truncated":       {Config{Token: "s3cret"}, "/", []string{"Bearer s3cre"}, false},
		"basic":           {Config{Token: "s3cret"}, "/", []string{"Basic s3cret"}, false},
		"empty":           {Config{Token: "s3cret"}, "/", []string{"Bearer "}, false},
		"twice":           {Config{Token: "s3cret"}, "/", []string{"Bearer s3cret", "Bearer s3cret"}, false},
		"none asked":      {Config{}, "/", []string{"Bearer x"}, true},
		"query":           {Config{URLSecret: URLSecret{Query: "key", Value: "a b"}}, "/?key=a%20b", nil, true},
		"path":            {Config{URLSecret: URLSecret{Path: &one, Value: "a/b"}}, "/hook/a%2Fb/x", nil, true},
		"path too short":  {Config{URLSecret: URLSecret{Path: &one, Value: "ab"}}, "/hook", nil, false},
		"query and token": {Config{Token: "t", URLSecret: URLSecret{Query: "key", Value: "ab"}}, "/?key=ab", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, c.url, strings.NewReader(call))
			r.Header["Authorization"] = c.headers
			w := httptest.NewRecorder()
			newSim(t, c.config).ServeHTTP(w, r)
			if c.allowed {
				require.Equal(t, 200, w.Code)
				require.Contains(t, w.Body.String(), "-32602")
				return
			}
			require.Equal(t, 401, w.Code)
			require.Equal(t, `Bearer realm="destination"`, w.Header().Get("WWW-Authenticate"))
			require.Equal(t, `{"jsonrpc":"2.0","id":"a","error":{"code":-32001,"message":"authentication failed: the token or the URL is not valid"}}`, w.Body.String())
		})
	}
}

func TestEnforcedLimits(t *testing.T) {
	batch := func(s *Sim, n int) *httptest.ResponseRecorder {
		records := make([]string, n)
		for i := range records {
			records[i] = fmt.Sprintf(`{"email":"%d","last_name":"x"}`, i)
		}
		return post(s, string(rpc.EncodeRequest(nil, "sync_batch", []byte(planOf(s, "contact", "upsert", "email", records...)), "id-1")))
	}
	config := Config{Speed: rpc.Speed{MaximumBatchSize: 3, MaximumRecordsPerSecond: 4}, RateLimit: 4}
	declared := newSim(t, config)
	require.Equal(t, 200, batch(declared, 9).Code, "declared limits are not enforced by default")

	config.EnforceLimits = true
	s := newSim(t, config)
	require.Equal(t, 413, batch(s, 4).Code)
	require.Equal(t, 200, batch(s, 3).Code)
	second := batch(s, 3)
	require.Equal(t, 429, second.Code)
	require.Equal(t, "1", second.Header().Get("Retry-After"))
	require.Empty(t, stored(t, s, "contact", "email", `"3"`))
	require.Equal(t, 200, post(s, `{}`).Code)
	require.Equal(t, 429, post(s, `{}`).Code, "the fifth request of a second")
}
