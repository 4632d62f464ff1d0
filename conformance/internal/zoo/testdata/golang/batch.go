package golang

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

type plan struct {
	Object struct {
		Name string `json:"object_api_name"`
	} `json:"object"`
	Operation string `json:"operation"`
	Schema    map[string]struct {
		Active bool `json:"active_identifier"`
	} `json:"schema"`
}

// target is what a batch is about.
type target struct {
	table     *table
	operation string
	active    field
}

// result of one record. The second form is that of an author who leaves out
// what is empty.
type result struct {
	Identifier any    `json:"identifier"`
	Success    bool   `json:"success"`
	Message    string `json:"error_message,omitempty"`
}

type sparseResult struct {
	Identifier any    `json:"identifier,omitempty"`
	Success    bool   `json:"success,omitempty"`
	Message    string `json:"error_message,omitempty"`
}

func (e *endpoint) targetOf(p plan) (target, error) {
	t := e.table(p.Object.Name)
	if t == nil {
		return target{}, badParams("there is no object %q", p.Object.Name)
	}
	deletes := p.Operation == "delete" && slices.Contains(t.Operations, "mirror")
	if !deletes && (p.Operation == "mirror" || !slices.Contains(t.Operations, p.Operation)) {
		return target{}, badParams("%s does not allow %s", t.Name, p.Operation)
	}
	for name, s := range p.Schema {
		if f, ok := t.field(name); ok && s.Active && f.Identifier {
			return target{t, p.Operation, f}, nil
		}
	}
	return target{}, badParams("the plan has no identifier that the object allows")
}

func (e *endpoint) syncBatch(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Plan    *plan `json:"sync_plan"`
		Records []row `json:"records"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(params)))
	if !e.wrong("numbers-as-float64") {
		decoder.UseNumber()
	}
	if err := decoder.Decode(&p); err != nil || p.Plan == nil || p.Records == nil {
		return nil, badParams("sync_plan and records are needed")
	}
	to, err := e.targetOf(*p.Plan)
	if err != nil {
		return nil, err
	}
	if e.wrong("database-is-locked") {
		if !e.busy.TryLock() {
			return nil, &rpcError{-32000, "database is locked"}
		}
		defer e.busy.Unlock()
		time.Sleep(2 * time.Millisecond) // the transaction takes its time
	}
	results, err := e.carryOut(ctx, to, p.Records)
	if err != nil {
		return nil, err
	}
	if e.wrong("empty-fields-left-out") {
		sparse := []sparseResult{}
		for _, r := range results {
			sparse = append(sparse, sparseResult(r))
		}
		return map[string]any{"record_results": sparse}, nil
	}
	if results == nil && !e.wrong("nil-slice-for-no-results") {
		results = []result{}
	}
	return map[string]any{"record_results": e.finish(results)}, nil
}

func (e *endpoint) carryOut(ctx context.Context, to target, records []row) ([]result, error) {
	if e.wrong("written-after-the-request") {
		var results []result
		for _, r := range records {
			results = append(results, e.answered(to, r, nil))
		}
		go e.writeInBackground(ctx, to, records)
		return results, nil
	}
	if e.wrong("shared-result-buffer") {
		return e.intoBuffer(to, records), nil
	}
	var results []result
	for i, r := range records {
		if e.wrong("first-hundred-written") && i >= 100 {
			// The system behind takes a hundred at a time.
			results = append(results, e.answered(to, r, e.complaint(to, r)))
			continue
		}
		err := e.one(to, r)
		if err != nil && e.wrong("first-error-ends-the-batch") && !errors.Is(err, errSkip) {
			return nil, &rpcError{-32000, err.Error()}
		}
		if err != nil && e.wrong("conflict-ends-the-batch") && to.operation == "insert" && errors.Is(err, errSkip) {
			return nil, &rpcError{-32000, "duplicate key value violates unique constraint"}
		}
		results = append(results, e.answered(to, r, err))
	}
	if e.wrong("chunk-fails-together") {
		failTogether(results)
	}
	return results, nil
}

// failTogether gives the records of a chunk of five the status of the chunk.
func failTogether(results []result) {
	for from := 0; from < len(results); from += 5 {
		chunk := results[from:min(from+5, len(results))]
		for _, r := range chunk {
			if !r.Success {
				for i := range chunk {
					chunk[i].Success, chunk[i].Message = false, r.Message
				}
				break
			}
		}
	}
}

func (e *endpoint) one(to target, r row) error {
	if err := e.complaint(to, r); err != nil {
		return err
	}
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	return e.store.write(to.table, to.operation, to.active, r)
}

// writeInBackground stops when the request is over, since its context is.
func (e *endpoint) writeInBackground(ctx context.Context, to target, records []row) {
	for _, r := range records {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
			_ = e.one(to, r)
		}
	}
}

// intoBuffer uses one slice for the results of every batch.
func (e *endpoint) intoBuffer(to target, records []row) []result {
	e.bufferMu.Lock()
	e.buffer = e.buffer[:0]
	e.bufferMu.Unlock()
	for _, r := range records {
		answered := e.answered(to, r, e.one(to, r))
		time.Sleep(50 * time.Microsecond)
		e.bufferMu.Lock()
		e.buffer = append(e.buffer, answered)
		e.bufferMu.Unlock()
	}
	e.bufferMu.Lock()
	defer e.bufferMu.Unlock()
	return slices.Clone(e.buffer)
}

// complaint says why a record cannot be written, whatever is stored.
func (e *endpoint) complaint(to target, r row) error {
	id := r[to.active.Name]
	if id == nil {
		return fmt.Errorf("%s is missing", to.active.Name)
	}
	if why := unfit(to.active, id); why != "" {
		return errors.New(why)
	}
	if to.operation == "delete" {
		return nil
	}
	for name, v := range r {
		f, ok := to.table.field(name)
		if !ok {
			return fmt.Errorf("there is no field %s", name)
		}
		if why := unfit(f, v); why != "" {
			return errors.New(why)
		}
		if err := e.refuse(to, f, v); err != nil {
			return err
		}
	}
	return nil
}

func (e *endpoint) answered(to target, r row, err error) result {
	id := r[to.active.Name]
	if e.wrong("result-of-the-first-identifier") {
		for _, f := range to.table.Fields {
			if f.Identifier {
				id = r[f.Name]
				break
			}
		}
	}
	if n, ok := id.(json.Number); ok && e.wrong("keys-printed-with-sprint") {
		number, _ := n.Float64()
		id = fmt.Sprint(number)
	}
	if err != nil {
		return result{id, false, err.Error()}
	}
	return result{Identifier: id, Success: true}
}
