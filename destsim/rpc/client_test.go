package rpc

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
)

// endpoint answers every call with the result that respond gives for it.
func endpoint(t *testing.T, respond func(r Request, h http.Header) (result string)) *httptest.Server {
	return raw(t, func(w http.ResponseWriter, r *http.Request, req Request) {
		_, _ = w.Write(AppendResponse(nil, req.RawID, []byte(respond(req, r.Header))))
	})
}

// raw serves whole replies.
func raw(t *testing.T, serve func(w http.ResponseWriter, r *http.Request, req Request)) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req, decodeErr := DecodeRequest(body)
		if err != nil || decodeErr != nil || r.Method != http.MethodPost || r.ContentLength != int64(len(body)) {
			t.Errorf("bad request %s %q: %v %v", r.Method, body, err, decodeErr)
		}
		serve(w, r, req)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestClientRequest(t *testing.T) {
	var got *http.Request
	var req Request
	s := raw(t, func(w http.ResponseWriter, r *http.Request, call Request) {
		got, req = r, call
		_, _ = w.Write(AppendResponse(nil, call.RawID, []byte(`{"success":true}`)))
	})
	c := &Client{URL: s.URL + "/a%2Fb?key=x%20y&z", Token: "tok", Header: http.Header{
		"user-agent": {"Census https://www.getcensus.com"}, "X-Extra": {"1", "2"},
	}}
	result, err := c.TestConnection(t.Context())
	require.NoError(t, err)
	require.True(t, result.Success)
	require.Equal(t, "/a%2Fb?key=x%20y&z", got.RequestURI, "path and query are kept verbatim")
	require.Equal(t, MethodTestConnection, req.Method)
	require.Equal(t, "{}", string(req.Params))
	require.Regexp(t, `^[0-9a-f]{32}$`, req.ID)
	for name, want := range map[string]string{
		"Authorization": "Bearer tok", "Content-Type": "application/json", "Accept": "*/*", "Connection": "keep-alive",
		"Keep-Alive": "30", "Accept-Encoding": "gzip;q=1.0,deflate;q=0.6,identity;q=0.3", "User-Agent": "Census https://www.getcensus.com",
	} {
		require.Equal(t, want, got.Header.Get(name), name)
	}
	require.Equal(t, []string{"1", "2"}, got.Header["X-Extra"])

	c.Header, c.Token = http.Header{"Host": {"other.example"}}, ""
	_, err = c.TestConnection(t.Context())
	require.NoError(t, err)
	require.Equal(t, "other.example", got.Host)
	require.NotContains(t, got.Header, "Authorization")
}

