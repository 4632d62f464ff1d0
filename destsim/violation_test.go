package destsim

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// TestViolationList: ids are well formed, the first way has the bare id, no
// way is left out, and at most four other checks are named, each with a reason.
func TestViolationList(t *testing.T) {
	list := Violations()
	require.NotEmpty(t, list)
	form := regexp.MustCompile(`^([A-Z]+-\d{3})(?:\.(\d))?$`)
	seen := map[string]bool{}
	for _, v := range list {
		m := form.FindStringSubmatch(v.ID)
		require.NotNil(t, m, v.ID)
		require.False(t, seen[v.ID], "%s stands twice", v.ID)
		seen[v.ID] = true
		require.NotEmpty(t, v.Changes, v.ID)
		require.LessOrEqual(t, len(v.Also), 4, v.ID)
		for _, also := range v.Also {
			require.Regexp(t, `^[A-Z]+-\d{3}$`, also.ID, v.ID)
			require.NotEqual(t, m[1], also.ID, v.ID)
			require.NotEmpty(t, also.Why, v.ID)
		}
	}
	for id := range seen {
		if m := form.FindStringSubmatch(id); m[2] != "" {
			before := m[1]
			if m[2] != "2" {
				before += "." + string(m[2][0]-1)
			}
			require.True(t, seen[before], "%s without %s", id, before)
		}
	}
	raw, err := json.Marshal(list[0])
	require.NoError(t, err)
	require.Regexp(t, `^\{"id":"[^"]+","changes":"[^"]+","also":\[`, string(raw))
}

