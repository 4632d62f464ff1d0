package zoo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/server"
)

// trafficFound is how many mistakes the syncs of this file show at least, as docs/proxy.md states.
const trafficFound = 38

// TestMatrixTraffic lets the reference service sync into every endpoint of the zoo through the
// proxy, and judges the traffic: it finds visible mistakes, and does not blame right habits.
func TestMatrixTraffic(t *testing.T) {
	matrixtest.NotEveryDay(t)
	habits, all := habitCells(t), alternating(Mistakes())
	runs := mistakeCells(t, all)
	var (
		mu            sync.Mutex
		seen, decided []string
	)
	t.Run("of", func(t *testing.T) {
		for _, language := range Languages() {
			t.Run("base/"+language, func(t *testing.T) {
				t.Parallel()
				r := syncsInto(t, language, "none", "none", Setting{})
				require.Empty(t, failed(r, append(broken, conformance.Warn)...), explain(r, append(broken, conformance.Warn)...))
				require.Greater(t, r.Counts[conformance.Pass], 50, r.Summary)
			})
		}
		for i, h := range Habits() {
			if !habits[i] {
				continue
			}
			t.Run("habit/"+h.Language+"/"+h.Name, func(t *testing.T) {
				t.Parallel()
				r := syncsInto(t, h.Language, h.Name, h.Name, h.Setting)
				require.Empty(t, failed(r, broken...), explain(r, broken...))
			})
		}
		for i, m := range all {
			if !runs[i] || slices.Contains(singleRecords, m.Name) {
				continue
			}
			t.Run("mistake/"+m.Language+"/"+m.Name, func(t *testing.T) {
				t.Parallel()
				r := syncsInto(t, m.Language, m.Name, "none", m.Setting)
				for _, id := range failed(r, conformance.Fail) {
					require.False(t, matches(m.Never, id), "%s has nothing to do with it: %s\n%s", id, m.Sentence, explain(r, broken...))
				}
				o := found(r, m)
				t.Logf("%s; FAIL %v WARN %v: %s", o, failed(r, broken...), failed(r, conformance.Warn), m.Sentence)
				mu.Lock()
				defer mu.Unlock()
				if slices.ContainsFunc(rules.Decided(), func(id string) bool { return matches(m.Finds, id) }) {
					decided = append(decided, keyOf(m.Language, m.Name))
				}
				if o.status != "" {
					seen = append(seen, keyOf(m.Language, m.Name))
				}
			})
		}
	})
	if !matrixtest.Whole() || matrixtest.Named() {
		return
	}
	t.Logf("%d mistakes, %d of them against a rule that traffic can show, %d shown by these syncs", len(Mistakes()), len(decided), len(seen))
	for _, name := range decided {
		if !slices.Contains(seen, name) {
			t.Logf("not shown: %s", name)
		}
	}
	require.GreaterOrEqual(t, len(seen), trafficFound)
}

// singleRecords are mistakes that cost these syncs a minute: every batch is sent again as
// single records.
var singleRecords = []string{"mutable-default", "status-422-with-results", "batch-number-for-id", "connection-not-returned"}

// kinds are the operations that the syncs have, each with a table for itself.
var kinds = []string{"upsert", "mirror", "insert", "update"}

// rows is how many each table has: a batch that no endpoint answers well is cut down to
// single records, within the rate that is declared.
const rows = 40

// stand is a service with a source, a destination behind a proxy, and syncs.
type stand struct {
	t    *testing.T
	root string
	key  string
}

// call makes a call of the service; out may be nil. Status is that of the answer.
func (s *stand) call(method, path string, in, out any) int {
	s.t.Helper()
	body, err := json.Marshal(in)
	require.NoError(s.t, err)
	req, err := http.NewRequest(method, s.root+path, bytes.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		why, _ := io.ReadAll(resp.Body)
		s.t.Logf("%s %s: %d %.400s", method, path, resp.StatusCode, why)
		return resp.StatusCode
	}
	if out != nil {
		envelope := struct {
			Data any `json:"data"`
		}{out}
		require.NoError(s.t, json.NewDecoder(resp.Body).Decode(&envelope))
	}
	return resp.StatusCode
}

func (s *stand) must(method, path string, in, out any) {
	s.t.Helper()
	status := s.call(method, path, in, out)
	require.Less(s.t, status, 300, "%s %s", method, path)
}

// settle runs what falls due in the next hours: retries and backoffs.
func (s *stand) settle() { s.must("POST", "/_control/clock", map[string]string{"advance": "3h"}, nil) }

