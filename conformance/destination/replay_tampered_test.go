package destination

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// sentBatch is a batch as a report of the run "abc" holds it; the parts in $ are
// what a case changes.
func sentBatch(change ...string) string {
	text := `{"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"object":{"object_api_name":"contact","label":"contact"},"operation":"$op","sync_run_id":1,"sync_id":1,` +
		`"schema":{"email":{"active_identifier":true,"field":{"field_api_name":"email","identifier":true}},"name":{"active_identifier":false,"field":{"field_api_name":"name","identifier":false}}}},` +
		`"records":[{"email":"$key","name":"n"}]},"id":"1"}`
	return strings.NewReplacer(append(change, "$op", "upsert", "$key", "zz-conf-abc-RES-002-1")...).Replace(text)
}

// replayed replays one exchange of a report of the run "abc".
func replayedOne(t *testing.T, e *small, opts conformance.Options, change func(*conformance.Report, *conformance.Exchange)) ReplayResult {
	t.Helper()
	x := conformance.Exchange{RPC: "sync_batch", Request: wire.Message{Method: "POST", Body: wire.Body{Text: sentBatch()}}}
	r := &conformance.Report{RunID: "abc", Settings: conformance.Settings{Write: true, Objects: []string{"contact"}}, Checks: []conformance.CheckResult{{ID: "RES-002"}}}
	change(r, &x)
	r.Checks[0].Findings = []conformance.Finding{{Exchanges: []conformance.Exchange{x}}}
	again, err := Replay(context.Background(), Target{Handler: e, Token: "the-token-of-the-tests"}, opts, r, nil)
	require.NoError(t, err)
	require.Len(t, again, 1)
	return again[0]
}

