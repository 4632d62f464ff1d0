package destination

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// says maps what is asked to the reply. The names, the particular before the
// general: cut, plain, GET, PUT, DELETE, "stranger:METHOD", stranger, "no JSON",
// array, "no envelope", "no id", unknown, "METHOD:OBJECT", "sync_batch of none",
// "sync_batch by FIELD", "sync_batch:OPERATION", METHOD.
type says map[string]answer

// asked is a request of the judge, taken apart.
type asked struct {
	wire.Call
	rawID     string // as it stands in the body, null without one
	method    string
	object    string
	operation string
	active    string // the active identifier of a batch
	records   []sentRecord
	turn      int  // how many calls of the same name came before
	again     bool // a key of the batch was sent before
	created   bool // and by another operation than update
}

// script is an endpoint that only says what is written.
type script struct {
	t    *testing.T
	talk talk

	mu      sync.Mutex
	turns   map[string]int
	sent    map[place]*kept
	order   []place
	batches int
}

func newScript(t *testing.T, k talk) *script {
	return &script{t: t, talk: k, turns: map[string]int{}, sent: map[place]*kept{}}
}

// Do answers a call from the table.
func (s *script) Do(_ context.Context, call wire.Call) *wire.Reply {
	a := s.read(call)
	names := a.names()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, table := range []says{s.talk.says, commonReplies} {
		for _, name := range names {
			if reply, ok := table[name]; ok {
				a.turn, a.again, a.created = s.turns[name], s.knows(a, false), s.knows(a, true)
				s.turns[name]++
				given := reply(a)
				s.keep(a, given)
				return given
			}
		}
	}
	s.t.Errorf("no reply is written for %v: %s", names, call.Body)
	return broken(wire.KindInvalid)(a)
}

// Open gives a connection that leads nowhere: the replies do not come from it.
func (s *script) Open(ctx context.Context) (*wire.Conn, error) {
	client, err := wire.New(wire.Options{URL: scriptURL, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, _ := net.Pipe()
		return near, nil
	}})
	require.NoError(s.t, err)
	return client.Open(ctx)
}

// Handshake shows no certificates: real ones are judged in the kill matrix.
func (s *script) Handshake(context.Context, *tls.Config, string, string) (tls.ConnectionState, error) {
	return tls.ConnectionState{}, nil
}

// RoundTrip answers the author's hooks.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	var q struct{ Hook, Action string }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, err
	}
	text := cmp.Or(s.talk.hook[q.Hook], `{"ok":true}`)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// readback shows what the talk holds of each key that was sent.
func (s *script) readback(_ context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := conformance.ReadbackReply{Complete: true}
	for _, id := range q.Identifiers {
		p := place{q.Object, q.IdentifierField, keyText(id)}
		shows := s.talk.elsewhere
		k := s.sent[p]
		if k != nil {
			shows = asSent
		}
		if k != nil && len(s.talk.holds) > 0 {
			shows = s.talk.holds[min(slices.Index(s.order, p), len(s.talk.holds)-1)]
		}
		if shows == nil {
			continue
		}
		if k == nil {
			k = &kept{id: id}
		}
		k.batches = s.batches
		if count, fields := shows(k); count > 0 {
			out.Records = append(out.Records, conformance.ReadbackRecord{Identifier: id, Count: count, Fields: fields})
		}
	}
	return out, nil
}

// keep remembers the records of a batch for the read-back, and which of them were
// acknowledged.
func (s *script) keep(a *asked, given *wire.Reply) {
	if len(a.records) == 0 {
		return
	}
	s.batches++
	success := acknowledgedIn(given)
	for _, r := range a.records {
		id := r[a.active]
		p := place{a.object, a.active, keyText(id)}
		if s.sent[p] == nil {
			s.sent[p] = &kept{id: id}
			s.order = append(s.order, p)
		}
		s.sent[p].sent(a.operation, r, success[keyText(id)])
	}
}

