package server

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
)

// hostile is a world whose destination misbehaves while armed.
type hostile struct {
	said sayings // the service's log
	*syncWorld
	armed   atomic.Bool
	onSpeed atomic.Pointer[func()] // runs once, before the next get_sync_speed
}

// misbehave answers one call instead of the simulator: id is that of the call,
// pass lets the simulator answer first and gives its reply.
type misbehave func(w http.ResponseWriter, r *http.Request, id string, pass func() []byte)

// newHostile makes the world; the calls of a method are answered by bad.
func newHostile(t testing.TB, timeout time.Duration, method string, bad misbehave, change ...func(*Config)) *hostile {
	t.Helper()
	h := &hostile{}
	w := newWorld(t, append(change, func(c *Config) { c.CallTimeout, c.Log = timeout, slog.New(slog.NewTextHandler(&h.said, nil)) })...)
	sim := must(destsim.New(destsim.Config{Preset: "crm", Token: "destination-token"}))(t)
	w.sim = sim
	w.dest = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var call struct{ ID, Method string }
		_ = json.Unmarshal(body, &call)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if change := h.onSpeed.Load(); change != nil && call.Method == "get_sync_speed" {
			h.onSpeed.Store(nil)
			(*change)()
		}
		if bad == nil || !h.armed.Load() || call.Method != method {
			sim.ServeHTTP(rw, r)
			return
		}
		bad(rw, r, call.ID, func() []byte {
			return serve(sim, r).Body.Bytes()
		})
	}))
	t.Cleanup(func() { w.dest.CloseClientConnections(); w.dest.Close(); sim.Close() })
	h.syncWorld = &syncWorld{w, w.newSource(), w.newDestination()}
	h.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace'), (3, 'alan@example.com', 'Alan')`)
	return h
}

// says answers a status and a body in which %s is the id.
func says(status int, body string) misbehave {
	return func(w http.ResponseWriter, _ *http.Request, id string, _ func() []byte) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "%s", id))
	}
}

// over lets the simulator answer and changes its reply.
func over(change func(reply []byte) []byte) misbehave {
	return func(w http.ResponseWriter, _ *http.Request, _ string, pass func() []byte) {
		_, _ = w.Write(change(pass()))
	}
}

func results(change func(list []any) []any) misbehave {
	return over(func(reply []byte) []byte {
		var whole map[string]any
		if json.Unmarshal(reply, &whole) != nil {
			return reply
		}
		result := whole["result"].(map[string]any)
		result["record_results"] = change(result["record_results"].([]any))
		text, _ := json.Marshal(whole)
		return text
	})
}

// bomb is a small reply that becomes 20 MB.
var bomb = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.CopyN(w, zeros{}, 20<<20)
	_ = w.Close()
	return packed.Bytes()
})

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// with are changes of a sync: extra mappings in addition to those of syncBody.
func with(extra ...any) func(*hostile) map[string]any {
	return func(h *hostile) map[string]any {
		return map[string]any{"mappings": append(syncBody(h.source, h.dest1())["mappings"].([]any), extra...)}
	}
}

func from(typ string, data any, to string) map[string]any {
	return map[string]any{"from": map[string]any{"type": typ, "data": data}, "to": to}
}

// deals is a sync into an object whose fields have other types than text.
func deals(h *hostile) map[string]any {
	id := from("column", "id", "deal_id")
	id["is_primary_identifier"] = true
	return map[string]any{
		"destination_attributes": map[string]any{"connection_id": h.dest1(), "object": "deal"},
		"mappings":               []any{id, from("column", "email", "stage"), from("column", "name", "amount")},
	}
}

func mirror(more map[string]any) func(*hostile) map[string]any {
	return func(*hostile) map[string]any {
		out := map[string]any{"operation": "mirror"}
		maps.Copy(out, more)
		return out
	}
}

// dest1 is the id of the destination.
func (h *hostile) dest1() int64 { return h.dest }

// stores demands that some record of an object holds a text.
func stores(object, text string) func(*hostile) {
	return func(h *hostile) {
		h.t.Helper()
		list, _ := h.records(object)
		for _, record := range list {
			if strings.Contains(string(record.Fields), text) {
				return
			}
		}
		require.Fail(h.t, "nothing like it is stored", "%.200q", list)
	}
}