func TestClientCalls(t *testing.T) {
	sent := map[string]string{}
	s := endpoint(t, func(r Request, _ http.Header) string {
		sent[r.Method] = string(r.Params)
		return map[string]string{
			MethodTestConnection:      `{"success":false,"error_message":{"code":7}}`,
			MethodListObjects:         `{"objects":[{"object_api_name":"a","label":"A","can_create_fields":null},{"object_api_name":"b","label":"B","can_create_fields":"on_write"}]}`,
			MethodListFields:          `{"fields":[{"field_api_name":"id","label":"ID","identifier":true,"required":true,"createable":true,"updateable":true,"type":"integer","array":false}]}`,
			MethodSupportedOperations: `{"operations":["upsert","mirror"]}`,
			MethodGetSyncSpeed:        `{"maximum_batch_size":1000,"maximum_parallel_batches":16,"maximum_records_per_second":1000000}`,
			MethodSyncBatch:           `{"record_results":[{"identifier":9007199254740993,"success":true,"error_message":null},{"identifier":"x","success":false,"error_message":{"a":1}}]}`,
		}[r.Method]
	})
	c, ctx := &Client{URL: s.URL}, t.Context()

	tested, err := c.TestConnection(ctx)
	require.NoError(t, err)
	require.Equal(t, TestResult{ErrorMessage: `{"code":7}`}, tested)
	objects, err := c.ListObjects(ctx)
	require.NoError(t, err)
	require.Equal(t, []Object{{"a", "A", ""}, {"b", "B", CanCreateOnWrite}}, objects)
	fields, err := c.ListFields(ctx, objects[1].Ref())
	require.NoError(t, err)
	require.Equal(t, []Field{{"id", "ID", true, true, true, true, TypeInteger, false}}, fields)
	require.Equal(t, `{"object":{"object_api_name":"b","label":"B"}}`, sent[MethodListFields])
	operations, err := c.SupportedOperations(ctx, objects[0].Ref())
	require.NoError(t, err)
	require.Equal(t, []string{OperationUpsert, OperationMirror}, operations)
	speed, err := c.GetSyncSpeed(ctx)
	require.NoError(t, err)
	require.Equal(t, Speed{1000, 16, 1000000}, speed)
	require.Equal(t, "{}", sent[MethodGetSyncSpeed])

	batch, err := c.SyncBatch(ctx, BatchParams{SyncPlan: SyncPlan{
		Object: objects[0].Ref(), Operation: OperationUpsert, SyncRunID: 602, SyncID: 309,
		Schema: map[string]SchemaField{"id": {ActiveIdentifier: true, Field: fields[0]}},
	}, Records: []Record{{"id": json.RawMessage(`9007199254740993`)}, {"id": json.RawMessage(`"<x>"`)}}})
	require.NoError(t, err)
	require.Equal(t, []RecordResult{
		{Identifier: json.RawMessage(`9007199254740993`), Success: true},
		{Identifier: json.RawMessage(`"x"`), ErrorMessage: `{"a":1}`},
	}, batch.RecordResults)
	require.Equal(t, `{"sync_plan":{"object":{"object_api_name":"a","label":"A"},"operation":"upsert","sync_run_id":602,"sync_id":309,`+
		`"schema":{"id":{"active_identifier":true,"field":{"field_api_name":"id","label":"ID","identifier":true,"required":true,`+
		`"createable":true,"updateable":true,"type":"integer","array":false}}}},"records":[{"id":9007199254740993},{"id":"<x>"}]}`,
		sent[MethodSyncBatch])

	_, err = c.SyncBatch(ctx, BatchParams{})
	require.NoError(t, err)
	require.Contains(t, sent[MethodSyncBatch], `"records":[]`)

	var text json.RawMessage
	require.NoError(t, c.Call(ctx, MethodListObjects, []byte(`{"a":1}`), &text))
	require.Equal(t, `{"a":1}`, sent[MethodListObjects])
	require.Contains(t, string(text), `"objects"`)
	require.NoError(t, c.Call(ctx, MethodListObjects, json.RawMessage(`{"a":2}`), nil))
	require.Equal(t, `{"a":2}`, sent[MethodListObjects])
}