// knows reports whether a key of the batch was sent before, or was so by an
// operation that creates.
func (s *script) knows(a *asked, created bool) bool {
	return slices.ContainsFunc(a.records, func(r sentRecord) bool {
		k := s.sent[place{a.object, a.active, keyText(r[a.active])}]
		return k != nil && (k.created || !created)
	})
}

// acknowledgedIn are the keys whose results say success.
func acknowledgedIn(given *wire.Reply) map[string]bool {
	var reply struct {
		Result struct {
			Results []struct {
				Identifier json.RawMessage
				Success    any
			} `json:"record_results"`
		}
	}
	out := map[string]bool{}
	if json.Unmarshal(given.Body, &reply) != nil {
		return out
	}
	for _, r := range reply.Result.Results {
		if ok, _ := r.Success.(bool); ok && r.Identifier != nil {
			out[keyText(r.Identifier)] = true
		}
	}
	return out
}

// read takes a request apart.
func (s *script) read(call wire.Call) *asked {
	a := &asked{Call: call, rawID: "null"}
	var envelope struct {
		JSONRPC json.RawMessage
		Method  json.RawMessage
		ID      json.RawMessage
		Params  struct {
			Object   json.RawMessage
			SyncPlan rpc.SyncPlan `json:"sync_plan"`
			Records  []sentRecord
		}
	}
	if json.Unmarshal(call.Body, &envelope) != nil {
		return a
	}
	if envelope.ID != nil {
		a.rawID = string(envelope.ID)
	}
	if string(envelope.JSONRPC) != `"2.0"` || json.Unmarshal(envelope.Method, &a.method) != nil {
		return a
	}
	var object rpc.ObjectRef
	_ = json.Unmarshal(envelope.Params.Object, &object) // odd params name none
	plan := envelope.Params.SyncPlan
	a.object, a.operation, a.records = cmp.Or(object.APIName, plan.Object.APIName), plan.Operation, envelope.Params.Records
	for name, f := range plan.Schema {
		if f.ActiveIdentifier {
			a.active = name
		}
	}
	return a
}

// names are the entries of a table that fit the request.
func (a *asked) names() []string {
	switch {
	case a.CutAfterRequest || a.CutRequestAfter > 0 || a.CutResponseAfter > 0:
		return []string{"cut"}
	case a.Plain:
		return []string{"plain"}
	case a.HTTPMethod != "" && a.HTTPMethod != http.MethodPost:
		return []string{a.HTTPMethod}
	case a.stranger():
		return []string{"stranger:" + a.method, "stranger"}
	case !json.Valid(a.Body):
		return []string{"no JSON"}
	case bytes.HasPrefix(a.Body, []byte("[{")):
		return []string{"array"}
	case a.method == "":
		return []string{"no envelope"}
	case a.rawID == "null":
		return []string{"no id"}
	case !slices.Contains(rpc.Methods(), a.method):
		return []string{"unknown"}
	case a.method != rpc.MethodSyncBatch:
		return []string{a.method + ":" + a.object, a.method}
	case len(a.records) == 0:
		return []string{"sync_batch of none", "sync_batch:" + a.operation, a.method}
	}
	return []string{"sync_batch by " + a.active, "sync_batch:" + a.operation, a.method}
}

// stranger tells a call without the right credentials.
func (a *asked) stranger() bool {
	if values, ok := a.Header["Authorization"]; ok && !slices.Equal(values, []string{"Bearer " + freshToken}) {
		return true
	}
	if a.URL == "" {
		return false
	}
	u, err := url.Parse(a.URL)
	return err != nil || !slices.Equal(u.Query()["key"], []string{scriptSecret})
}

// bearer tells a call with a certain Authorization header.
func bearer(value string) func(a *asked) bool {
	return func(a *asked) bool { return slices.Equal(a.Header["Authorization"], []string{value}) }
}
