package records

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen/internal/wire"
)

// answered is a batch of three records with what a checker said of replies.
type answered struct {
	*Bare
	notes []string
}

func newAnswered(t *testing.T, size int) *answered {
	bare, err := NewBare(size, 0)
	require.NoError(t, err)
	a := &answered{Bare: bare}
	a.check = Checker{Note: func(kind string, message, identifier []byte) {
		a.notes = append(a.notes, strings.TrimSpace(kind+" "+string(message)+" "+string(identifier)))
	}}
	return a
}

// reply writes a reply in the form of some server. Each entry is a key with the
// text after it; K0, K1, … replace the identifiers.
func (a *answered) reply(format string) []byte {
	for i := a.batch.Size() - 1; i >= 0; i-- {
		format = strings.ReplaceAll(format, fmt.Sprintf("K%d", i), string(a.batch.key(i)))
	}
	return []byte(strings.ReplaceAll(format, "ID", string(a.batch.ID())))
}

// next gives the batch other keys and another id.
func (a *answered) next() {
	a.first += 1000
	a.calls++
	a.notes = nil
	a.Prepare()
}

const ours = `{"jsonrpc":"2.0","id":ID,"result":{"record_results":[{"identifier":K0,"success":true},{"identifier":K1,"success":true},{"identifier":K2,"success":true}]}}`

// serverForms are replies as servers in other languages write them.
var serverForms = map[string]string{
	"ours":        ours,
	"id last":     `{"jsonrpc":"2.0","result":{"record_results":[{"identifier":K0,"success":true},{"identifier":K1,"success":true},{"identifier":K2,"success":true}]},"id":ID}`,
	"spaces":      "{\"jsonrpc\": \"2.0\", \"id\": ID, \"result\": {\"record_results\": [\n  {\"identifier\": K0, \"success\": true},\n  {\"identifier\": K1, \"success\": true},\n  {\"identifier\": K2, \"success\": true}\n]}}\n",
	"null":        `{"jsonrpc":"2.0","id":ID,"result":{"record_results":[{"success":true,"error_message":null,"identifier":K0},{"success":true,"error_message":null,"identifier":K1},{"success":true,"error_message":null,"identifier":K2}]}}`,
	"echoes":      `{"jsonrpc":"2.0","method":"sync_batch","id":ID,"result":{"count":3,"record_results":[{"identifier":K0,"success":true},{"identifier":K1,"success":true},{"identifier":K2,"success":true}],"took":1}}`,
	"first fails": `{"jsonrpc":"2.0","id":ID,"result":{"record_results":[{"identifier":K0,"success":false,"error_message":"no"},{"identifier":K1,"success":true},{"identifier":K2,"success":true}]}}`,
}

func TestAFormIsLearntAndKept(t *testing.T) {
	for name, format := range serverForms {
		a := newAnswered(t, 3)
		for round := range 3 {
			v, err := a.check.Check(a.batch, a.reply(format))
			require.NoError(t, err, name)
			want := 3 - strings.Count(format, "false")
			require.Equal(t, want, v.Acknowledged, name)
			require.Equal(t, 3-want, v.Failed, name)
			require.Len(t, a.notes, 3-want, name)
			require.True(t, a.check.form.known, name)
			_, same := a.check.same(a.batch, a.reply(format))
			require.True(t, same, "%s, round %d: the form does not fit", name, round)
			a.next()
		}
		// A refusal in the middle is read alone.
		refused := a.reply(strings.Replace(format, "true", "false", 1))
		v, same := a.check.same(a.batch, refused)
		require.True(t, same, name)
		require.Equal(t, 3, v.Acknowledged+v.Failed, name)
	}
}