// TestReplayReadsTheBody: without Write nothing is sent that could write, whatever
// the report calls it.
func TestReplayReadsTheBody(t *testing.T) {
	escaped := strings.Replace(sentBatch(), "sync_batch", `sync\u005fbatch`, 1)
	for name, change := range map[string]func(*conformance.Report, *conformance.Exchange){
		"another label": func(_ *conformance.Report, x *conformance.Exchange) { x.RPC = "test_connection" },
		"no label":      func(_ *conformance.Report, x *conformance.Exchange) { x.RPC = "" },
		"an escaped method": func(_ *conformance.Report, x *conformance.Exchange) {
			x.RPC, x.Request.Body.Text = "list_objects", escaped
		},
		"base64": func(_ *conformance.Report, x *conformance.Exchange) {
			x.RPC, x.Request.Body = "", wire.Body{Base64: base64.StdEncoding.EncodeToString([]byte(sentBatch()))}
		},
		"two methods": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"method"`, `"method":"test_connection","method"`, 1)
		},
		"two methods, the last one": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"id":"1"}`, `"id":"1","method":"test_connection"}`, 1)
		},
		"a method in capitals": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"method":`, `"method":"test_connection","Method":`, 1)
		},
		"a list of calls": func(_ *conformance.Report, x *conformance.Exchange) { x.Request.Body.Text = "[" + sentBatch() + "]" },
		"two values": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"1"}` + sentBatch()
		},
		"a byte order mark": func(_ *conformance.Report, x *conformance.Exchange) { x.Request.Body.Text = "\ufeff" + sentBatch() },
		"a method of the author": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = `{"jsonrpc":"2.0","method":"delete_everything","params":{},"id":"1"}`
		},
		"a form": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = "method=sync%5Fbatch&records=1"
		},
		"UTF-16": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body = wire.Body{Base64: base64.StdEncoding.EncodeToString([]byte(strings.Join(strings.Split(sentBatch(), ""), "\x00") + "\x00"))}
		},
		"another HTTP method": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Method, x.Request.Body.Text = "PATCH", `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"1"}`
		},
		"a body that is packed": func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Header = []wire.Header{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}
			x.Request.Body.Text = `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"1"}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newSmall()
			arrived := 0
			e.answer = func(string, int, []byte) string { arrived++; return "" }
			got := replayedOne(t, e, conformance.Options{}, change)
			require.NotEmpty(t, got.Skipped)
			require.Zero(t, arrived, got.Skipped)
		})
	}
}

// TestReplayWritesKeysOfTheRunOnly: with Write, too.
func TestReplayWritesKeysOfTheRunOnly(t *testing.T) {
	keyed := func(key string) func(*conformance.Report, *conformance.Exchange) {
		return func(_ *conformance.Report, x *conformance.Exchange) { x.Request.Body.Text = sentBatch("$key", key) }
	}
	for _, c := range []struct {
		name   string
		change func(*conformance.Report, *conformance.Exchange)
		opts   conformance.Options
		want   string // "" when it is written
	}{
		{"as it was", func(*conformance.Report, *conformance.Exchange) {}, conformance.Options{}, ""},
		{"an address", keyed("zz-conf-abc-RES-002-1@example.com"), conformance.Options{}, ""},
		{"letters and digits", keyed("zzconfabcres0021"), conformance.Options{}, ""},
		{"an odd form", keyed(" zz-conf-abc-RES-002-1 spaces "), conformance.Options{}, ""},
		{"a UUID", keyed(values.FormOfKey(rpc.Field{}, "zz-conf-abc-RES-002-7", 3)), conformance.Options{}, ""},
		{"a delete of its own", func(_ *conformance.Report, x *conformance.Exchange) { x.Request.Body.Text = sentBatch("$op", "delete") }, conformance.Options{}, ""},
		{"the author's template", func(r *conformance.Report, x *conformance.Exchange) {
			r.RunID = "123abc"
			keyed("my-123abc-RES-002-4")(r, x)
		}, conformance.Options{KeyTemplate: "my-{run}-{check}-{n}"}, ""},
		{"a template that the caller does not give", func(r *conformance.Report, x *conformance.Exchange) {
			r.RunID, r.Settings.KeyTemplate = "123abc", "my-{run}-{check}-{n}"
			keyed("my-123abc-RES-002-4")(r, x)
		}, conformance.Options{}, "no key of the run"},
		{"a key of the owner", keyed("ann@customer.com"), conformance.Options{}, "no key of the run"},
		{"a key in the middle", keyed("ann+zz-conf-abc-RES-002-1@customer.com"), conformance.Options{}, "no key of the run"},
		{"a key of another run", keyed("zz-conf-def-RES-002-1"), conformance.Options{}, "no key of the run"},
		{"a UUID of the owner", keyed("6ba7b810-9dad-41d1-80b4-00c04fd430c8"), conformance.Options{}, "no key of the run"},
		{"a run that is none", func(r *conformance.Report, x *conformance.Exchange) { r.RunID = ""; keyed("ann@customer.com")(r, x) }, conformance.Options{}, "names no run"},
		{"a run like a key", func(r *conformance.Report, x *conformance.Exchange) { r.RunID = "ann"; keyed("ann-1")(r, x) }, conformance.Options{KeyTemplate: "{run}-{n}"}, "not the name of a run"},
		{"mirror", func(_ *conformance.Report, x *conformance.Exchange) { x.Request.Body.Text = sentBatch("$op", "mirror") }, conformance.Options{}, "the operation"},
		{"another identifier", func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.NewReplacer(`"active_identifier":true`, `"active_identifier":false`, `"identifier":true`, `"identifier":false`, `"name":{"active_identifier":false`, `"name":{"active_identifier":true`,
				`"name":"n"`, `"name":"zz-conf-abc-RES-002-1"`, `"email":"zz-conf-abc-RES-002-1"`, `"email":"ann@customer.com"`).Replace(sentBatch())
		}, conformance.Options{}, "no key of the run"},
		{"a second identifier", func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"email":"zz`, `"Email":"ann@customer.com","email":"zz`, 1)
		}, conformance.Options{}, "occurs twice"},
		{"a further record", func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"records":[`, `"records":[{"email":"ann@customer.com","name":"n"},`, 1)
		}, conformance.Options{}, "no key of the run"},
		{"a member more", func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"records":[`, `"purge":true,"records":[`, 1)
		}, conformance.Options{}, "does not send"},
		{"another object", func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"object_api_name":"contact"`, `"object_api_name":"company"`, 1)
		}, conformance.Options{}, "none of the objects of the run"},
		{"an object that the caller excludes", func(*conformance.Report, *conformance.Exchange) {}, conformance.Options{Objects: []string{"company"}}, "none of the objects of the run"},
		{"an object that is not there", func(r *conformance.Report, x *conformance.Exchange) {
			r.Settings.Objects = []string{"company"}
			x.Request.Body.Text = strings.Replace(sentBatch(), `"object_api_name":"contact"`, `"object_api_name":"company"`, 1)
		}, conformance.Options{}, "does not list the fields"},
		{"the token in a record", func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"name":"n"`, `"name":"$DESTKIT_TOKEN"`, 1)
		}, conformance.Options{}, "a secret"},
		{"no plan", func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = `{"jsonrpc":"2.0","method":"sync_batch","params":{"records":[{"email":"ann@customer.com"}]},"id":"1"}`
		}, conformance.Options{}, "without a plan"},
		{"too many", func(_ *conformance.Report, x *conformance.Exchange) {
			x.Request.Body.Text = strings.Replace(sentBatch(), `"records":[`, `"records":[`+strings.Repeat(`{"email":"zz-conf-abc-RES-002-1"},`, 5), 1)
		}, conformance.Options{MaxRecords: 5}, "more than 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newSmall()
			e.stored["contact"] = map[string]rpc.Record{"ann@customer.com": {"name": json.RawMessage(`"Ann"`)}}
			c.opts.Write = true
			got := replayedOne(t, e, c.opts, c.change)
			if c.want == "" {
				require.Empty(t, got.Skipped)
				require.Equal(t, 1, e.calls[rpc.MethodSyncBatch])
				return
			}
			require.Contains(t, got.Skipped, c.want)
			require.Zero(t, e.calls[rpc.MethodSyncBatch])
			require.NotContains(t, got.Skipped, "the-token-of-the-tests")
			require.Equal(t, []string{"ann@customer.com"}, e.keys("contact"))
		})
	}
}