// everySeam passes through every seam without a change.
func everySeam() seams {
	return seams{
		http:     func(*call) bool { return false },
		raw:      func(_ *call, b []byte) []byte { return b },
		auth:     func(_ *call, allowed bool) bool { return allowed },
		parsed:   func(*call) {},
		plan:     func(_ *call, v any) any { return v },
		accept:   func(_ *call, _ *plan, err *rpc.Error) *rpc.Error { return err },
		batch:    func(*call, *batch) *rpc.Error { return nil },
		apply:    func(_ *call, r *record, next next) result { return next(r) },
		value:    func(*call, *record, *cell) {},
		cells:    func(*call, *record) {},
		table:    func(_ *call, name string) string { return name },
		rows:     func(_ *call, _ *record, rows store.Rows) store.Rows { return rows },
		results:  func(_ *call, rs []result) []result { return rs },
		answered: func(*call) {},
		result:   func(_ *call, raw []byte) []byte { return raw },
		failure:  func(_ *call, e any) any { return e },
		envelope: func(*call, *envelope) {},
		reply:    func(_ *call, b []byte) []byte { return b },
		write:    func(*call, *httpReply) {},
		restart:  func(*Sim) {},
		wide:     true,
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

// serve runs a simulator with seams behind a real server.
func serve(t *testing.T, config Config, s seams) (*Sim, string) {
	t.Helper()
	sim := newSim(t, config)
	sim.chain().add(s)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return sim, strings.TrimPrefix(server.URL, "http://")
}

const testCall = `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"a"}`

// exchange sends one call over its own connection and gives all that came.
func exchange(t *testing.T, conn net.Conn, body string) string {
	t.Helper()
	_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	require.NoError(t, err)
	got, _ := io.ReadAll(conn)
	return string(got)
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestBrokenReplies(t *testing.T) {
	const body = `{"jsonrpc":"2.0","id":"a","result":{"success":true}}`
	for name, c := range map[string]struct {
		change func(h *httpReply)
		want   []string
	}{
		"length":  {func(h *httpReply) { h.length = len(h.body) + 10 }, []string{"HTTP/1.1 200 OK\r\n", "Content-Length: 62\r\n", "Connection: close", "\r\n\r\n" + body}},
		"cut":     {func(h *httpReply) { h.cut = 5 }, []string{"Content-Length: 52\r\n", "\r\n\r\n" + `{"jso`}},
		"no body": {func(h *httpReply) { h.cut = -1 }, []string{"Content-Length: 52\r\n", "\r\n\r\n"}},
		"raw":     {func(h *httpReply) { h.raw = []byte("garbage") }, []string{"garbage"}},
		"gzip":    {func(h *httpReply) { h.set("Content-Encoding", "gzip"); h.swallow = true }, []string{"Content-Encoding: gzip", body}},
		"status":  {func(h *httpReply) { h.status, h.body, h.cut = 202, nil, -1 }, []string{"HTTP/1.1 202 Accepted", "Content-Length: 0"}},
		"reset":   {func(h *httpReply) { h.reset, h.cut = true, 5 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serve(t, Config{}, seams{write: func(_ *call, h *httpReply) { c.change(h) }})
			conn := dial(t, address)
			if name == "gzip" { // the next call is swallowed: half of it is enough
				_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 65\r\n\r\n"+testCall)
				require.NoError(t, err)
				reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				require.False(t, reply.Close, "not announced")
				got, err := io.ReadAll(reply.Body)
				require.NoError(t, err)
				require.Equal(t, body, string(got))
				require.Empty(t, exchange(t, conn, testCall))
				return
			}
			got := exchange(t, conn, testCall)
			for _, want := range c.want {
				require.Contains(t, got, want)
			}
			if name == "cut" || name == "raw" {
				require.True(t, strings.HasSuffix(got, c.want[len(c.want)-1]))
			}
		})
	}
}

func TestSlowReplies(t *testing.T) {
	for name, change := range map[string]func(h *httpReply){
		"chunked": func(h *httpReply) { h.chunked = true },
		"stall":   func(h *httpReply) { h.stall, h.stallAt = time.Millisecond, 7 },
		"drip":    func(h *httpReply) { h.drip, h.dripBy = time.Microsecond, 9 },
	} {
		_, address := serve(t, Config{}, seams{write: func(_ *call, h *httpReply) { change(h) }})
		for range 2 {
			resp, err := http.Post("http://"+address, "application/json", strings.NewReader(testCall))
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Contains(t, string(got), `"success":true`)
			require.Equal(t, name == "chunked", len(resp.TransferEncoding) > 0)
		}
	}
}

// TestNoAnswer: the three ways to end a call without one, from two seams.
func TestNoAnswer(t *testing.T) {
	for name, end := range map[string]func(c *call){"hang": (*call).hang, "cut": (*call).cut, "reset": (*call).reset} {
		for _, s := range []seams{
			{http: func(c *call) bool { end(c); return true }},
			{parsed: func(c *call) { end(c) }},
		} {
			_, address := serve(t, Config{Delays: Delays{Hang: time.Millisecond}}, s)
			require.Empty(t, exchange(t, dial(t, address), testCall), name)
		}
	}
}

// TestHangEndsWithTheClient: nothing waits for a client that has gone.
func TestHangEndsWithTheClient(t *testing.T) {
	ended := make(chan struct{})
	_, address := serve(t, Config{Delays: Delays{Hang: time.Hour}}, seams{http: func(c *call) bool {
		defer close(ended)
		c.hang()
		return true
	}})
	conn := dial(t, address)
	_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 65\r\n\r\n"+testCall)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	<-ended
}

func TestSeamsChangeOnePlace(t *testing.T) {
	batchOf := func(s *Sim, operation string, records ...string) string {
		return invoke(s, "sync_batch", planOf(s, "contact", operation, "email", records...))
	}
	a := `{"email":"A","last_name":"x"}`
	for name, c := range map[string]struct {
		seams seams
		check func(t *testing.T, s *Sim)
	}{
		"GET executes": {seams{http: func(c *call) bool {
			if m := c.r.URL.Query().Get("method"); m != "" {
				c.verb, c.body = "POST", rpc.EncodeRequest(nil, m, nil, "get")
			}
			return false
		}}, func(t *testing.T, s *Sim) {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("GET", "/?method=test_connection", nil))
			require.Equal(t, `{"jsonrpc":"2.0","id":"get","result":{"success":true}}`, w.Body.String())
		}},
		"decode error answered": {seams{parsed: func(c *call) {
			if c.err != nil {
				c.answer(connectionResult{Success: true})
			}
		}}, func(t *testing.T, s *Sim) {
			require.Equal(t, `{"jsonrpc":"2.0","id":null,"result":{"success":true}}`, post(s, `{`).Body.String())
		}},
		"method rewritten": {seams{parsed: func(c *call) { c.method = strings.ToLower(c.method) }}, func(t *testing.T, s *Sim) {
			require.Contains(t, invoke(s, "Test_Connection", `{}`), `"success":true`)
			require.Contains(t, invoke(s, "SYNC_BATCH", planOf(s, "contact", "upsert", "email", a)), `"success":true`)
		}},
		"wrong types": {seams{plan: func(_ *call, v any) any {
			if _, ok := v.(rpc.Speed); ok {
				m := tree(v).(map[string]any)
				m["maximum_batch_size"] = "100"
				return m
			}
			return v
		}}, func(t *testing.T, s *Sim) {
			require.Contains(t, invoke(s, "get_sync_speed", `{}`), `"maximum_batch_size":"100"`)
		}},
		"not advertised, done as upsert": {seams{accept: func(_ *call, p *plan, err *rpc.Error) *rpc.Error {
			if p.operation == "append" {
				p.operation = "upsert"
				return nil
			}
			return err
		}}, func(t *testing.T, s *Sim) {
			require.Contains(t, batchOf(s, "append", a), `"success":true`)
			require.NotEmpty(t, stored(t, s, "contact", "email", `"A"`))
			require.Contains(t, batchOf(s, "mirror", a), `-32602`)
		}},
		"any field as identifier": {seams{accept: func(_ *call, p *plan, _ *rpc.Error) *rpc.Error {
			return nil
		}}, func(t *testing.T, s *Sim) {
			params := planOf(s, "contact", "upsert", "last_name", a, `{"email":"B","last_name":"x"}`)
			require.Equal(t, []string{"ok", "ok"}, words(t, invoke(s, "sync_batch", params)))
			require.Empty(t, stored(t, s, "contact", "email", `"A"`))
			require.NotEmpty(t, stored(t, s, "contact", "email", `"B"`))
		}},
		"not applied": {seams{apply: func(_ *call, r *record, _ next) result { return r.ok() }}, func(t *testing.T, s *Sim) {
			require.Contains(t, batchOf(s, "upsert", a), `{"identifier":"A","success":true}`)
			require.Empty(t, stored(t, s, "contact", "email", `"A"`))
		}},
		"half the batch": {seams{batch: func(_ *call, b *batch) *rpc.Error { b.to = b.Len() / 2; return nil }}, func(t *testing.T, s *Sim) {
			require.Len(t, words(t, batchOf(s, "upsert", a, a, a, a)), 2)
		}},
		"keys folded": {seams{value: func(_ *call, r *record, cell *cell) {
			if cell.column.Identifier {
				cell.raw = []byte(strings.ToLower(string(cell.raw)))
			}
		}}, func(t *testing.T, s *Sim) {
			require.Contains(t, batchOf(s, "upsert", a), `{"identifier":"A","success":true}`)
			require.Equal(t, `{"email":"a","last_name":"x"}`, stored(t, s, "contact", "email", `"a"`))
		}},
		"value dropped": {seams{value: func(_ *call, _ *record, cell *cell) {
			if cell.column.Type == rpc.TypeInteger {
				cell.raw = nil
			}
		}}, func(t *testing.T, s *Sim) {
			require.Equal(t, []string{"ok"}, write(t, s, "contact", "upsert", `{"email":"A","age":5,"last_name":"x"}`))
			require.Equal(t, a, stored(t, s, "contact", "email", `"A"`))
		}},
		"values swapped": {seams{cells: func(_ *call, r *record) {
			r.cells[0].raw, r.cells[1].raw = r.cells[1].raw, r.cells[0].raw
		}}, func(t *testing.T, s *Sim) {
			require.Equal(t, []string{"ok"}, write(t, s, "contact", "upsert", a))
			require.NotEmpty(t, stored(t, s, "contact", "email", `"x"`))
		}},
		"shared table": {seams{table: func(*call, string) string { return "event" }}, func(t *testing.T, s *Sim) {
			write(t, s, "contact", "upsert", a)
			require.Empty(t, stored(t, s, "contact", "email", `"A"`))
			_, n, err := s.store.Scan("event", 0, 0)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}},
		"deletes all": {seams{wide: true, rows: func(_ *call, _ *record, rows store.Rows) store.Rows { return deleteAll{rows} }}, func(t *testing.T, s *Sim) {
			write(t, s, "contact", "upsert", a, `{"email":"B","last_name":"x"}`)
			require.Equal(t, []string{"ok"}, write(t, s, "contact", "delete", `{"email":"A"}`))
			require.Empty(t, stored(t, s, "contact", "email", `"B"`))
		}},
		"written later": {seams{rows: func(c *call, r *record, rows store.Rows) store.Rows { return laterRows{rows, c.sim, r} }}, func(t *testing.T, s *Sim) {
			require.Equal(t, []string{"ok"}, write(t, s, "contact", "upsert", a))
			require.Empty(t, stored(t, s, "contact", "email", `"A"`))
			s.end() // what is late is written before the end
			s.deferred.Wait()
			require.Equal(t, a, stored(t, s, "contact", "email", `"A"`))
		}},
		"result as raw JSON": {seams{results: func(_ *call, rs []result) []result {
			rs[0].raw = []byte(`{"identifier":1,"success":1}`)
			return rs
		}}, func(t *testing.T, s *Sim) {
			require.Contains(t, batchOf(s, "upsert", a), `"record_results":[{"identifier":1,"success":1}]`)
		}},
		"result as object": {seams{result: func(c *call, raw []byte) []byte {
			if c.method == "sync_batch" {
				return []byte(`{"record_results":{}}`)
			}
			return raw
		}}, func(t *testing.T, s *Sim) {
			require.Contains(t, batchOf(s, "upsert", a), `"result":{"record_results":{}}`)
		}},
		"error becomes success": {seams{answered: func(c *call) {
			if c.err != nil {
				c.answer(map[string]any{"success": false})
			}
		}}, func(t *testing.T, s *Sim) {
			require.Contains(t, invoke(s, "nope", `{}`), `"result":{"success":false}`)
		}},
		"code as string": {seams{failure: func(_ *call, e any) any {
			m := tree(e).(map[string]any)
			m["code"] = "-32601"
			return m
		}}, func(t *testing.T, s *Sim) {
			require.Contains(t, invoke(s, "nope", `{}`), `"error":{"code":"-32601","message":"method not found`)
		}},
		"both keys": {seams{envelope: func(_ *call, e *envelope) {
			if e.get("result") != nil {
				e.add("error", nil)
				e.drop("jsonrpc")
			}
		}}, func(t *testing.T, s *Sim) {
			require.Equal(t, `{"id":"id-1","result":{"success":true},"error":null}`, invoke(s, "test_connection", `{}`))
		}},
		"two objects": {seams{reply: func(_ *call, b []byte) []byte { return append(b, b...) }}, func(t *testing.T, s *Sim) {
			require.Equal(t, 2, strings.Count(invoke(s, "test_connection", `{}`), `"jsonrpc"`))
		}},
		"records lost at restart": {seams{restart: func(s *Sim) { _ = s.store.Drop("") }}, func(t *testing.T, s *Sim) {
			write(t, s, "contact", "upsert", a)
			require.NoError(t, s.Restart())
			require.Empty(t, stored(t, s, "contact", "email", `"A"`))
		}},
		"certificate": {seams{tls: "expired"}, func(t *testing.T, s *Sim) { require.Equal(t, "expired", s.TLS()) }},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Config{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			s.chain().add(c.seams)
			c.check(t, s)
		})
	}
}

type deleteAll struct{ store.Rows }

func (d deleteAll) Remove(*store.Row) error {
	all, err := d.Find(nil, nil)
	for _, r := range all {
		if err = d.Rows.Remove(r); err != nil {
			return err
		}
	}
	return err
}

type laterRows struct {
	store.Rows
	s *Sim
	r *record
}

func (l laterRows) Put(_ *store.Row, data []byte) error {
	l.s.putLater(time.Hour, l.r.object.table, l.r.active.quoted, l.r.key, data)
	return nil
}
