package destsim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// TestViolationList: the first way has the bare id, and no way is left out; the kill
// matrix covers the rest.
func TestViolationList(t *testing.T) {
	form, ways := regexp.MustCompile(`^([A-Z]+-\d{3})(?:\.(\d))?$`), map[string]int{}
	for _, v := range Violations() { // sorted
		m := form.FindStringSubmatch(v.ID)
		require.NotNil(t, m, v.ID)
		ways[m[1]]++
		require.Equal(t, map[bool]string{true: "", false: fmt.Sprint(ways[m[1]])}[ways[m[1]] == 1], m[2], v.ID)
		for _, also := range v.Also {
			require.NotEqual(t, m[1], also.ID, v.ID)
		}
	}
	require.NotEmpty(t, ways)
	raw, err := json.Marshal(Violations()[0])
	require.NoError(t, err)
	require.Regexp(t, `^\{"id":"[^"]+","changes":"[^"]+","also":\[`, string(raw))
}

// everySeam passes through every seam without a change.
func everySeam() seams {
	return seams{
		http:     func(*call) bool { return false },
		auth:     func(_ *call, allowed bool) bool { return allowed },
		parsed:   func(*call) {},
		plan:     func(_ *call, v any) any { return v },
		accept:   func(_ *call, _ *plan, err *rpc.Error) *rpc.Error { return err },
		batch:    func(*call, *batch) {},
		apply:    func(_ *call, r *record, next next) result { return next(r) },
		value:    func(*call, *record, *cell) {},
		cells:    func(*call, *record) {},
		rows:     func(_ *call, _ *record, rows store.Rows) store.Rows { return rows },
		results:  func(_ *call, rs []result) []result { return rs },
		answered: func(*call) {},
		envelope: func(*call, *envelope) {},
		reply:    func(_ *call, b []byte) []byte { return b },
		write:    func(*call, *httpReply) {},
		restart:  func(*Sim) {},
	}
}

// TestSeamsLeaveNoByteDifferent plays the same calls through a simulator
// without seams and one that passes through all of them.
func TestSeamsLeaveNoByteDifferent(t *testing.T) {
	plain, seamed := newSim(t, Config{Token: "t"}), newSim(t, Config{Token: "t"})
	seamed.chain().add(everySeam())
	bodies := []string{
		``, `{}`, `[]`, `{"jsonrpc":"2.0","id":"a","method":"x<>&` + "\u2028" + `"}`, `{"jsonrpc":"2.0","id":5,"method":"list_objects"}`,
		`{"jsonrpc":"2.0","id":null,"method":"get_sync_speed"}`, `{"jsonrpc":"2.0","method":"test_connection","params":[]}`,
	}
	add := func(method, params string) {
		bodies = append(bodies, string(rpc.EncodeRequest(nil, method, []byte(params), "ID \"é\" 😀")))
	}
	for _, m := range rpc.Methods() {
		add(m, `{}`)
		add(m, `{"object":{"object_api_name":"contact","label":"Contact"}}`)
	}
	for _, op := range []string{"insert", "update", "upsert", "delete", "mirror", "append"} {
		add("sync_batch", planOf(plain, "contact", op, "email", `{"email":"\u00e9","last_name":"x","age":1}`, `{"email":"b"}`, `{}`, `{"email":null}`))
		add("sync_batch", planOf(plain, "order", op, "order_id", `{"order_id":1,"order_number":"x","nope":1}`, `{"order_id":1,"order_number":"x"}`))
		add("sync_batch", planOf(plain, "event", op, "event_id", `{"event_id":"1","new_`+op+`":"<v>"}`))
	}
	for _, body := range bodies {
		for _, token := range []string{"Bearer t", "Bearer x"} {
			a, b := post(plain, body, "Authorization", token), post(seamed, body, "Authorization", token)
			require.Equal(t, a.Code, b.Code)
			require.Equal(t, a.Header(), b.Header())
			require.Equal(t, a.Body.String(), b.Body.String())
		}
	}
}

// serve runs a simulator behind a real server.
func serve(t *testing.T, config Config) (*Sim, string) {
	t.Helper()
	sim := newSim(t, config)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return sim, strings.TrimPrefix(server.URL, "http://")
}

const testCall = `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"a"}`

// TestWhatIsLateIsWrittenBeforeTheEnd: a violation that writes later loses nothing.
func TestWhatIsLateIsWrittenBeforeTheEnd(t *testing.T) {
	s := newSim(t, Config{Violate: []string{"DUR-001"}, Delays: Delays{Write: time.Hour}})
	write(t, s, "contact", "upsert", contacts(0, lateBatch)...)
	require.Empty(t, stored(t, s, "contact", "email", `"n7"`))
	s.end()
	s.deferred.Wait()
	require.Equal(t, `{"email":"n7","last_name":"x"}`, stored(t, s, "contact", "email", `"n7"`))
}

// These tests say what the kill matrix of the judge does not see of a violation.

