package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/model"
)

var ada = model.Place{Object: "contact", Field: "email", Key: "ada"}

// naming is the record under a key with these values.
func naming(p model.Place, values string) model.Naming {
	n := model.Naming{Place: p}
	if err := json.Unmarshal([]byte(values), &n.Values); err != nil {
		panic(err)
	}
	return n
}

// send enters a batch of one record and its answer.
func send(l *model.Ledger, operation string, outcome model.Outcome, p model.Place, values string) {
	b := &model.Batch{Check: "SEM-001", Operation: operation, Records: []model.Naming{naming(p, values)}}
	l.Begin(b)
	l.End(b, []model.Answer{{Outcome: outcome}})
}

const (
	yes    = model.Acknowledged
	no     = model.Refused
	lost   = model.Unclear
	unsent = model.Unsent
)

func TestState(t *testing.T) {
	type sent struct {
		operation string
		outcome   model.Outcome
		values    string
	}
	cases := []struct {
		name   string
		sent   []sent
		known  bool
		values string // "" when it is absent
	}{
		{"upsert creates", []sent{{"upsert", yes, `{"x":1}`}}, true, `{"x":1}`},
		{"upsert changes and keeps the rest", []sent{{"upsert", yes, `{"x":1,"y":1}`}, {"upsert", yes, `{"x":2}`}}, true, `{"x":2,"y":1}`},
		{"insert creates", []sent{{"insert", yes, `{"x":1}`}}, true, `{"x":1}`},
		{"insert leaves alone what exists", []sent{{"insert", yes, `{"x":1}`}, {"insert", yes, `{"x":2}`}}, true, `{"x":1}`},
		{"update of nothing creates nothing", []sent{{"update", yes, `{"x":1}`}}, true, ""},
		{"update changes", []sent{{"upsert", yes, `{"x":1}`}, {"update", yes, `{"x":2}`}}, true, `{"x":2}`},
		{"delete removes", []sent{{"upsert", yes, `{"x":1}`}, {"delete", yes, `{}`}}, true, ""},
		{"delete forgets the old values", []sent{{"upsert", yes, `{"x":1}`}, {"delete", yes, `{}`}, {"upsert", yes, `{"y":1}`}}, true, `{"y":1}`},
		{"a refusal changes nothing", []sent{{"upsert", yes, `{"x":1}`}, {"upsert", no, `{"x":2}`}}, true, `{"x":1}`},
		{"a refusal creates nothing", []sent{{"upsert", no, `{"x":1}`}}, true, ""},
		{"what was not sent changes nothing", []sent{{"upsert", yes, `{"x":1}`}, {"delete", unsent, `{}`}}, true, `{"x":1}`},
		{"no result", []sent{{"upsert", lost, `{"x":1}`}}, false, ""},
		{"known again after an upsert", []sent{{"upsert", lost, `{"x":1}`}, {"upsert", yes, `{"x":2}`}}, true, `{"x":2}`},
		{"known again after a delete", []sent{{"upsert", lost, `{"x":1}`}, {"delete", yes, `{}`}}, true, ""},
		{"an insert of what may be there leaves either value", []sent{{"upsert", lost, `{"x":1,"y":1}`}, {"insert", yes, `{"x":2,"y":1}`}}, true, `{"y":1}`},
		{"a lost delete leaves no value known", []sent{{"upsert", yes, `{"x":1}`}, {"delete", lost, `{}`}, {"insert", yes, `{"x":2}`}}, true, `{}`},
		{"a lost update leaves no value known", []sent{{"upsert", yes, `{"x":1}`}, {"update", lost, `{"x":2}`}, {"insert", yes, `{"y":1}`}}, true, `{"y":1}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := &model.Ledger{}
			for _, s := range c.sent {
				send(l, s.operation, s.outcome, ada, s.values)
			}
			s := l.State(ada)
			require.Equal(t, c.known, s.Known)
			require.Equal(t, c.known, len(l.Settled("contact")) == 1)
			if !c.known {
				return
			}
			require.Equal(t, c.values != "", s.Exists)
			if c.values != "" {
				got, err := json.Marshal(s.Values)
				require.NoError(t, err)
				require.JSONEq(t, c.values, string(got))
			}
		})
	}
}

// TestOverlap: what concurrent batches leave.
func TestOverlap(t *testing.T) {
	cases := []struct {
		name          string
		first, second string
		outcome       model.Outcome // of the second; the first is acknowledged
		known, exists bool
	}{
		{"two upserts leave a record with either value", "upsert", "upsert", yes, true, true},
		{"a lost upsert takes no record away", "upsert", "upsert", lost, true, true},
		{"a delete leaves it unknown", "upsert", "delete", yes, false, false},
		{"an upsert beside a delete leaves it unknown", "delete", "upsert", yes, false, false},
		{"an update beside an insert", "insert", "update", yes, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := &model.Ledger{}
			a := &model.Batch{Operation: c.first, Records: []model.Naming{naming(ada, `{"x":1}`)}}
			b := &model.Batch{Operation: c.second, Records: []model.Naming{naming(ada, `{"x":2}`)}}
			l.Begin(a)
			l.Begin(b)
			l.End(a, []model.Answer{{Outcome: yes}})
			l.End(b, []model.Answer{{Outcome: c.outcome}})
			s := l.State(ada)
			require.Equal(t, c.known, s.Known)
			if c.known {
				require.Equal(t, c.exists, s.Exists)
				require.Empty(t, s.Values)
			}
			send(l, "upsert", yes, ada, `{"x":3}`)
			require.Equal(t, json.RawMessage("3"), l.State(ada).Values["x"], "known again")
		})
	}
}

// TestSettled: keys that an endpoint may take for one, or that name the same record, are no
// evidence about each other.
func TestSettled(t *testing.T) {
	key := func(text string) model.Place { return model.Place{Object: "contact", Field: "email", Key: text} }
	cases := []struct {
		name string
		keys []string
		want int
	}{
		{"other letters", []string{"ada", "bob"}, 2},
		{"case", []string{"ada", "ADA"}, 0},
		{"accents and spaces", []string{"adé", "ade\u0301 "}, 0},
		{"integers that a double takes for one", []string{"9007199254740993", "9007199254740992"}, 0},
		{"integers that it can hold", []string{"1000000000001", "1000000000002"}, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := &model.Ledger{}
			for _, k := range c.keys {
				send(l, "upsert", yes, key(k), `{}`)
			}
			require.Len(t, l.Settled("contact"), c.want)
		})
	}
	t.Run("one record under two identifiers", func(t *testing.T) {
		l := &model.Ledger{}
		n := naming(ada, `{"number":7}`)
		n.Others = []model.Place{{Object: "contact", Field: "number", Key: "7"}}
		b := &model.Batch{Operation: "upsert", Records: []model.Naming{n}}
		l.Begin(b)
		l.End(b, []model.Answer{{Outcome: yes}})
		require.Len(t, l.Settled("contact"), 1)
		send(l, "upsert", yes, n.Others[0], `{}`)
		require.Empty(t, l.Settled("contact"))
	})
	t.Run("a key that was never sent", func(t *testing.T) {
		l := &model.Ledger{}
		require.True(t, l.State(ada).Known)
		require.False(t, l.State(ada).Exists)
		l.Doubt(ada)
		require.False(t, l.State(ada).Known)
	})
}

// TestContradictedWitness: one answer that is the same for a record that is there and for
// one that is not, and updates show nothing.
func TestContradictedWitness(t *testing.T) {
	update := func(l *model.Ledger, p model.Place, a model.Answer) {
		b := &model.Batch{Operation: "update", Records: []model.Naming{naming(p, `{}`)}}
		l.Begin(b)
		l.End(b, []model.Answer{a})
	}
	l := &model.Ledger{}
	send(l, "upsert", yes, ada, `{}`)
	update(l, model.Place{Object: "contact", Key: "never"}, model.Answer{Outcome: no, Words: "not found"})
	update(l, ada, model.Answer{Outcome: no, Words: "too long"})
	update(l, ada, model.Answer{Outcome: yes})
	require.False(t, l.Contradicted("contact"))
	update(l, ada, model.Answer{Outcome: no, Words: "not found"})
	require.True(t, l.Contradicted("contact"))
	require.False(t, l.Contradicted("order"))
}