// TestNoReplyIsTakenForAGoodOne breaks a reply in every way, against a checker
// that knows its form and one that does not: both must see it.
func TestNoReplyIsTakenForAGoodOne(t *testing.T) {
	for _, c := range []struct{ name, reply, kind string }{
		{"another id", strings.Replace(ours, "ID", `"00000000000000000000000000009999"`, 1), wire.KindEnvelope},
		{"a number as id", strings.Replace(ours, "ID", "7", 1), wire.KindEnvelope},
		{"no id", strings.Replace(ours, `"id":ID,`, "", 1), wire.KindEnvelope},
		{"another version", strings.Replace(ours, "2.0", "1.0", 1), wire.KindEnvelope},
		{"an error", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"down"}}`, wire.KindRPC},
		{"both", strings.Replace(ours, `"id"`, `"error":{"code":1,"message":"m"},"id"`, 1), wire.KindEnvelope},
		{"no results", `{"jsonrpc":"2.0","id":ID,"result":{}}`, wire.KindResults},
		{"not an array", `{"jsonrpc":"2.0","id":ID,"result":{"record_results":{}}}`, wire.KindResults},
		{"cut", ours[:len(ours)-1], wire.KindJSON},
		{"bytes behind", ours + "x", wire.KindJSON},
		{"not JSON", "<html>", wire.KindJSON},
		{"nothing", "", wire.KindJSON},
	} {
		for _, learnt := range []bool{false, true} {
			a := newAnswered(t, 3)
			if learnt {
				_, err := a.check.Check(a.batch, a.reply(ours))
				require.NoError(t, err)
				a.next()
			}
			v, err := a.check.Check(a.batch, a.reply(c.reply))
			var f *wire.Failure
			require.ErrorAs(t, err, &f, c.name)
			require.Equal(t, c.kind, f.Kind, "%s: %s", c.name, f.Message)
			require.Zero(t, v.Acknowledged, c.name)
			require.Empty(t, a.notes, c.name)
		}
	}
}

func TestEveryRecordHasOneResult(t *testing.T) {
	entry := func(key, more string) string { return `{"identifier":` + key + more + `}` }
	good := `,"success":true`
	for _, c := range []struct {
		name         string
		entries      []string
		acknowledged int
		notes        []string // the beginning of each
	}{
		{"reversed", []string{entry("K2", good), entry("K1", good), entry("K0", good)}, 3, nil},
		{"one missing", []string{entry("K0", good), entry("K2", good)}, 2, []string{wire.KindMissing}},
		{"all missing", nil, 0, []string{wire.KindMissing, wire.KindMissing, wire.KindMissing}},
		{"one twice", []string{entry("K0", good), entry("K0", good), entry("K1", good), entry("K2", good)}, 3, []string{wire.KindRepeated}},
		{"one too many", []string{entry("K0", good), entry("K1", good), entry("K2", good), entry(`"x"`, good)}, 3, []string{wire.KindUnknown}},
		{"another one", []string{entry("K0", good), entry(`"x"`, good), entry("K2", good)}, 2, []string{wire.KindUnknown, wire.KindMissing}},
		{"success is a text", []string{entry("K0", `,"success":"true"`), entry("K1", good), entry("K2", good)}, 2, []string{wire.KindRecordRefused}},
		{"no success", []string{entry("K0", ""), entry("K1", good), entry("K2", good)}, 2, []string{wire.KindRecordRefused}},
		{"refused", []string{entry("K0", good), entry("K1", `,"success":false,"error_message":{"a":1}`), entry("K2", good)}, 2, []string{wire.KindRecordRefused + ` {"a":1}`}},
		{"no identifier", []string{entry("K0", good), `{"success":true}`, entry("K2", good)}, 2, []string{wire.KindUnknown, wire.KindMissing}},
		{"a longer one", []string{entry("K0", good), entry(`"K1"`, good), entry("K2", good)}, 2, []string{wire.KindUnknown, wire.KindMissing}},
	} {
		for _, learnt := range []bool{false, true} {
			a := newAnswered(t, 3)
			if learnt {
				_, err := a.check.Check(a.batch, a.reply(ours))
				require.NoError(t, err)
				a.next()
			}
			text := `{"jsonrpc":"2.0","id":ID,"result":{"record_results":[` + strings.Join(c.entries, ",") + `]}}`
			if c.name == "a longer one" {
				text = strings.Replace(text, `"K1"`, `"x`+string(a.batch.key(1))[1:], 1)
			}
			v, err := a.check.Check(a.batch, a.reply(text))
			if c.name == "a longer one" && err != nil {
				t.Fatal(err)
			}
			require.NoError(t, err, c.name)
			require.Equal(t, c.acknowledged, v.Acknowledged, "%s, form known: %t", c.name, learnt)
			require.Len(t, a.notes, len(c.notes), "%s: %v", c.name, a.notes)
			for i, want := range c.notes {
				require.True(t, strings.HasPrefix(a.notes[i], want), "%s: %v", c.name, a.notes)
			}
		}
	}
}

// TestAFormHoldsNoIdentifier: an entry that repeats its identifier elsewhere is
// another one every time, and its text must not become part of the form.
func TestAFormHoldsNoIdentifier(t *testing.T) {
	a := newAnswered(t, 1)
	format := `{"jsonrpc":"2.0","id":ID,"result":{"record_results":[{"label":K0,"identifier":K0,"success":true}]}}`
	stale := string(a.reply(format))
	_, err := a.check.Check(a.batch, []byte(stale))
	require.NoError(t, err)
	require.False(t, a.check.form.known)
	old := string(a.batch.key(0))
	a.next()
	// The label is the new key, the identifier is still the old one.
	v, err := a.check.Check(a.batch, a.reply(strings.Replace(format, `"identifier":K0`, `"identifier":`+old, 1)))
	require.NoError(t, err)
	require.Zero(t, v.Acknowledged)
}