// TestOwnershipOfARun: every key that a run makes is its own, and none that people
// write.
func TestOwnershipOfARun(t *testing.T) {
	o := line.WithDefaults(conformance.Options{RunID: "12ab9f"})
	owns, err := discover.NewOwnership("12ab9f", o, nil)
	require.NoError(t, err)
	k, err := write.NewKeys(o)
	require.NoError(t, err)
	for range 200 {
		text := k.NextText("DAT-004")
		for form := range values.KeyForms {
			key := values.FormOfKey(rpc.Field{}, text, form)
			for _, odd := range []string{key, key + " Mixed CASE", " " + key + " spaces ", key + "#1/2", key + "-e\u0301"} {
				require.True(t, owns.Owns(values.Quote(odd)), odd)
			}
		}
		n, ok := k.NextInteger()
		require.True(t, ok)
		raw, _ := json.Marshal(n)
		require.True(t, owns.Owns(raw))
		require.True(t, owns.Owns(values.Quote("00"+string(raw))), "of digits, as SEM-014 sends it")
	}
	for _, foreign := range []string{`1`, `0`, `-5`, `9007199254740992`, `9007199254740994`, `1e12`, `"1"`, `""`, `null`, `true`, `{}`, `[]`, `"zz-conf"`, `"zz-conf-12ab9f"`, `"zz-load-12ab9f-000000000001"`, `"customer-12ab9f-1"`, `"9007199254740993"`, `3000000000000`} {
		require.False(t, owns.Owns(json.RawMessage(foreign)), foreign)
	}
}

// TestCleanLeavesForeignKeys: a journal that was changed deletes nothing of others,
// by batches or by the hook.
func TestCleanLeavesForeignKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.ndjson")
	j, err := journal.Create(path, journal.Header{Run: "abc", Target: "http://destination.localhost/"})
	require.NoError(t, err)
	ids := []json.RawMessage{values.Quote(killedKey("a")), values.Quote("ann@customer.com"), values.Quote("zz-conf-def-RES-002-1")}
	seq, err := j.Begin("contact", "email", "upsert", ids)
	require.NoError(t, err)
	require.NoError(t, j.Finish(seq, ids, nil))
	require.NoError(t, j.Close())
	e := newSmall()
	e.stored["contact"] = map[string]rpc.Record{killedKey("a"): {}, "ann@customer.com": {}, "zz-conf-def-RES-002-1": {}}
	h := &withCleanup{small: e, reply: `{"ok":true}`}
	res, err := Clean(context.Background(), Target{Handler: h}, conformance.Options{Journal: path, Hooks: cleanupHook()})
	require.NoError(t, err)
	require.Equal(t, []string{"ann@customer.com", "zz-conf-def-RES-002-1"}, e.keys("contact"))
	require.Equal(t, 1, res.Cleaned)
	require.Len(t, res.Refused, 2)
	require.Contains(t, res.Refused[0].Reason, "no key that this run makes")
	require.Empty(t, h.asked, "the hook is not asked for them either")
}
