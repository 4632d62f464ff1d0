package destination_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/internal/rules"
)

// sight is a call with a response, as a proxy has seen them.
func sight(n int, at time.Duration, method, params, response string) *conformance.Sight {
	return &conformance.Sight{
		Number: n, Timing: conformance.Timing{Started: time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC).Add(at), Total: time.Millisecond},
		Asked: conformance.Asked{Method: "POST", Target: "/", URL: "https://a.example/",
			RequestHeader: []conformance.HeaderLine{{Name: "Authorization", Value: "Bearer s3cret-token"}, {Name: "Content-Type", Value: "application/json"}},
			RequestBody:   fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s,"id":"7"}`, method, params)},
		Raw: []byte(response),
	}
}

func http200(result string) string {
	body := `{"jsonrpc":"2.0","id":"7","result":` + result + `}`
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

const contact = `{"object":{"object_api_name":"contact","label":"Contact"}}`

func batchOf(id string) string {
	return `{"sync_plan":{"object":{"object_api_name":"contact","label":"Contact"},"operation":"upsert","sync_run_id":2,"sync_id":1,"schema":{"email":{"active_identifier":true,"field":{"field_api_name":"email"}}}},"records":[{"email":"` + id + `"},{"email":"b@x.io"}]}`
}

// TestPassiveByHand puts exchanges to the passive judge that no simulator makes.
func TestPassiveByHand(t *testing.T) {
	refused := "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
	schema := func(name string) string {
		return http200(`{"fields":[{"field_api_name":"` + name + `","label":"x","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}`)
	}
	failed := "HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\nContent-Length: 70\r\n\r\n" + `{"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"db away"}}`
	good := http200(`{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}`)
	ops := http200(`{"operations":["upsert"]}`)
	for name, c := range map[string]struct {
		calls  []*conformance.Sight
		broken []string // of the report
		not    []string
	}{
		"a refused method between two that are let in": {calls: []*conformance.Sight{
			sight(1, 0, "test_connection", "{}", http200(`{"success":true}`)), sight(2, 1, "list_fields", contact, refused), sight(3, time.Second, "list_objects", "{}", http200(`{"objects":[{"object_api_name":"contact","label":"C"}]}`)),
		}, broken: []string{"AUTH-001"}},
		"a token that has expired": {calls: []*conformance.Sight{
			sight(1, 0, "test_connection", "{}", http200(`{"success":true}`)), sight(2, 1, "list_fields", contact, refused), sight(3, 2, "list_objects", "{}", refused),
		}, not: []string{"AUTH-001", "RPC-001", "HTTP-010"}},
		"a schema that changes at once": {calls: []*conformance.Sight{
			sight(1, 0, "list_fields", contact, schema("a")), sight(2, time.Second, "list_fields", contact, schema("b")),
		}, broken: []string{"FLD-010"}},
		"a schema that changes over the day": {calls: []*conformance.Sight{
			sight(1, 0, "list_fields", contact, schema("a")), sight(2, time.Hour, "list_fields", contact, schema("b")),
		}, not: []string{"FLD-010"}},
		"one batch that fails": {calls: []*conformance.Sight{
			sight(1, 0, "supported_operations", contact, ops), sight(2, 1, "sync_batch", batchOf("a@x.io"), failed), sight(3, 2, "sync_batch", batchOf("a@x.io"), good),
		}, not: []string{"OPS-004", "RES-002"}},
		"batches that all fail": {calls: []*conformance.Sight{
			sight(1, 0, "supported_operations", contact, ops), sight(2, 1, "sync_batch", batchOf("a@x.io"), failed), sight(3, 2, "sync_batch", batchOf("a@x.io"), failed),
		}, broken: []string{"OPS-004"}},
		"bytes behind a response": {calls: []*conformance.Sight{sight(1, 0, "test_connection", "{}", http200(`{"success":true}`)+"more")}, broken: []string{"HTTP-006"}},
		"a caller that goes away": {calls: []*conformance.Sight{func() *conformance.Sight {
			s := sight(1, 0, "test_connection", "{}", "")
			s.Raw, s.Err = nil, conformance.EndedBy("canceled", "the caller has gone")
			return s
		}()}, not: []string{"HTTP-003", "HTTP-006", "TIM-001"}},
		"a caller that breaks off its body": {calls: []*conformance.Sight{func() *conformance.Sight {
			s := sight(1, 0, "test_connection", "{}", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			s.RequestHeader = append(s.RequestHeader, conformance.HeaderLine{Name: "Content-Length", Value: strconv.Itoa(len(s.RequestBody))})
			s.RequestBody = s.RequestBody[:20]
			return s
		}()}, not: []string{"RPC-010"}},
		"an answer that is too late": {calls: []*conformance.Sight{func() *conformance.Sight {
			s := sight(1, 0, "test_connection", "{}", http200(`{"success":true}`))
			s.Total = 11 * time.Second
			return s
		}()}, broken: []string{"TIM-001"}},
		"an echoed token": {calls: []*conformance.Sight{sight(1, 0, "test_connection", "{}", http200(`{"success":true,"debug":"s3cret-token"}`))}, broken: []string{"AUTH-007"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := destination.NewPassive(destination.Target{URL: "https://a.example/"}, conformance.Options{Development: conformance.DevelopmentOn})
			require.NoError(t, err)
			for _, x := range c.calls {
				require.NotContains(t, fmt.Sprintf("%+v", p.Observe(x).Exchange()), "s3cret", "no record holds the token")
			}
			for range 2 { // Report can be called more than once
				r := p.Report()
				var broken []string
				for _, check := range r.Checks {
					if check.Status == conformance.Fail || check.Status == conformance.Warn {
						broken = append(broken, check.ID)
					}
				}
				for _, id := range c.broken {
					require.Contains(t, broken, id)
				}
				for _, id := range c.not {
					require.NotContains(t, broken, id)
				}
			}
		})
	}
}

// TestMoreCredentialsThanCanBeHidden: what has one more is neither judged nor kept.
func TestMoreCredentialsThanCanBeHidden(t *testing.T) {
	p, err := destination.NewPassive(destination.Target{URL: "https://a.example/"}, conformance.Options{Development: conformance.DevelopmentOn})
	require.NoError(t, err)
	dropped := 0
	for n := range 300 {
		x := sight(n+1, time.Duration(n)*time.Second, "test_connection", "{}", http200(fmt.Sprintf(`{"success":true,"debug":"tok-%d-s3cret"}`, n)))
		x.RequestHeader[0].Value = fmt.Sprintf("Bearer tok-%d-s3cret", n)
		if j := p.Observe(x); j.Dropped != "" {
			dropped++
		} else {
			require.NotContains(t, fmt.Sprintf("%+v", j.Exchange()), "s3cret")
		}
	}
	require.Equal(t, 44, dropped)
	require.Contains(t, p.Report().Notes[0], "44 exchanges neither judged nor kept")
}

// TestPassiveChecksAreMany: more than half of the checks that write nothing are decided
// by traffic, and each id is one of the catalogue.
func TestPassiveChecksAreMany(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	ids := rules.Decided()
	require.Greater(t, len(ids), 75)
	for _, id := range ids {
		_, ok := cat.Check(id)
		require.True(t, ok, id)
	}
	require.True(t, slices.Contains(ids, "RES-002"))
	_, err = destination.NewPassive(destination.Target{URL: "ftp://a/"}, conformance.Options{})
	var usage *conformance.UsageError
	require.True(t, errors.As(err, &usage))
}
