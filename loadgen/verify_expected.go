package loadgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// write is one write of a key that is verified.
type write struct {
	a    *ack
	task *task
	key  int64
	row  int // of the task
}

// expected is the required content of a key.
type expected struct {
	keyspace *keyspace
	key      json.RawMessage // as it travels
	absent   bool            // it was deleted
	fields   map[string]*values
	at       int64 // when the latest write was acknowledged
}

// values are those that a field can have: several where writes were under way at the
// same time.
type values struct {
	field rpc.Field
	any   []json.RawMessage
}

// finding is one way in which a key is not as it must be.
type finding struct{ kind, message, detail string }

// Why a key cannot be verified.
const (
	whyUnknown = "a write of the key was in a request that failed or was not answered with one result for it"
	whyRefused = "a write of the key was refused"
	whyRaced   = "the key was deleted while another write of it was under way"
)

// expect returns the required content after all writes of a key, of which one at least
// was acknowledged, or why that is not known. A write counts no more where another one
// that was sent after its reply covers it; of writes that were under way at the same
// time each can be the last.
func expect(g *keyspace, writes []write) (*expected, string) {
	x := &expected{keyspace: g, fields: map[string]*values{}}
	latest := map[*task]int64{} // when the last write of a task was sent
	removed, removedAt := false, int64(0)
	for _, w := range writes {
		switch w.a.state {
		case records.Unknown:
			return x, whyUnknown
		case records.Refused:
			return x, whyRefused
		}
		if w.task.deletes() {
			if !removed || w.a.start > removedAt {
				removedAt = w.a.start
			}
			removed = true
		}
		latest[w.task] = max(latest[w.task], w.a.start)
		x.at = max(x.at, w.a.end)
	}
	x.key = writes[0].identifier()
	if removed {
		for _, w := range writes {
			if !w.task.deletes() && w.a.end > removedAt {
				return x, whyRaced
			}
		}
		x.absent = true
		return x, ""
	}
	for _, w := range writes {
		last := lists.Where(w.task.shape.Object.Mapped, func(f rpc.Field) bool {
			return f.APIName != g.object.Identifier.APIName && !covered(f.APIName, w.a.end, latest)
		})
		if len(last) == 0 {
			continue
		}
		sent := w.members()
		for _, f := range last {
			v := x.fields[f.APIName]
			if v == nil {
				v = &values{field: f}
				x.fields[f.APIName] = v
			}
			v.any = append(v.any, sent[f.APIName])
		}
	}
	return x, ""
}

// covered reports whether a field was written again by a request that was sent after a
// moment.
func covered(field string, end int64, latest map[*task]int64) bool {
	for t, start := range latest {
		if start >= end && slices.ContainsFunc(t.shape.Object.Mapped, func(f rpc.Field) bool { return f.APIName == field }) {
			return true
		}
	}
	return false
}

// text is the record as it was sent.
func (w write) text() []byte {
	r := &w.task.rows[w.row]
	text := slices.Clone(r.Text)
	if !w.task.own {
		for _, m := range r.Marks {
			records.PutDigits(text[m.At:m.At+m.Width], m.Base+w.key)
		}
	}
	return text
}

func (w write) identifier() json.RawMessage {
	r := &w.task.rows[w.row]
	return w.text()[r.From:r.To]
}

// members are the values of a record by the name of their field.
func (w write) members() map[string]json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(w.text(), &members) // the generator has written it
	return members
}

// compare compares the stored record with the required one; nil: there is none.
func (x *expected) compare(got *hook.ReadbackRecord) (wrong []finding) {
	switch {
	case got == nil && x.absent:
		return nil
	case got == nil:
		return []finding{{wire.KindLost, "an acknowledged record is not there", ""}}
	case x.absent:
		return []finding{{wire.KindUndeleted, "a record is there whose deletion was acknowledged", ""}}
	}
	if got.Count > 1 {
		wrong = append(wrong, finding{wire.KindDoubled, fmt.Sprintf("a key is stored %s", quantity.Count(got.Count, "time")), ""})
	}
	for _, name := range slices.Sorted(maps.Keys(x.fields)) {
		if detail := x.fields[name].differs(got.Fields[name]); detail != "" {
			return append(wrong, finding{wire.KindWrong, "a record has another value of " + name + " than it was acknowledged with", detail})
		}
	}
	return wrong
}

// differs returns how a stored value is none of those that it can be, "" where it is
// one. The hook may leave a null out.
func (v *values) differs(stored json.RawMessage) string {
	is := "is missing"
	if stored != nil {
		is = "is " + foreign.Clip(stored, wire.LongestQuote)
	}
	for _, sent := range v.any {
		if stored == nil && string(sent) == "null" {
			return ""
		}
		if same, _ := hook.SameValue(v.field, sent, stored); stored != nil && same {
			return ""
		}
	}
	sent := foreign.Clip(v.any[0], wire.LongestQuote)
	if n := len(v.any) - 1; n > 0 {
		sent += fmt.Sprintf(" or what one of %s at the same time had", quantity.Count(n, "further write"))
	}
	return v.field.APIName + " was sent as " + sent + " and " + is
}
