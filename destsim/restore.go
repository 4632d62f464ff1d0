package destsim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/internal/rawjson"
)

// snapshotLineLimit bounds one line in bytes: one record, or one object.
const snapshotLineLimit = 256 << 20

// Restore replaces everything by a snapshot. It reads the snapshot to its end
// and checks it before anything changes; a snapshot that is malformed, cut off
// or of a later version is refused with the number of its line. Calls go on
// until the moment of the change. The configuration stays: token, violations,
// presets of a reset.
func (s *Sim) Restore(r io.Reader) error {
	if err := s.restore(r); err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	return nil
}

func (s *Sim) restore(r io.Reader) error {
	st, err := s.store.Stage()
	if err != nil {
		return err
	}
	defer st.Discard()
	read := restoring{in: bufio.NewScanner(r), stage: st}
	read.in.Buffer(nil, snapshotLineLimit)
	if err := read.all(); err != nil {
		return fmt.Errorf("line %d: %w", read.line, err)
	}
	s.world.Lock()
	defer s.world.Unlock()
	if err := st.Commit(read.lastID); err != nil {
		return err
	}
	return s.adopt(&read)
}

// adopt puts the settings of a snapshot into force; its records are there.
func (s *Sim) adopt(read *restoring) error {
	set, token := read.settings, s.config.Token
	if set.Rotated {
		token = rotated(token)
	}
	s.token.Store(&token)
	s.speed.Store(&set.Speed)
	s.rateLimit.Store(set.RateLimit)
	s.broken.Store(set.Down)
	for _, o := range read.objects {
		if before, is := set.Altered[o.APIName]; is {
			o.before = &before
		}
	}
	s.tally.set(set.Calls, set.Total)
	s.limits.Store(newLimits(s))
	return s.editCatalogue(func(*catalogue) (*catalogue, error) { return catalogueOf(read.objects), nil })
}

// restoring is a snapshot on its way in.
type restoring struct {
	in    *bufio.Scanner
	stage store.Stage
	line  int // of the last line read, from 1

	lastID   int64
	settings *savedSettings
	objects  []*object
	seen     int64 // the last record
	records  int64
}

// all reads and checks the whole text.
func (r *restoring) all() error {
	var l snapshotLine
	if err := r.next(&l); err != nil {
		return err
	}
	switch {
	case l.Snapshot != snapshotKind:
		return fmt.Errorf("not a snapshot of a simulated destination: the first line must be {%q:%q,…}", "snapshot", snapshotKind)
	case l.Version != snapshotVersion:
		return fmt.Errorf("version %d of the snapshot is not known; this program reads version %d", l.Version, snapshotVersion)
	case l.LastID < 0:
		return fmt.Errorf("last_id %d is negative", l.LastID)
	}
	r.lastID = l.LastID
	for {
		l = snapshotLine{}
		if err := r.next(&l); err != nil {
			return err
		}
		if l.End != nil {
			return r.end(l.End)
		}
		if err := r.take(&l); err != nil {
			return err
		}
	}
}

// take adds one line between head and end. Records come last.
func (r *restoring) take(l *snapshotLine) error {
	switch {
	case l.Record != nil && r.settings != nil:
		return r.record(l.Record)
	case l.Object != nil && r.settings != nil && r.records == 0:
		o, err := l.Object.object()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(r.objects, func(p *object) bool { return p.APIName == o.APIName }) {
			return fmt.Errorf("object %q occurs twice", clip(o.APIName))
		}
		r.objects = append(r.objects, o)
		return nil
	case l.Settings != nil && r.settings == nil:
		return r.set(l.Settings)
	}
	return errors.New("the line is none that may stand here: settings, then objects, then records, then the end")
}

// next reads one line strictly.
func (r *restoring) next(l *snapshotLine) error {
	r.line++
	if !r.in.Scan() {
		switch err := r.in.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return fmt.Errorf("longer than %d bytes", snapshotLineLimit)
		case err != nil:
			return fmt.Errorf("read: %w", err)
		}
		return errors.New("the snapshot is cut off: its last line, the end, is missing")
	}
	text := r.in.Bytes()
	if err := rawjson.Valid(text); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return strictly(text, l)
}

// end compares the counts and looks for what should not follow.
func (r *restoring) end(e *savedEnd) error {
	if r.settings == nil {
		return errors.New("the settings are missing")
	}
	if e.Objects != len(r.objects) || e.Records != r.records {
		return fmt.Errorf("%d objects and %d records came, %d and %d were written", len(r.objects), r.records, e.Objects, e.Records)
	}
	if r.in.Scan() {
		return errors.New("something follows after the end")
	}
	if err := r.in.Err(); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// strictly decodes one value and refuses unknown members: a later version would
// have raised its number.
func strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

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
			return nil, fmt.Errorf("object %q: field %q occurs twice", clip(q.Name), clip(saved.Name))
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
			problem = fmt.Errorf("field %q occurs twice", clip(text))
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
