package loadgen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// contactObject has a field of every type and a few more.
func contactObject() records.Object {
	o := records.Object{Object: rpc.Object{APIName: "contact", Label: "Contact"}, Operations: []string{rpc.OperationUpsert}}
	for i, name := range []string{"email", "first_name", "last_name", "age", "score", "balance", "birthday", "seen_at", "active", "city"} {
		types := []string{rpc.TypeString, rpc.TypeString, rpc.TypeString, rpc.TypeInteger, rpc.TypeFloat, rpc.TypeDecimal, rpc.TypeDate, rpc.TypeDateTime, rpc.TypeBoolean, rpc.TypeString}
		o.Fields = append(o.Fields, rpc.Field{
			APIName: name, Label: name, Identifier: i == 0, Required: i == 0, Createable: true, Updateable: true, Type: types[i],
		})
	}
	return o
}

// planned makes the first batch of some work on a made-up object, as a target
// would read it.
func planned(t *testing.T, w Work, change func(*records.Object)) (rpc.Request, *codec.Batch, error) {
	t.Helper()
	o := contactObject()
	o.Operations = []string{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationMirror}
	if change != nil {
		change(&o)
	}
	w.Objects = []Share{{Name: "contact"}}
	if w.BatchSize == 0 {
		w.BatchSize = 3
	}
	d := &targetWords{Objects: map[string]records.Object{"contact": o}, Speed: rpc.Speed{MaximumBatchSize: 100, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1}}
	keys, err := records.NewKeys("", "abc", 0, 0)
	require.NoError(t, err)
	p, err := newPlan(w, d, keys, 7, 1)
	if err != nil {
		return rpc.Request{}, nil, err
	}
	end, err := wire.NewEndpoint(wire.Target{URL: "http://localhost/x?y=z"}, wire.Transport{})
	require.NoError(t, err)
	e := &engine{end: end, plan: p, work: w, connections: 1, quit: make(chan struct{})}
	worker := e.newWorker(0)
	task := p.tasks[0]
	e.pool.known = []written{{task.keyspace, 0}}
	b, _, ok := worker.prepare(task)
	require.True(t, ok)
	require.True(t, strings.HasPrefix(string(b.Wire()), "POST /x?y=z HTTP/1.1\r\nHost: localhost\r\n"))
	require.Contains(t, string(b.Wire()), fmt.Sprintf("Content-Length: %d\r\n\r\n{", len(b.Body())))
	r, err := rpc.DecodeRequest(b.Body())
	require.NoError(t, err)
	require.Len(t, r.ID, 32)
	var batch codec.Batch
	require.NoError(t, codec.DecodeBatch(r.Params, &batch))
	require.Equal(t, "email", batch.Identifier)
	return r, &batch, nil
}

func TestAGeneratedBatch(t *testing.T) {
	_, b, err := planned(t, Work{}, nil)
	require.NoError(t, err)
	require.Equal(t, 3, b.Len())
	for i := range 3 {
		raw, ok := b.Record(i).Field("email")
		require.True(t, ok)
		require.Equal(t, fmt.Sprintf(`"zz-load-abc-%012d"`, i), string(raw))
		require.Equal(t, 10, b.Record(i).Len())
	}
	require.Len(t, b.Plan.Schema, 10)
	require.Equal(t, "upsert", b.Plan.Operation)
}

func TestADeleteHasTheIdentifierOnly(t *testing.T) {
	_, b, err := planned(t, Work{Operations: []Share{{Name: "delete"}}}, nil)
	require.NoError(t, err)
	require.Equal(t, `{"email":"zz-load-abc-000000000001"}`, string(b.Record(1).Raw()))
	require.Equal(t, "delete", b.Plan.Operation)
}

func TestFieldsChooseTheMapping(t *testing.T) {
	_, b, err := planned(t, Work{Fields: []string{"city"}}, func(o *records.Object) { o.Fields[2].Required = true })
	require.NoError(t, err)
	require.Len(t, b.Plan.Schema, 3, "the identifier, what is required, and what was asked for")
	_, b, err = planned(t, Work{Operations: []Share{{Name: "update"}}}, func(o *records.Object) { o.Fields[3].Updateable = false })
	require.NoError(t, err)
	require.NotContains(t, b.Plan.Schema, "age")
}

func TestRecordsFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) *Data {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return &Data{Path: path}
	}
	csv := write("a.csv", "email,first_name,age,balance,active,shoe\nann@x,007,31,12.50,true,40\nbob@x,Bob,,7,false,41\n")
	require.NoError(t, csv.load(context.Background()))
	_, b, err := planned(t, Work{Data: csv}, nil)
	require.NoError(t, err)
	require.Equal(t, `{"email":"zz-load-abc-000000000000","first_name":"007","age":31,"balance":"12.5`, string(b.Record(0).Raw())[:len(`{"email":"zz-load-abc-000000000000","first_name":"007","age":31,"balance":"12.5`)])
	require.Equal(t, `{"email":"zz-load-abc-000000000002","first_name":"007"`, string(b.Record(2).Raw())[:len(`{"email":"zz-load-abc-000000000002","first_name":"007"`)], "the file begins again")
	require.NotContains(t, string(b.Record(0).Raw()), "shoe", "the object has no such field")
	require.Len(t, b.Plan.Schema, 5)

	csv.OwnKeys = true
	_, b, err = planned(t, Work{Data: csv, BatchSize: 2}, nil)
	require.NoError(t, err)
	raw, _ := b.Record(1).Field("email")
	require.Equal(t, `"bob@x"`, string(raw))

	lines := write("b.jsonl", `{"email":"x","score":1.5}`+"\n"+`{"email":"y","score":2}`+"\n")
	require.NoError(t, lines.load(context.Background()))
	_, b, err = planned(t, Work{Data: lines}, nil)
	require.NoError(t, err)
	require.Equal(t, `{"email":"zz-load-abc-000000000001","score":2}`, string(b.Record(1).Raw()))

	for text, words := range map[string]string{
		"email,age\na,1\nb\n":             "line 3",
		"email,age\na,\"1\nb,2\n":         "line",
		"":                                "the file is empty",
		"email,email\na,b\n":              "both named",
		"email,age\n":                     "there is no record in it",
		"first_name,last_name\nAnn,Bee\n": "",
	} {
		bad := write("bad.csv", text)
		err := bad.load(context.Background())
		if words == "" {
			require.NoError(t, err)
			bad.OwnKeys = true
			_, _, err = planned(t, Work{Data: bad}, nil)
			words = "no column for email"
		}
		var usage *wire.UsageError
		require.ErrorAs(t, err, &usage, text)
		require.Contains(t, usage.Message, words)
	}
	bad := write("bad.jsonl", "{\"email\":\"a\"}\n{\"email\":\n")
	require.ErrorContains(t, bad.load(context.Background()), "line 2")
	require.ErrorContains(t, write("a.xml", "x").load(context.Background()), "end in .csv, .jsonl or .parquet")
	require.Error(t, (&Data{Path: filepath.Join(dir, "none.csv")}).load(context.Background()))
}

func TestTemplates(t *testing.T) {
	_, b, err := planned(t, Work{Template: []byte(`{"age":"{{int 5 5}}","city":"in {{pick Rome}}, {{hex 4}}","score":2.5,"active":"{{bool}}","balance":"{{float 1 1}}","last_name":null}`)}, nil)
	require.NoError(t, err)
	for name, want := range map[string]string{"age": "5", "score": "2.5", "balance": `"1.0000"`, "last_name": "null"} {
		raw, ok := b.Record(0).Field(name)
		require.True(t, ok, name)
		require.Equal(t, want, string(raw))
	}
	raw, _ := b.Record(0).Field("city")
	require.Regexp(t, `^"in Rome, [0-9a-f]{4}"$`, string(raw))
	raw, _ = b.Record(0).Field("active")
	require.Regexp(t, `^(true|false)$`, string(raw))
	for text, words := range map[string]string{
		`[]`:                        "one JSON object",
		`null`:                      "it is null",
		`{"age":`:                   "near byte",
		`{"shoe":1}`:                `no field "shoe"`,
		`{"email":"me"}`:            `must be "{{key}}"`,
		`{"age":"{{int 9 1}}"}`:     "two whole numbers",
		`{"age":"{{number}}"}`:      "is no placeholder",
		`{"age":"{{int 1 2"}`:       "never closed",
		`{"score":"{{float a b}}"}`: "two numbers",
		`{"city":"{{hex 0}}"}`:      "from 1 to 256",
	} {
		_, _, err := planned(t, Work{Template: []byte(text)}, nil)
		require.ErrorContains(t, err, words, text)
	}
	_, _, err = planned(t, Work{Template: []byte(`{"age":1}`)}, func(o *records.Object) { o.Fields[2].Required = true })
	require.ErrorContains(t, err, `"last_name" is required`)
}

// TestTheSameSeedSendsTheSame compares what two runs store.
func TestTheSameSeedSendsTheSame(t *testing.T) {
	var first []byte
	for range 2 {
		url := simulator(t, destsim.Config{})
		o := against(url)
		o.Connections = 1
		_, err := Run(context.Background(), o)
		require.NoError(t, err)
		text := recordsOf(t, url)
		if first == nil {
			first = text
		}
		require.Equal(t, string(first), string(text))
	}
	require.Contains(t, string(first), "zz-load-")
}

// recordsOf reads what a simulator has stored.
func recordsOf(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url + "_control/records?object=contact&limit=1000")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode, string(text))
	return text
}

// One connection at work alone must not send the same few records for ever.
func TestAConnectionGoesOnThroughThePool(t *testing.T) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	sent := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(body, []byte(`"method":"`+rpc.MethodSyncBatch)) {
			_, record, _ := bytes.Cut(body, []byte(`"records":[`))
			_, values, _ := bytes.Cut(record, []byte(",")) // without the key, which is always new
			values, _, _ = bytes.Cut(values, []byte(`]},"id"`))
			sent[string(values)] = true
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sim.ServeHTTP(w, r)
	}))
	defer server.Close()
	o := against(server.URL + "/")
	o.Connections, o.Work.BatchSize, o.Count = 1, 1, 400
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Errors)
	require.Greater(t, len(sent), 50, "8 prepared batches, and another record in every eighth")
}
