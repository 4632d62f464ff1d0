package server

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTopicMessages(t *testing.T) {
	w := newWorld(t)
	source := w.newTopicSource()
	topic := w.do("POST", fmt.Sprintf("/sources/%d/topics", source), w.key, map[string]any{"name": "t", "sample_message": map[string]any{"n": 1}}).want(201).id("data.id")
	path := fmt.Sprintf("/topics/%d/messages", topic)
	a := w.control("POST", path, `[{"n":1},{"n":12345678901234567890}]`).want(201)
	require.EqualValues(t, 1, a.id("first"))
	require.EqualValues(t, 2, a.id("last"))
	require.EqualValues(t, 4, w.control("POST", path, "{\"n\":3}\n\n{\"n\":4}\n").want(201).id("last"))
	list := w.control("GET", path+"?after=1&limit=2", nil).want(200)
	require.Len(t, list.at("messages"), 2)
	require.Contains(t, string(list.text), "12345678901234567890")
	require.EqualValues(t, 3, list.id("messages.1.number"))
}

func TestExecute(t *testing.T) {
	w := newWorld(t)
	source := w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "W", "type": "snowflake", "credentials": map[string]any{
		"account": "xy12345", "warehouse": "WH", "database": "DEMO", "user": "SYNC", "password": "warehouse-secret",
	}}}).want(201).id("data.id")
	run := func(sql string, code int) *answer {
		return w.control("POST", fmt.Sprintf("/sources/%d/execute", source), map[string]any{"sql": sql}).want(code)
	}
	run("CREATE TABLE EXTRA (A TEXT); INSERT INTO EXTRA VALUES ('x')", 200)
	require.Contains(t, run("INSERT INTO MISSING VALUES (1)", 400).at("message"), "sql:")
	dataset := map[string]any{"name": "Extra", "type": "sql", "source_id": source, "query": "SELECT A FROM EXTRA"}
	w.do("POST", "/datasets", w.key, dataset).want(201)

	file := w.newSource()
	a := w.control("POST", fmt.Sprintf("/sources/%d/execute", file), map[string]any{"sql": "DROP TABLE customers"}).want(400)
	require.Contains(t, a.at("message"), "emulated warehouses only")
}

func TestRecordsOfDestinations(t *testing.T) {
	w := newWorld(t)
	id := w.do("POST", "/destinations", w.key, map[string]any{"service_connection": emulatedConnection}).want(201).id("data.id")
	write(t, w, id, "Contact", `{"Email":"ada@example.com","LastName":"Lovelace"}`)
	a := w.control("GET", fmt.Sprintf("/destinations/%d/records?object=Contact", id), nil).want(200)
	require.EqualValues(t, 1, a.id("total"))
	require.Contains(t, string(a.text), "Lovelace")
	w.control("GET", fmt.Sprintf("/destinations/%d/records?object=Nothing", id), nil).want(400)
	custom := w.newDestination()
	require.Contains(t, w.control("GET", fmt.Sprintf("/destinations/%d/records?object=x", custom), nil).want(400).at("message"), "keeps no records here")
}

// write puts a record into an emulated destination, as a sync would.
func write(t testing.TB, w *world, id int64, object, record string) {
	kept, err := w.s.gate.Store(id, "salesforce")
	require.NoError(t, err)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","method":"sync_batch","id":"1","params":{"sync_plan":{"object":{"object_api_name":%q,"label":"x"},"operation":"upsert","schema":{"Email":{"active_identifier":true,"field":{"field_api_name":"Email","label":"x","type":"string","identifier":true,"required":true,"createable":true,"updateable":true,"array":false}},"LastName":{"active_identifier":false,"field":{"field_api_name":"LastName","label":"x","type":"string","identifier":false,"required":true,"createable":true,"updateable":true,"array":false}}}},"records":[%s]}}`, object, record)
	recorder := httptest.NewRecorder()
	kept.Endpoint.ServeHTTP(recorder, httptest.NewRequest("POST", "/", strings.NewReader(body)))
	require.Equal(t, 200, recorder.Code)
	require.Contains(t, recorder.Body.String(), `"success":true`)
}