// TestAHangingCallEndsWithItsCaller: RPC-010 gives no answer at all, and holds
// nothing once the caller has gone.
func TestAHangingCallEndsWithItsCaller(t *testing.T) {
	s := newSim(t, Config{Violate: []string{"RPC-010"}, Delays: Delays{Hang: time.Hour}})
	server := httptest.NewServer(s)
	defer server.Close() // waits for the call
	client := &http.Client{Timeout: 50 * time.Millisecond}
	_, err := client.Post(server.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0",`))
	require.ErrorContains(t, err, "Client.Timeout exceeded")
}

// TestProcessComesBack: it is gone for Delays.Down and no longer.
func TestProcessComesBack(t *testing.T) {
	var now atomic.Int64
	now.Store(int64(time.Hour))
	_, address := serve(t, Config{
		Clock: func() time.Time { return time.Unix(0, now.Load()) }, Delays: Delays{Down: 700 * time.Millisecond}, Violate: []string{"ERR-006"},
	})
	there := func() bool {
		_, _, err := httpCall(t, "http://"+address, rpc.MethodTestConnection, `{}`)
		return err == nil
	}
	require.True(t, there())
	_, err := http.Post("http://"+address, "application/json", strings.NewReader("zz not json"))
	require.Error(t, err)
	require.False(t, there())
	now.Add(int64(699 * time.Millisecond))
	require.False(t, there())
	now.Add(int64(time.Millisecond))
	require.True(t, there())
}

// sendBatch makes a call on a separate connection and closes it, after 40
// bytes of the reply when it is cut.
func sendBatch(t *testing.T, address, params string, cut bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	body := requestBody(rpc.MethodSyncBatch, params, "id-1")
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	require.NoError(t, err)
	if cut {
		_, err = io.ReadFull(conn, make([]byte, 40))
		require.NoError(t, err)
		return ""
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(got)
}

// TestTakenBackRecordsStandAsBefore: earlier records have their old content
// again, and new ones only their identifier.
func TestTakenBackRecordsStandAsBefore(t *testing.T) {
	sim, address := serve(t, Config{Violate: []string{"DUR-004"}})
	write(t, sim, "contact", "upsert", person("n19", "before"))
	params := planOf(sim, "contact", "upsert", "email", contacts(0, 20)...)
	sendBatch(t, address, params, true)
	sendBatch(t, address, params, false)
	require.Equal(t, person("n19", "before"), stored(t, sim, "contact", "email", `"n19"`))
	require.Equal(t, `{"email":"n18"}`, stored(t, sim, "contact", "email", `"n18"`))
}

// contacts are n records of contacts numbered from first.
func contacts(first, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"email":"n%d","last_name":"x"}`, first+i)
	}
	return list
}

// person is a contact.
func person(email, name string) string {
	return fmt.Sprintf(`{"email":%q,"last_name":%q}`, email, name)
}

// TestAPlainPortLetsNoOneWait: a silent client keeps no one from being
// served, and holds nothing once the listener is closed.
func TestAPlainPortLetsNoOneWait(t *testing.T) {
	certificates, _ := newTestCertificates(t)
	config, err := certificates.TLSConfig("")
	require.NoError(t, err)
	s := newSim(t, Config{})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := TLSListener(inner, config, true)
	server := &http.Server{Handler: s}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	silent, err := net.Dial("tcp", inner.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	_, body, err := httpCall(t, "http://"+inner.Addr().String(), rpc.MethodTestConnection, `{}`)
	require.NoError(t, err)
	require.Contains(t, body, `"result":{"success":true}`)
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-done, http.ErrServerClosed)
	_, err = silent.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = listener.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestCompressedRepliesAreBrokenToo: the lengths are those of the sent bytes.
func TestCompressedRepliesAreBrokenToo(t *testing.T) {
	ask := func(violate ...string) (*http.Response, string, error) {
		_, address := serve(t, Config{Compress: "gzip", Violate: violate})
		return httpCall(t, "http://"+address, rpc.MethodGetSyncSpeed, `{}`, "Accept-Encoding", "gzip")
	}
	resp, clean, err := ask()
	require.NoError(t, err)
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	resp, long, err := ask("HTTP-006")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, clean, long)
	require.EqualValues(t, len(clean)+16, resp.ContentLength)
	resp, half, err := ask("HTTP-006.2")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, clean[:len(clean)/2], half)
	require.EqualValues(t, len(clean), resp.ContentLength)
}

// TestOnlyAListAfterAListIsCut walks one connection by hand (HTTP-008).
func TestOnlyAListAfterAListIsCut(t *testing.T) {
	s := newSim(t, Config{Violate: []string{"HTTP-008"}})
	server := httptest.NewServer(s)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	ask := func(method string) error {
		method, form, _ := strings.Cut(method, " ")
		r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(requestBody(method, "{}", "a1")))
		require.NoError(t, err)
		if form == "chunked" {
			r.ContentLength = -1
		}
		require.NoError(t, r.Write(conn))
		resp, err := http.ReadResponse(reader, r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), `"result":{`)
		require.False(t, resp.Close, "nothing is announced")
		require.NotEmpty(t, resp.Header.Get("Date"))
		require.Equal(t, "100000", resp.Header.Get("X-RateLimit-Limit"))
		return nil
	}
	for _, method := range []string{"get_sync_speed", "list_objects", "test_connection", "list_objects", "get_sync_speed", "list_objects", "list_objects chunked", "list_objects"} {
		require.NoError(t, ask(method), method)
	}
	require.ErrorIs(t, ask("list_objects"), io.ErrUnexpectedEOF)
}