// syncsInto runs syncs of every kind into an endpoint of the zoo, through a proxy, and
// gives what its judge has found. The fields are those of the endpoint called like.
func syncsInto(t *testing.T, language, name, like string, set Setting) *conformance.Report {
	t.Helper()
	base := baseURL(t, language)
	if set.Own {
		base = ownURL(t, language, set.Restarts)
	}
	object := Objects(language)[0]
	if len(set.Objects) > 0 {
		object = set.Objects[0]
	}
	fields := fieldsOf(t, language, like, object)
	passive, caller, address, stop := proxied(t, base+"/m/"+name+"/traffic/rpc")
	if language == Postgres {
		t.Cleanup(func() { closed(t, base+"/m/"+name+"/traffic/close") })
	}

	svc, err := server.New(context.Background(), server.Config{CallTimeout: 3 * time.Second, BatchTimeout: 5 * time.Second})
	require.NoError(t, err)
	defer svc.Close()
	port := httptest.NewServer(svc)
	defer port.Close()
	s := &stand{t: t, root: port.URL, key: svc.FirstTokens().WorkspaceAPIKey}
	var made struct {
		ID int64 `json:"id"`
	}
	s.must("POST", "/api/v1/sources", map[string]any{"connection": map[string]any{"name": "Warehouse", "type": "snowflake", "credentials": map[string]string{
		"account": "a", "warehouse": "w", "database": "D", "user": "u", "password": "p",
	}}}, &made)
	source := made.ID
	execute := func(sql string) {
		s.must("POST", fmt.Sprintf("/_control/sources/%d/execute", source), map[string]string{"sql": sql}, nil)
	}
	for _, kind := range kinds {
		execute(tableOf(kind, fields))
		for from := 1; from <= rows; from += 10 { // the length of a statement is bounded
			execute(rowsOf(kind, fields, set, from, from+9))
		}
	}
	if s.call("POST", "/api/v1/destinations", map[string]any{"service_connection": map[string]any{
		"name": "Endpoint", "type": "custom_api", "credentials": map[string]any{"api_version": 1, "webhook_url": address + "/", "auth_token": token},
	}}, &made) < 300 {
		destination := made.ID
		for range 2 {
			s.call("POST", fmt.Sprintf("/api/v1/destinations/%d/refresh_objects", destination), map[string]any{}, nil)
		}
		var syncs []int64
		for _, kind := range kinds {
			var sync struct {
				ID int64 `json:"sync_id"`
			}
			if s.call("POST", "/api/v1/syncs", syncOf(kind, object, source, destination, fields), &sync) < 300 {
				syncs = append(syncs, sync.ID)
			}
		}
		trigger := func() {
			for _, id := range syncs {
				s.call("POST", fmt.Sprintf("/api/v1/syncs/%d/trigger", id), map[string]any{}, nil)
				s.settle()
			}
		}
		trigger()
		for _, kind := range kinds {
			if sql := changeOf(kind, fields); sql != "" {
				execute(sql)
			}
			execute(rowsOf(kind, fields, set, 501, 505))
			execute(fmt.Sprintf("DELETE FROM %s_ROWS WHERE N BETWEEN 10 AND 14", kind))
		}
		trigger()
	}
	require.NoError(t, svc.Close())
	stop()
	shown := caller.Report()
	require.Empty(t, failed(shown, broken...), "the caller breaks no rule because the endpoint does: %s", explain(shown, broken...))
	return passive.Report()
}

// proxied is a proxy with both judges in front of an endpoint.
func proxied(t *testing.T, endpoint string) (passive *destination.Passive, caller *service.Caller, address string, stop func()) {
	t.Helper()
	var err error
	passive, err = destination.NewPassive(destination.Target{URL: endpoint}, conformance.Options{})
	require.NoError(t, err)
	caller, err = service.NewCaller(endpoint, passive.Secrets(), conformance.Options{})
	require.NoError(t, err)
	recorder, err := proxy.NewRecorder(proxy.RecorderConfig{Passive: passive, Caller: caller})
	require.NoError(t, err)
	p, err := proxy.New(proxy.Config{To: endpoint, Observer: recorder, Secrets: passive.Secrets()})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- p.Serve(context.Background(), ln) }()
	var once sync.Once
	stop = func() { once.Do(func() { ln.Close(); require.NoError(t, <-served); p.Close() }) }
	t.Cleanup(stop)
	return passive, caller, "http://" + ln.Addr().String(), stop
}

// fieldsOf are the fields of an object that a sync may write.
func fieldsOf(t *testing.T, language, name, object string) []rpc.Field {
	t.Helper()
	client := &rpc.Client{URL: baseURL(t, language) + "/m/" + name + "/traffic/rpc", Token: token}
	fields, err := client.ListFields(t.Context(), rpc.ObjectRef{APIName: object, Label: object})
	require.NoError(t, err)
	return slices.DeleteFunc(fields, func(f rpc.Field) bool { return !f.Createable && !f.Updateable })
}

