package destination

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestEveryStepIsDefined: each sentence of the catalogue has exactly one meaning.
func TestEveryStepIsDefined(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	suite := engine.Suite{Catalogue: cat, Steps: judge.Definitions()}
	require.Empty(t, suite.Undefined())
}

// TestStepsAreShared: at most one definition in five serves a single scenario, and none is unused.
func TestStepsAreShared(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	single, unused := []string{}, []string{}
	for _, text := range Steps() {
		pattern := regexp.MustCompile(text)
		users := map[string]bool{}
		for _, c := range cat.Checks {
			for _, s := range c.Steps {
				if _, said, _ := strings.Cut(s, " "); pattern.MatchString(said) {
					users[c.ID] = true
				}
			}
		}
		switch len(users) {
		case 0:
			unused = append(unused, text)
		case 1:
			single = append(single, text)
		}
	}
	require.Empty(t, unused)
	require.LessOrEqual(t, len(single)*5, len(judge.Definitions()), "%d of %d: %v", len(single), len(judge.Definitions()), single)
}

// TestARedirectIsShownAtTheConfiguredURL: the command of the finding sends what the
// service sends, to the URL that the judge was given.
func TestARedirectIsShownAtTheConfiguredURL(t *testing.T) {
	e := newSmall()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/behind") {
			w.Header().Set("Location", r.URL.Path+"behind")
			w.WriteHeader(http.StatusPermanentRedirect)
			return
		}
		e.ServeHTTP(w, r)
	})
	r := judged(t, h, `
  @HTP-001 @must @spec @spec-4.2 @evidence-responses
  Scenario: No call is redirected
    The service does not follow.
    When the service calls "test_connection"
    Then every HTTP response is no redirect
`, conformance.Options{})
	found := resultOf(t, r, "HTP-001")
	require.Len(t, found.Findings, 1)
	require.Contains(t, found.Findings[0].Actual, "status 308 to /behind")
	require.NotContains(t, found.Findings[0].Curl, "behind")
	require.Contains(t, found.Findings[0].Curl, r.Target)
}

// TestFailuresInWords: no finding shows the text of an error of Go.
func TestFailuresInWords(t *testing.T) {
	within := &wire.Reply{Kind: wire.KindTruncated, Received: 90, Err: fmt.Errorf("read response body: %w", &net.OpError{Op: "read", Err: syscall.ECONNRESET})}
	require.Equal(t, "the response was truncated: the server reset the connection in the middle of it", (&exchange.Reply{Reply: within}).Failure())
	c := &exchange.Reply{Reply: &wire.Reply{Kind: wire.KindTLS, Err: &wire.Error{Kind: wire.KindTLS, Op: "tls handshake", Err: fmt.Errorf("tls: no ciphers in common")}}}
	require.Equal(t, "the TLS handshake failed: no ciphers in common", c.Failure())
}