func TestRepeatedKeysInABatch(t *testing.T) {
	a := newAnswered(t, 3)
	a.batch.StampOne(1, a.first) // the same as record 0
	v, err := a.check.Check(a.batch, a.reply(ours))
	require.NoError(t, err)
	require.Equal(t, 3, v.Acknowledged)
	// One result for two records with one key is one too few.
	v, err = a.check.Check(a.batch, a.reply(`{"jsonrpc":"2.0","id":ID,"result":{"record_results":[{"identifier":K0,"success":true},{"identifier":K2,"success":true}]}}`))
	require.NoError(t, err)
	require.Equal(t, 2, v.Acknowledged)
	require.Equal(t, 1, v.Failed)
}

func TestCheckingAllocatesNothing(t *testing.T) {
	for _, refused := range []int{0, 10} {
		b, err := NewBare(100, refused)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(50, func() {
			b.Prepare()
			if _, err := b.Check(); err != nil {
				t.Error(err)
			}
		}))
	}
}

// TestEveryByteOfAReplyCounts: with each byte changed in turn a checker that
// compares with the form reports the same as one that scans.
func TestEveryByteOfAReplyCounts(t *testing.T) {
	for name, spoil := range map[string]func(*Batch){
		"counted": func(*Batch) {}, // over a carry or two
		"others":  func(b *Batch) { b.StampOne(7, 123456) },
	} {
		fast, whole := newAnswered(t, 25), newAnswered(t, 25)
		_, err := fast.Check()
		require.NoError(t, err)
		entries := make([]string, 25)
		for i := range entries {
			entries[i] = fmt.Sprintf(`{"identifier":K%d,"success":true}`, i)
		}
		for _, a := range []*answered{fast, whole} {
			a.next()
			spoil(a.batch)
		}
		good := fast.reply(`{"jsonrpc":"2.0","id":ID,"result":{"record_results":[` + strings.Join(entries, ",") + `]}}`)
		v, ok := fast.check.same(fast.batch, good)
		require.True(t, ok, name)
		require.Equal(t, Verdict{Acknowledged: 25}, v, name)
		require.Equal(t, name == "counted", fast.batch.counted)
		for at := range good {
			was := good[at]
			for _, other := range []byte{was ^ 1, was + 1, '"', ' '} {
				good[at] = other
				got, gotErr := fast.check.Check(fast.batch, good)
				whole.check.form.known = false
				want, wantErr := whole.check.Check(whole.batch, good)
				require.Equal(t, want, got, "%s: byte %d is %q", name, at, other)
				require.Equal(t, wantErr, gotErr, "%s: byte %d is %q", name, at, other)
				require.Equal(t, whole.notes, fast.notes, "%s: byte %d is %q", name, at, other)
				fast.notes, whole.notes = nil, nil
			}
			good[at] = was
			if !fast.check.form.known { // another form was learnt
				_, _ = fast.check.Check(fast.batch, good)
			}
		}
	}
}

// TestKeysThatCountUp: which batches have them.
func TestKeysThatCountUp(t *testing.T) {
	keys := Keys{Template: `k{n}"`, From: 100, To: 999}
	integer := func(r *Row) { r.Member("id"); r.Key(keys, true) }
	text := func(r *Row) { r.Member("id"); r.Key(keys, false) }
	other := func(r *Row) { r.Member("id"); r.Key(Keys{Template: `l{n}"`}, false) }
	fixed := func(r *Row) {
		r.Member("id")
		r.From = len(r.Text)
		r.Text = append(r.Text, `"x"`...)
		r.To = len(r.Text)
	}
	for name, c := range map[string]struct {
		rows    []func(*Row)
		counted bool
	}{
		"numbers":      {[]func(*Row){integer, integer, integer}, true},
		"texts":        {[]func(*Row){text, text}, true},
		"two patterns": {[]func(*Row){text, other}, false},
		"of a file":    {[]func(*Row){fixed, fixed}, false},
	} {
		var rows []Row
		for _, put := range c.rows {
			var r Row
			put(&r)
			r.Text = append(r.Text, '}')
			rows = append(rows, r)
		}
		b := NewBatch(&Shape{Plan: []byte("{}")}, bareHead)
		b.Fill(bareHead, rows, strings.Repeat("0", IDDigits))
		require.False(t, b.counted, name)
		b.Stamp(8)
		require.Equal(t, c.counted, b.counted, name)
	}
}