func column(f rpc.Field) string {
	return "F_" + strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToUpper(r)
		}
		return '_'
	}, f.APIName)
}

var sqlTypes = map[string]string{
	"string": "TEXT", "integer": "INTEGER", "decimal": "DECIMAL(12,2)", "float": "FLOAT", "boolean": "BOOLEAN", "date": "DATE", "date_time": "DATETIME",
}

func tableOf(table string, fields []rpc.Field) string {
	columns := []string{"N INTEGER PRIMARY KEY"}
	for _, f := range fields {
		kind := sqlTypes[f.Type]
		if f.Array {
			kind = "TEXT" // arrays are JSON there
		}
		columns = append(columns, column(f)+" "+kind)
	}
	return fmt.Sprintf("CREATE TABLE %s_ROWS (%s)", table, strings.Join(columns, ", "))
}

// rowsOf inserts rows; every ninth lacks a required value, and its record must fail.
func rowsOf(table string, fields []rpc.Field, set Setting, from, to int) string {
	var all []string
	for n := from; n <= to; n++ {
		values := []string{fmt.Sprint(n)}
		for i, f := range fields {
			values = append(values, valueOf(table, f, set, n, i))
		}
		all = append(all, "("+strings.Join(values, ", ")+")")
	}
	return fmt.Sprintf("INSERT INTO %s_ROWS VALUES %s", table, strings.Join(all, ", "))
}

func valueOf(table string, f rpc.Field, set Setting, n, i int) string {
	number := n*7 + i
	if f.Identifier {
		number = int(max(set.KeyFrom, 1000)) + n + 1000*slices.Index(kinds, table)
	}
	element := func() string {
		switch f.Type {
		case "integer":
			return fmt.Sprint(number)
		case "decimal":
			return fmt.Sprintf("%d.%02d", number, n%100)
		case "float":
			return fmt.Sprintf("%d.5", number)
		case "boolean":
			return fmt.Sprint(n%2 == 0)
		case "date":
			return fmt.Sprintf("2026-03-%02d", 1+n%28)
		case "date_time":
			return fmt.Sprintf("2026-03-%02dT10:00:%02dZ", 1+n%28, n%60)
		}
		if f.Identifier && set.KeyTemplate != "" {
			return strings.NewReplacer("{run}", table, "{check}", "traffic", "{n}", fmt.Sprint(number), "{uuid}", fmt.Sprintf("00000000-0000-4000-8000-%012d", number)).Replace(set.KeyTemplate)
		}
		if f.Identifier {
			return fmt.Sprintf(keyForms[n%len(keyForms)], number)
		}
		return fmt.Sprintf("%s %d: Größe 大 \"%s\"", f.APIName, number, strings.Repeat("text ", 200))
	}
	switch {
	case f.Required && !f.Identifier && n%9 == 0, !f.Required && n%7 == 0:
		return "NULL"
	case f.Array && f.Type == "string":
		return fmt.Sprintf(`'["%s %d", "b"]'`, f.APIName, number)
	case f.Array:
		return fmt.Sprintf(`'[%s, 2]'`, element())
	}
	return "'" + element() + "'"
}

// keyForms are keys as people make them.
var keyForms = []string{"key-%d", "Key-%d", "Straße %d", "a/b %d?", "{%d}", "K%%%d & <co>"}

// changeOf changes some rows in everything but their keys; "" where they have nothing
// else.
func changeOf(table string, fields []rpc.Field) string {
	var set []string
	for i, f := range fields {
		if !f.Identifier {
			set = append(set, column(f)+" = "+valueOf(table, f, Setting{}, 300+i, i))
		}
	}
	if len(set) == 0 {
		return ""
	}
	return fmt.Sprintf("UPDATE %s_ROWS SET %s WHERE N <= 6", table, strings.Join(set, ", "))
}

// syncOf is the body that creates a sync of a table.
func syncOf(operation, object string, source, destination int64, fields []rpc.Field) map[string]any {
	var mappings []map[string]any
	first := true
	for _, f := range fields {
		mappings = append(mappings, map[string]any{
			"from": map[string]any{"type": "column", "data": column(f)}, "to": f.APIName, "is_primary_identifier": f.Identifier && first,
		})
		first = first && !f.Identifier
	}
	return map[string]any{
		"label": operation, "operation": operation, "mappings": mappings,
		"source_attributes": map[string]any{"connection_id": source, "object": map[string]string{
			"type": "table", "table_catalog": "D", "table_schema": "PUBLIC", "table_name": operation + "_ROWS",
		}},
		"destination_attributes": map[string]any{"connection_id": destination, "object": object},
	}
}
