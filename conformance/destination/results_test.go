package destination

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// altered is an endpoint whose replies are changed on their way.
func altered(e *small, change func(call, reply string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(in)))
		whole := httptest.NewRecorder()
		e.ServeHTTP(whole, r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, change(string(in), whole.Body.String()))
	})
}

// TestNoFixtureHelps: where results break a rule, so that none counts as accepted, the
// others wait for that rule and for no fixture.
func TestNoFixtureHelps(t *testing.T) {
	t.Parallel()
	for by, change := range map[string]func(reply string) string{
		"RES-005": func(reply string) string {
			return strings.NewReplacer(`"success":true`, `"success":"true"`, `"success":false`, `"success":"false"`).Replace(reply)
		},
		"RES-001": func(reply string) string { return strings.ReplaceAll(reply, "record_results", "results") },
		"RES-004": func(reply string) string { return strings.ReplaceAll(reply, `"identifier":`, `"key":`) },
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			e := newSmall()
			h := altered(e, func(call, reply string) string {
				if strings.Contains(call, `"sync_batch"`) {
					return change(reply)
				}
				return reply
			})
			r, err := Run(context.Background(), Target{Handler: h}, writing(e))
			require.NoError(t, err)
			require.Contains(t, r.Failed, by)
			require.Contains(t, r.Summary, "fix "+by+" first")
			for _, c := range r.Checks {
				require.False(t, c.Status == conformance.Inconclusive && c.Decider == "fixtures", "%s: %s", c.ID, c.Reason)
			}
			require.Equal(t, []string{by}, resultOf(t, r, "SEM-001").BlockedBy)
		})
	}
	t.Run("refused", func(t *testing.T) { // by results that are sound
		e := newSmall()
		h := altered(e, func(call, reply string) string {
			if strings.Contains(call, `"sync_batch"`) {
				reply = strings.ReplaceAll(reply, `"success":true`, `"success":false,"error_message":"the region is missing"`)
			}
			return reply
		})
		r, err := Run(context.Background(), Target{Handler: h}, writing(e))
		require.NoError(t, err)
		require.Equal(t, "fixtures", resultOf(t, r, "SEM-001").Decider)
	})
}

// TestNullIDIsOneDefect: results with a null id break one rule, as those with another id do.
func TestNullIDIsOneDefect(t *testing.T) {
	e := newSmall()
	h := altered(e, func(call, reply string) string {
		if !strings.Contains(reply, `"result":`) {
			return reply
		}
		return regexp.MustCompile(`"id":"([^"\\]|\\.)*"`).ReplaceAllLiteralString(reply, `"id":null`)
	})
	r, err := Run(context.Background(), Target{Handler: h}, writing(e))
	require.NoError(t, err)
	require.Equal(t, []string{"RPC-003"}, r.Failed)
	for _, id := range []string{"PAR-001", "ERR-002", "HTTP-008"} {
		require.Equal(t, []string{"RPC-003"}, resultOf(t, r, id).BlockedBy, id)
	}
}

// TestWarningsAboutUnreadableBodies: bodies without JSON are RPC-001's, whatever else they break.
func TestWarningsAboutUnreadableBodies(t *testing.T) {
	e := newSmall()
	h := altered(e, func(_, reply string) string { return "DEBUG: done\n" + reply })
	r, err := Run(context.Background(), Target{Handler: h}, writing(e))
	require.NoError(t, err)
	require.Contains(t, r.Failed, "RPC-001")
	require.Contains(t, r.Summary, "fix RPC-001 first")
	for _, id := range []string{"RPC-010", "RPC-011", "HTTP-010", "RPC-012"} {
		require.Equal(t, []string{"RPC-001"}, resultOf(t, r, id).BlockedBy, id)
	}
}