// packed compresses text in one of the ways that a reply may be.
func packed(t *testing.T, way, text string) []byte {
	var buf bytes.Buffer
	var w io.WriteCloser
	var err error
	switch way {
	case "gzip":
		w = gzip.NewWriter(&buf)
	case "zlib":
		w = zlib.NewWriter(&buf)
	case "flate":
		w, err = flate.NewWriter(&buf, flate.BestSpeed)
	default:
		return []byte(text)
	}
	require.NoError(t, err)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func TestClientEncodings(t *testing.T) {
	for _, tc := range []struct{ way, header string }{
		{"gzip", "gzip"}, {"gzip", "X-GZIP"}, {"zlib", "deflate"}, {"flate", "deflate"}, {"", "identity"}, {"", ""},
	} {
		s := raw(t, func(w http.ResponseWriter, _ *http.Request, req Request) {
			if tc.header != "" {
				w.Header().Set("Content-Encoding", tc.header)
			}
			_, _ = w.Write(packed(t, tc.way, string(AppendResponse(nil, req.RawID, []byte(`{"success":true}`)))))
		})
		result, err := (&Client{URL: s.URL}).TestConnection(t.Context())
		require.NoError(t, err, tc)
		require.True(t, result.Success)
	}
}

func TestClientRefusals(t *testing.T) {
	huge := strings.Repeat("x", 5000)
	for name, tc := range map[string]struct {
		serve   func(w http.ResponseWriter, req Request)
		is      error
		as      any
		message string
	}{
		"too large": {serve: func(w http.ResponseWriter, _ Request) { _, _ = w.Write([]byte(huge)) }, is: ErrReplyTooLarge},
		"bomb": {serve: func(w http.ResponseWriter, _ Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed(t, "gzip", huge))
		}, is: ErrReplyTooLarge},
		"not gzip": {serve: func(w http.ResponseWriter, _ Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte(`{"not":"compressed"}`))
		}, is: gzip.ErrHeader},
		"short deflate": {serve: func(w http.ResponseWriter, _ Request) {
			w.Header().Set("Content-Encoding", "deflate")
		}, message: "read deflate head"},
		"unknown encoding": {serve: func(w http.ResponseWriter, _ Request) {
			w.Header().Set("Content-Encoding", "br")
		}, message: `unknown content encoding "br"`},
		"status": {serve: func(w http.ResponseWriter, _ Request) {
			w.WriteHeader(502)
			_, _ = w.Write([]byte("<html>bad gateway"))
		}, as: new(*StatusError), message: "call list_objects: http status 502: <html>bad gateway"},
		"redirect": {serve: func(w http.ResponseWriter, _ Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(307)
		}, as: new(*StatusError)},
		"error with a status": {serve: func(w http.ResponseWriter, req Request) {
			w.WriteHeader(500)
			_, _ = w.Write(AppendError(nil, req.RawID, &Error{Code: -32000, Message: "down"}))
		}, as: new(*Error), message: "call list_objects: rpc error -32000: down"},
		"result with a status": {serve: func(w http.ResponseWriter, req Request) {
			w.WriteHeader(201)
			_, _ = w.Write(AppendResponse(nil, req.RawID, nil))
		}, as: new(*StatusError)},
		"parse error": {serve: func(w http.ResponseWriter, _ Request) {
			_, _ = w.Write(AppendError(nil, nil, &Error{Code: CodeParseError, Message: "x"}))
		}, as: new(*Error)},
		"not json": {serve: func(w http.ResponseWriter, _ Request) { _, _ = w.Write([]byte("hello")) }, as: new(*rawjson.SyntaxError)},
		"other id": {serve: func(w http.ResponseWriter, _ Request) {
			_, _ = w.Write(AppendResponse(nil, []byte(`"x"`), nil))
		}, is: ErrEnvelope},
		"wrong result": {serve: func(w http.ResponseWriter, req Request) {
			_, _ = w.Write(AppendResponse(nil, req.RawID, []byte(`{"objects":5}`)))
		}, message: "call list_objects: decode result: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := raw(t, func(w http.ResponseWriter, _ *http.Request, req Request) { tc.serve(w, req) })
			_, err := (&Client{URL: s.URL, MaxReply: 4000}).ListObjects(t.Context())
			require.Error(t, err)
			require.ErrorContains(t, err, tc.message)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			if tc.as != nil {
				require.ErrorAs(t, err, tc.as)
			}
		})
	}
}

func TestClientWrongRecordResults(t *testing.T) {
	s := endpoint(t, func(Request, http.Header) string { return `{"record_results":{}}` })
	_, err := (&Client{URL: s.URL}).SyncBatch(t.Context(), BatchParams{})
	require.ErrorIs(t, err, ErrResults)
	require.ErrorContains(t, err, "call sync_batch: scan results: ")
}

// TestClientHidesURL: the URL may carry secrets (spec 5.2.3).
func TestClientHidesURL(t *testing.T) {
	s := endpoint(t, func(Request, http.Header) string { return `{}` })
	s.Close()
	for _, url := range []string{s.URL + "/?api_key=SECRET", "http://SECRET\x7f/", "nope://SECRET"} {
		err := (&Client{URL: url}).Call(t.Context(), MethodListObjects, nil, nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "SECRET")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&Client{URL: s.URL}).Call(ctx, MethodListObjects, nil, nil)
	require.ErrorIs(t, err, context.Canceled)
	err = (&Client{URL: s.URL}).Call(t.Context(), MethodListObjects, func() {}, nil)
	require.ErrorContains(t, err, "encode params: ")
}
