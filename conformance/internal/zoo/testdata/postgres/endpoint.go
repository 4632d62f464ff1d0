package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// endpoint is one destination with its own schema in the database.
type endpoint struct {
	names  []string
	token  string
	tables []*table
	speed  map[string]int
	pool   *pool

	looking sync.Mutex
	look    *pool // the read-back has its own connection, whatever the others do

	mu       sync.Mutex
	failures int       // in a row, for the circuit breaker
	opened   time.Time // when it opened
}

func newEndpoint(token, dsn, schema string, names []string) (*endpoint, error) {
	e := &endpoint{
		names: names, token: token, tables: tables(),
		speed: map[string]int{"maximum_batch_size": 200, "maximum_parallel_batches": 4, "maximum_records_per_second": 20_000},
	}
	size := 4
	for _, name := range names {
		if habit := habits[name]; habit != nil {
			habit(e)
		}
	}
	if e.habit("pool-of-one") {
		size = 1
	}
	var err error
	if e.pool, err = newPool(dsn, schema, size); err != nil {
		return nil, err
	}
	if e.look, err = newPool(dsn, schema, 1); err != nil {
		return nil, err
	}
	if e.wrong("connection-not-returned") {
		e.pool.wait = 30 * time.Millisecond
	}
	return e, e.create(context.Background(), schema)
}

func (e *endpoint) wrong(name string) bool { return slices.Contains(e.names, name) }

func (e *endpoint) habit(name string) bool { return slices.Contains(e.names, name) }

// record is one of a batch, with its result.
type record struct {
	values map[string]any
	why    string // the reason of a failure
}

// plan is what a batch does.
type plan struct {
	table     *table
	operation string
	key       string
}

func (e *endpoint) plan(params json.RawMessage) (p plan, records []*record, err error) {
	var in struct {
		Plan    json.RawMessage `json:"sync_plan"`
		Records []any           `json:"records"`
	}
	var inPlan struct {
		Operation string `json:"operation"`
		Schema    map[string]struct {
			Active bool `json:"active_identifier"`
		} `json:"schema"`
	}
	d := json.NewDecoder(bytes.NewReader(params))
	d.UseNumber()
	if err := d.Decode(&in); err != nil || in.Records == nil {
		return p, nil, badParams("params are not those of a batch")
	}
	if err := json.Unmarshal(in.Plan, &inPlan); err != nil {
		return p, nil, badParams("sync_plan: %v", err)
	}
	if p.table, err = e.table(in.Plan); err != nil {
		return p, nil, err
	}
	p.operation = inPlan.Operation
	offered := slices.Contains(p.table.operations, p.operation) && p.operation != "mirror"
	if !offered && p.operation != "delete" {
		return p, nil, badParams("operation %q is not supported", p.operation)
	}
	for name, s := range inPlan.Schema {
		if f := p.table.field(name); s.Active && f != nil && f.Identifier {
			p.key = name
		}
	}
	if p.key == "" {
		return p, nil, badParams("no active identifier")
	}
	for _, v := range in.Records {
		values, _ := v.(map[string]any)
		records = append(records, &record{values: values})
	}
	return p, records, nil
}

func (e *endpoint) syncBatch(ctx context.Context, params json.RawMessage) (any, error) {
	p, records, err := e.plan(params)
	if err != nil {
		return nil, err
	}
	if e.broken() {
		for _, r := range records {
			r.why = "circuit breaker is open, try again later"
		}
	} else if err := e.write(context.WithoutCancel(ctx), p, records); err != nil {
		return nil, err
	}
	results := []map[string]any{}
	for _, r := range records {
		result := map[string]any{"identifier": r.values[p.key], "success": r.why == ""}
		if r.why != "" {
			result["error_message"] = r.why
		}
		results = append(results, result)
		e.count(r.why != "")
	}
	return map[string]any{"record_results": results}, nil
}

// broken reports whether the circuit breaker is open.
func (e *endpoint) broken() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wrong("circuit-breaker") && time.Since(e.opened) < 500*time.Millisecond
}

// count opens the circuit breaker after three failures in a row.
func (e *endpoint) count(failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !failed {
		e.failures = 0
		return
	}
	if e.failures++; e.failures == 3 {
		e.failures, e.opened = 0, time.Now()
	}
}

func (e *endpoint) readback(ctx context.Context, body []byte) (any, error) {
	var q struct {
		Object      string `json:"object"`
		Field       string `json:"identifier_field"`
		Identifiers []any  `json:"identifiers"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&q); err != nil {
		return nil, err
	}
	t := e.tables[slices.IndexFunc(e.tables, func(t *table) bool { return t.name == q.Object })]
	var columns []string
	for _, f := range t.fields {
		columns = append(columns, shown(f))
	}
	e.looking.Lock()
	defer e.looking.Unlock()
	ctx = context.WithoutCancel(ctx)
	c, err := e.look.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer e.look.release(c)
	records := []map[string]any{}
	for _, id := range q.Identifiers {
		text := fmt.Sprint(id)
		if strings.ContainsRune(text, 0) {
			continue // cannot be stored
		}
		rows, err := c.Query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s = $1", strings.Join(columns, ", "), t.name, q.Field), text)
		if err != nil {
			continue // cannot be a key
		}
		var fields map[string]any
		n := 0
		for rows.Next() {
			texts, at := make([]*string, len(columns)), make([]any, len(columns))
			for i := range texts {
				at[i] = &texts[i]
			}
			if err := rows.Scan(at...); err != nil {
				rows.Close()
				return nil, err
			}
			fields = map[string]any{}
			for i, f := range t.fields {
				fields[f.Name] = decoded(f, texts[i])
			}
			n++
		}
		if rows.Err() == nil && n > 0 {
			records = append(records, map[string]any{"identifier": id, "count": n, "fields": fields})
		}
	}
	return map[string]any{"records": records, "complete": true}, nil
}
