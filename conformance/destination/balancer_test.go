package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/cleanup"
	"github.com/destkit/destkit/destsim/rpc"
)

// badGateway is the page of a balancer that reached nothing.
const badGateway = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"

// balancer sits in front of an endpoint and answers some of its calls itself.
type balancer struct {
	*small
	instead func(w http.ResponseWriter, operation, method string) bool
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var c struct {
		Method string
		Params struct {
			SyncPlan struct{ Operation string } `json:"sync_plan"`
		}
	}
	_ = json.Unmarshal(body, &c)
	b.answering.Lock()
	done := b.instead(w, c.Params.SyncPlan.Operation, c.Method)
	b.answering.Unlock()
	if done {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	b.small.ServeHTTP(w, r)
}

// TestCleanUpRepeatsADisturbedBatch: what passes by itself leaves no records behind.
func TestCleanUpRepeatsADisturbedBatch(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(w http.ResponseWriter){
		"502": func(w http.ResponseWriter) { w.WriteHeader(502); fmt.Fprint(w, badGateway) },
		"503": func(w http.ResponseWriter) { w.WriteHeader(503) },
		"504": func(w http.ResponseWriter) { w.WriteHeader(504) },
		"429": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(429)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"slow down"}}`)
		},
		"a lost connection": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, deletes := newSmall(), 0
			b := &balancer{small: e, instead: func(w http.ResponseWriter, operation, _ string) bool {
				if operation != rpc.OperationDelete {
					return false
				}
				if deletes++; deletes > 3 {
					return false
				}
				defer func() {
					if p := recover(); p != nil {
						e.answering.Unlock()
						panic(p)
					}
				}()
				disturb(w)
				return true
			}}
			r := judged(t, b, writeCheck, writing(e))
			require.Equal(t, conformance.Pass, resultOf(t, r, "WRI-001").Status)
			require.Empty(t, r.Residue.Refused)
			require.Empty(t, r.Residue.Unknown)
			require.NotZero(t, r.Residue.Cleaned)
			require.Empty(t, e.keys("contact"))
		})
	}
}

// TestABalancerForEver: the judge does not repeat the batch for ever, and names leftovers.
func TestABalancerForEver(t *testing.T) {
	t.Parallel()
	e, deletes := newSmall(), 0
	b := &balancer{small: e, instead: func(w http.ResponseWriter, operation, _ string) bool {
		if operation != rpc.OperationDelete {
			return false
		}
		deletes++
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, badGateway)
		return true
	}}
	r := judged(t, b, writeCheck, writing(e))
	require.Less(t, deletes, 1+cleanup.DeleteRepeats+cleanup.MostDisturbed)
	require.NotEmpty(t, r.Residue.Refused)
	require.Contains(t, r.Residue.Refused[0].Reason, "HTTP 502")
}

const parallelCheck = `
  @PAR-901 @must @spec @spec-4.2.3 @alone @evidence-answers
  Scenario: Parallel planning calls have their own replies
    The service plans many syncs at once.
    Cause: state of a call is kept in a global.
    Fix: keep everything of a call in the call.
    When the service calls "list_fields" for every object
    And the service calls "list_fields" for every object 32 times in parallel
    Then every listed object has the same fields each time
`

// TestABalancerIsNoGlobal: a difference between calls at once and calls alone speaks of
// what the endpoint shares only where the endpoint itself has answered.
func TestABalancerIsNoGlobal(t *testing.T) {
	for _, balanced := range []bool{true, false} {
		e, calls := newSmall(), 0
		e.objects = []string{"contact", "order"}
		b := &balancer{small: e, instead: func(w http.ResponseWriter, _, method string) bool {
			if method != rpc.MethodListFields {
				return false
			}
			if calls++; balanced && calls <= 4 || !balanced && calls%5 != 0 {
				return false
			}
			if balanced { // and no repeat is answered
				w.WriteHeader(http.StatusBadGateway)
				fmt.Fprint(w, badGateway)
			} else {
				fmt.Fprint(w, `{"jsonrpc":"2.0","id":"7","result":{"fields":[]}}`)
			}
			return true
		}}
		found := resultOf(t, judged(t, b, parallelCheck, conformance.Options{}), "PAR-901")
		require.NotEmpty(t, found.Findings, found.Reason)
		for _, f := range found.Findings {
			require.Equal(t, !balanced, strings.Contains(f.Cause, "global"), f.Cause)
			require.Equal(t, balanced, strings.Contains(f.Cause, "answered HTTP 502 in its place"), f.Cause)
			require.Equal(t, balanced, strings.Contains(f.Fix, "every call reaches the endpoint"), f.Fix)
		}
	}
}

// TestADisturbanceIsOneFinding: a call that is answered when it is made again breaks no rule
// of its subject.
func TestADisturbanceIsOneFinding(t *testing.T) {
	for name, disturb := range map[string]func(w http.ResponseWriter){
		"a page": func(w http.ResponseWriter) { w.WriteHeader(503); fmt.Fprint(w, badGateway) },
		"an envelope": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(503)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"busy"}}`)
		},
		"a lost connection": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, calls := newSmall(), 0
			b := &balancer{small: e, instead: func(w http.ResponseWriter, _, _ string) bool {
				if calls++; calls%37 != 0 {
					return false
				}
				if disturb == nil {
					e.answering.Unlock()
					panic(http.ErrAbortHandler)
				}
				disturb(w)
				return true
			}}
			r, err := Run(context.Background(), Target{Handler: b}, writing(e))
			require.NoError(t, err)
			require.Empty(t, r.Failed, r.Summary)
			if disturb != nil { // a kept connection may be lost
				require.Contains(t, brokenIn(r), "ERR-007")
			}
			still, err := Run(context.Background(), Target{Handler: newSmall()}, writing(newSmall()))
			require.NoError(t, err)
			require.Subset(t, append(brokenIn(still), "ERR-007"), brokenIn(r))
		})
	}
}

// TestAConnectionLostBehindAContinue: whichever call of the odd forms loses it.
func TestAConnectionLostBehindAContinue(t *testing.T) {
	for lost := 1; ; lost++ {
		e, calls := newSmall(), 0
		o := writing(e)
		o.Select = []string{"HTTP-009"}
		r, err := Run(t.Context(), Target{Handler: &balancer{small: e, instead: func(http.ResponseWriter, string, string) bool {
			if calls++; calls == lost {
				e.answering.Unlock()
				panic(http.ErrAbortHandler)
			}
			return false
		}}}, o)
		require.NoError(t, err)
		require.Empty(t, brokenIn(r), "call %d", lost)
		if calls < lost {
			return
		}
	}
}