// badRows are sources that change, fail, or hold what cannot be sent.
func badRows() []outcome {
	const loop = `{% for i in (1..100000000) %}{% for j in (1..100000000) %}{% endfor %}{% endfor %}`
	refresh := func(h *hostile, _ int64) {
		h.do("POST", fmt.Sprintf("/destinations/%d/refresh_objects", h.dest1()), h.key, nil).want(200)
		h.control("POST", "/settle", nil).want(200)
	}
	return []outcome{
		{what: "the primary identifier is NULL", sql: `UPDATE customers SET email = NULL WHERE id = 2`},
		{what: "the primary identifier stands twice", sql: `UPDATE customers SET email = 'ada@example.com' WHERE id = 2`},
		{what: "a template that never ends", sync: with(from("liquid_template", loop, "first_name"))},
		{what: "a template that divides by zero in one row", sync: with(from("liquid_template", `{{ 10 | divided_by: record['age'] }}`, "first_name")),
			sql: `UPDATE customers SET age = id - 1`},
		{what: "a text where a date is wanted", sync: with(from("column", "name", "birthday")), sql: `UPDATE customers SET name = '2020-02-30' WHERE id = 1; UPDATE customers SET name = '2020-02-28' WHERE id > 1`},
		{what: "a number where a boolean is wanted", sync: with(from("column", "age", "opted_in")), sql: `UPDATE customers SET age = id - 1`},
		{what: "an integer beyond 2^53", sync: deals, sql: `UPDATE customers SET id = 9007199254740993, name = '12345678901234567890.123456789' WHERE id = 1; UPDATE customers SET name = '1' WHERE id < 10`,
			check: func(h *hostile) {
				stores("deal", `9007199254740993`)(h)
				stores("deal", `12345678901234567890.123456789`)(h)
			}},
		{what: "a text where a decimal is wanted", sync: deals, sql: `UPDATE customers SET name = '1' WHERE id < 3`},
		{what: "a text that is no UTF-8", sql: `UPDATE customers SET name = CAST(x'41FF42' AS TEXT) WHERE id = 2`},
		{what: "a text with a NUL", sql: `UPDATE customers SET name = 'A' || char(0) || 'B' WHERE id = 2`, check: stores("person", `A\u0000B`)},
		{what: "a row of 15 MB", sql: `UPDATE customers SET name = hex(zeroblob(7500000)) WHERE id = 2`,
			check: stores("person", strings.Repeat("0", 15_000_000))},
		{what: "a column is gone", first: true, sql: `ALTER TABLE customers DROP COLUMN name`, heal: `ALTER TABLE customers ADD COLUMN name TEXT; UPDATE customers SET name = 'again'`},
		{what: "the table is gone", first: true, sql: `ALTER TABLE customers RENAME TO clients`, heal: `ALTER TABLE clients RENAME TO customers`},
		{what: "the table goes between planning and reading", do: func(h *hostile, _ int64) {
			change := func() { h.changeSource(`ALTER TABLE customers RENAME TO clients`) }
			h.onSpeed.Store(&change)
		}, method: "get_sync_speed", heal: `ALTER TABLE clients RENAME TO customers`},
		{what: "a column goes between planning and reading", do: func(h *hostile, _ int64) {
			change := func() { h.changeSource(`ALTER TABLE customers RENAME COLUMN name TO title`) }
			h.onSpeed.Store(&change)
		}, method: "get_sync_speed", heal: `ALTER TABLE customers RENAME COLUMN title TO name`},
		{what: "a mirror whose source is empty", first: true, sync: mirror(nil), sql: `DELETE FROM customers`, heal: `INSERT INTO customers (id, email, name) VALUES (9, 'ada@example.com', 'Ada')`},
		{what: "a mirror whose source has invalid rows only", first: true, sync: mirror(nil), sql: `UPDATE customers SET email = NULL`, heal: `UPDATE customers SET email = 'ada@example.com' WHERE id = 1`},
		{what: "a mirror whose source is empty, with allow_empty_source", first: true, sql: `DELETE FROM customers`,
			sync: mirror(map[string]any{"advanced_configuration": map[string]any{"allow_empty_source": true}})},
		{what: "the destination no longer has the object", first: true, method: "list_objects", do: refresh,
			bad: over(func(r []byte) []byte { return bytes.Replace(r, []byte(`"person"`), []byte(`"account"`), 1) })},
		{what: "the destination had lost the object when it was asked last", first: true, method: "list_objects",
			do: func(h *hostile, id int64) {
				refresh(h, id)
				h.control("POST", "/settle", nil).want(200)
				h.armed.Store(false)
			},
			bad: over(func(r []byte) []byte { return bytes.Replace(r, []byte(`"person"`), []byte(`"account"`), 1) })},
		{what: "the destination no longer has a field that may be the identifier", first: true, method: "list_fields", do: refresh,
			bad: over(func(r []byte) []byte {
				return []byte(strings.ReplaceAll(string(r), `"identifier":true`, `"identifier":false`))
			})},
		{what: "the destination cannot be planned any more", first: true, method: "list_objects", do: refresh, bad: says(500, "oops")},
	}
}
