package destsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/internal/rawjson"
)

// record checks a record and stages it.
func (r *restoring) record(text []byte) error {
	var saved savedRecord
	if err := strictly(text, &saved); err != nil {
		return err
	}
	if saved.ID <= r.seen || saved.ID > r.lastID {
		return fmt.Errorf("id %d of the record does not lie above %d and up to last_id %d", saved.ID, r.seen, r.lastID)
	}
	data, err := canonicalData(saved.Data)
	if err != nil {
		return fmt.Errorf("record %d: %w", saved.ID, err)
	}
	if saved.Table == customTable.Name {
		var cf customField
		if err := json.Unmarshal(data, &cf); err != nil {
			return fmt.Errorf("record %d is no created field: %w", saved.ID, err)
		}
	}
	r.seen = saved.ID
	r.records++
	return r.stage.Put(saved.Table, store.Row{ID: saved.ID, Data: data})
}

// set checks the settings.
func (r *restoring) set(q *savedSettings) error {
	if min(q.Speed.MaximumBatchSize, q.Speed.MaximumParallelBatches, q.Speed.MaximumRecordsPerSecond) < 1 {
		return errors.New("speed: three integers of 1 or more are needed")
	}
	if q.RateLimit < 0 {
		return fmt.Errorf("rate_limit %d is negative", q.RateLimit)
	}
	r.settings = q
	return nil
}

// object checks one object and builds it. It may lack what a configuration
// needs, such as an identifier: a change at runtime may have taken it away.
func (q *savedObject) object() (*object, error) {
	if q.Name == "" {
		return nil, errors.New("an object without a name")
	}
	o := newCatalogue([]ObjectConfig{q.ObjectConfig}).objects[0]
	o.Label = q.Label
	for _, op := range q.Operations {
		if err := checkOperation(op); err != nil {
			return nil, fmt.Errorf("object %q: operations: %w", clip(q.Name), err)
		}
	}
	names := map[string]bool{}
	for _, saved := range q.Fields {
		if key, err := saved.check(); err != nil {
			return nil, fmt.Errorf("object %q: field %q: %s: %w", clip(q.Name), clip(saved.Name), key, err)
		}
		if names[saved.Name] {
			return nil, fmt.Errorf("object %q: field %q stands twice", clip(q.Name), clip(saved.Name))
		}
		names[saved.Name] = true
		f := newField(saved.FieldConfig)
		f.Label, f.custom = saved.Label, saved.Custom
		o.fields = append(o.fields, f)
	}
	o.link()
	return o, nil
}

// canonicalData brings a record into the form that the store trusts: no white
// space, names and strings in their one encoding, each name once.
func canonicalData(text []byte) ([]byte, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	if compact.Len() == 0 || compact.Bytes()[0] != '{' {
		return nil, errors.New("the data is not an object")
	}
	data, seen := []byte{'{'}, map[string]bool{}
	var problem error
	store.EachMember(compact.Bytes(), func(name, value []byte) bool {
		var text string
		if text, problem = rawjson.StringText(name); problem != nil {
			return false
		}
		if seen[text] {
			problem = fmt.Errorf("field %q stands twice", clip(text))
			return false
		}
		seen[text] = true
		if value, problem = canonicalText(value); problem != nil {
			return false
		}
		data = store.AppendMember(data, store.Quote(text), value)
		return true
	})
	return append(data, '}'), problem
}

// canonicalText gives a string, or the strings of a list, their one encoding.
func canonicalText(value []byte) ([]byte, error) {
	switch value[0] {
	case '"':
		text, err := rawjson.StringText(value)
		return store.Quote(text), err
	case '[':
		items := itemsOf(value)
		for i := range items {
			var err error
			if items[i], err = canonicalText(items[i]); err != nil {
				return nil, err
			}
		}
		return arrayOf(items), nil
	}
	return value, nil
}
