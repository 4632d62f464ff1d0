package golang

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
)

type row map[string]any

// store keeps rows in memory and finds them by each of their identifiers.
type store struct {
	e    *endpoint
	mu   sync.Mutex
	rows map[string]map[string][]row // by object, by identifier field and value
}

func newStore(e *endpoint) *store {
	return &store{e: e, rows: map[string]map[string][]row{}}
}

// slot is where a row is found by one of its identifiers.
func (s *store) slot(name string, value any) string {
	text := fmt.Sprintf("%T %v", value, value)
	if s.e.wrong("keys-compared-by-fold") {
		text = strings.ToLower(text)
	}
	if s.e.wrong("keys-unescaped-in-urls") {
		// The system behind has a resource for each record: PUT /accounts/KEY.
		if u, err := url.Parse("http://backend/" + text); err == nil {
			text = u.Path
		}
	}
	return name + "\x00" + text
}

func (s *store) find(t *table, name string, value any) []row {
	return s.rows[t.Name][s.slot(name, value)]
}

func (s *store) add(t *table, r row) {
	if s.rows[t.Name] == nil {
		s.rows[t.Name] = map[string][]row{}
	}
	for _, f := range t.Fields {
		if f.Identifier && r[f.Name] != nil {
			at := s.slot(f.Name, r[f.Name])
			s.rows[t.Name][at] = append(s.rows[t.Name][at], r)
		}
	}
}

func (s *store) remove(t *table, r row) {
	for _, f := range t.Fields {
		if !f.Identifier || r[f.Name] == nil {
			continue
		}
		at := s.slot(f.Name, r[f.Name])
		var rest []row
		for _, other := range s.rows[t.Name][at] {
			if fmt.Sprintf("%p", other) != fmt.Sprintf("%p", r) {
				rest = append(rest, other)
			}
		}
		if len(rest) == 0 {
			delete(s.rows[t.Name], at)
		} else {
			s.rows[t.Name][at] = rest
		}
	}
}

// errSkip is a record that does not qualify for the operation.
var errSkip = errors.New("skipped")

// write carries out one record that fits. The caller holds the lock.
func (s *store) write(t *table, operation string, active field, record row) error {
	found := s.find(t, active.Name, record[active.Name])
	var old row
	if len(found) > 0 {
		old = found[0]
	}
	switch operation {
	case "delete":
		if s.e.wrong("default-is-success") {
			return nil // the switch has no case for it
		}
		if old != nil {
			s.remove(t, old)
		}
		return nil
	case "insert":
		if old != nil && !s.e.wrong("insert-adds-a-second") {
			return fmt.Errorf("%w: record already exists", errSkip)
		}
		if s.e.wrong("insert-adds-a-second") {
			old = nil
		}
	case "update":
		if old == nil {
			return fmt.Errorf("%w: record not present", errSkip)
		}
	case "upsert":
		if old != nil && s.e.wrong("upsert-is-insert") {
			return fmt.Errorf("duplicate key value violates unique constraint %q", t.Name+"_pkey")
		}
	}
	return s.put(t, operation, old, record)
}

func (s *store) put(t *table, operation string, old, record row) error {
	for _, f := range t.Fields {
		if !f.Identifier || record[f.Name] == nil || operation == "insert" && s.e.wrong("insert-adds-a-second") {
			continue
		}
		for _, other := range s.find(t, f.Name, record[f.Name]) {
			if old == nil || fmt.Sprintf("%p", other) != fmt.Sprintf("%p", old) {
				return fmt.Errorf("%s is taken", f.Name)
			}
		}
	}
	next := row{}
	if old != nil && !s.e.wrong("struct-with-every-field") {
		for name, v := range old {
			next[name] = v
		}
	}
	if s.e.wrong("struct-with-every-field") {
		for _, f := range t.Fields {
			next[f.Name] = nil
		}
		for _, f := range t.Fields {
			if old != nil && f.Identifier {
				next[f.Name] = old[f.Name]
			}
		}
	}
	for _, f := range t.Fields {
		v, mapped := record[f.Name]
		if !mapped {
			continue
		}
		if items, ok := v.([]any); ok && s.e.wrong("arrays-appended") {
			before, _ := next[f.Name].([]any)
			next[f.Name] = append(append([]any{}, before...), items...)
			continue
		}
		next[f.Name] = s.e.kept(f, v)
	}
	for _, f := range t.Fields {
		if f.Required && next[f.Name] == nil {
			return fmt.Errorf("%s is required", f.Name)
		}
	}
	if old != nil && s.e.wrong("alike-is-unchanged") && alike(old, next) {
		return nil
	}
	if old != nil {
		s.remove(t, old)
	}
	s.add(t, next)
	return nil
}

// alike reports whether every value is as before, but for case and the spaces around it.
func alike(old, next row) bool {
	for name, v := range next {
		if !strings.EqualFold(strings.TrimSpace(fmt.Sprint(v)), strings.TrimSpace(fmt.Sprint(old[name]))) {
			return false
		}
	}
	return true
}

// question and answer of the read-back.
type question struct {
	Object      string `json:"object"`
	Field       string `json:"identifier_field"`
	Identifiers []any  `json:"identifiers"`
}

type stored struct {
	Identifier any `json:"identifier"`
	Count      int `json:"count"`
	Fields     row `json:"fields"`
}

func (s *store) readback(body []byte) any {
	var q question
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	records := []stored{}
	if err := decoder.Decode(&q); err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range q.Identifiers {
		if s.e.wrong("numbers-as-float64") {
			if n, ok := id.(json.Number); ok {
				id, _ = n.Float64()
			}
		}
		var found []row
		for _, r := range s.find(s.e.table(q.Object), q.Field, id) {
			if fmt.Sprint(r[q.Field]) == fmt.Sprint(id) {
				found = append(found, r)
			}
		}
		if len(found) > 0 {
			records = append(records, stored{id, len(found), found[0]})
		}
	}
	return map[string]any{"records": records, "complete": true}
}
