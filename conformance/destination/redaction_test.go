package destination

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
)

// The secrets hold what each encoding writes in its own way.
const (
	secretToken  = `tok/3n+"of"=the&<tests>'42`
	secretQuery  = `qu3ry/sécr+t "&1"`
	secretPath   = `p4th sécret/<'2'>`
	secretHeader = `h3ader=/"v+l'ue&<3>`
)

// gossip answers like the small endpoint and repeats every secret in some encodings,
// in headers, results, messages and error objects.
func gossip(e *small) http.Handler {
	var all []string
	secrets := []string{secretToken, secretQuery, secretPath, secretHeader}
	for i, form := range slices.Sorted(maps.Keys(testkit.Encodings(secretToken))) {
		if form != "base64 three times" { // bodies are looked into two deep
			all = append(all, testkit.Encodings(secrets[i%len(secrets)])[form])
		}
	}
	replica := strings.Join(all, " | ")
	e.answer = func(method string, nth int, body []byte) string {
		switch {
		case method == "sync_batch":
			return strings.ReplaceAll(refuseAll(body), `"no"`, encoded(replica))
		case method == "test_connection" && nth > 1:
			return `{"jsonrpc":"2.0","id":$ID,"result":{"success":"` + replica + `"}}` // not even JSON
		case method == "get_sync_speed":
			return `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":` + encoded(replica) + `,"data":` + encoded(all) + `}}`
		}
		return ""
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		w.Header().Set("X-Echo", r.Header.Get("Authorization")+" "+r.URL.String())
		w.Header().Set("X-Told", strings.ReplaceAll(url.PathEscape(replica), "\n", ""))
		e.ServeHTTP(w, r)
	})
}

// textsOf are all strings of a JSON document, names and values.
func textsOf(t *testing.T, text string) (all []string) {
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if s, ok := token.(string); ok {
			all = append(all, s)
		}
	}
}

// leaks are the forms of secrets that a report holds, in its JSON text or in
// any of its strings. Bodies in base64 are looked into.
func leaks(t *testing.T, report any, secrets ...string) []string {
	t.Helper()
	text := encoded(report)
	hay := []string{text}
	for _, s := range textsOf(t, text) {
		hay = append(hay, s)
		if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
			hay = append(hay, string(raw))
		}
	}
	whole := strings.Join(hay, "\n")
	var found []string
	for _, s := range secrets {
		for name, form := range testkit.Encodings(s) {
			if strings.Contains(whole, form) {
				found = append(found, name+" of "+s)
			}
		}
	}
	return found
}

// TestMatrixNoSecretInTheReport: the endpoint repeats every secret wherever it can.
func TestMatrixNoSecretInTheReport(t *testing.T) {
	matrixtest.Long(t)
	address := "http://destination.test/" + url.PathEscape(secretPath) + "/rpc?key=" + url.QueryEscape(secretQuery)
	for _, spec := range []string{"query:key", "path:0"} {
		t.Run(spec, func(t *testing.T) {
			if testing.Short() && spec == "path:0" {
				t.Skip("the search for twelve forms of each secret takes long under the race detector")
			}
			t.Parallel()
			e := newSmall()
			target := Target{URL: address, Handler: gossip(e), Token: secretToken, Headers: map[string]string{"X-Api-Key": secretHeader}}
			opts := conformance.Options{Write: true, Objects: []string{"contact"}, URLSecret: spec, Seed: 7, Profile: conformance.ProfileStrict}
			r, err := Run(context.Background(), target, opts)
			require.NoError(t, err)
			require.NotEmpty(t, r.Failed, "there is something to report")
			require.Greater(t, strings.Count(encoded(r), "$DESTKIT_TOKEN"), 10)
			secrets := []string{secretToken, secretQuery, secretHeader}
			if spec == "path:0" {
				secrets = append(secrets, secretPath) // a path is secret where it is declared to be
			}
			require.Empty(t, leaks(t, r, secrets...))
		})
	}
}

// TestLeakTestSees: the search of these tests finds what it looks for.
func TestLeakTestSees(t *testing.T) {
	for name, form := range testkit.Encodings(secretToken) {
		require.Contains(t, leaks(t, &conformance.Report{Summary: "x" + form + "y"}, secretToken), name+" of "+secretToken)
	}
	require.NotEmpty(t, leaks(t, &conformance.Report{Summary: base64.StdEncoding.EncodeToString([]byte(secretToken))}, secretToken))
	require.Empty(t, leaks(t, &conformance.Report{Summary: "nothing"}, secretToken))
}

// TestNoSecretInPlanAndProblems: the other ways out are closed too.
func TestNoSecretInPlanAndProblems(t *testing.T) {
	target := Target{URL: "http://destination.test/rpc?key=" + url.QueryEscape(secretQuery), Handler: gossip(newSmall()), Token: secretToken}
	p, err := Plan(context.Background(), target, conformance.Options{})
	require.NoError(t, err)
	require.Empty(t, leaks(t, p, secretToken, secretQuery))

	sick := newSmall()
	sick.answer = func(string, int, []byte) string {
		return `{"jsonrpc":"2.0","id":$ID,"result":{"success":false,"error_message":` + encoded("login "+secretToken) + `}}`
	}
	target.Handler = sick
	r, err := Run(context.Background(), target, conformance.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"unhealthy"}, problemKinds(r))
	require.Empty(t, leaks(t, r, secretToken, secretQuery))
	require.Contains(t, r.Problems[0].Message, "$DESTKIT_TOKEN")
}

// TestNoSecretInHookErrors: a hook may print its configuration when it fails,
// before the first write and later.
func TestNoSecretInHookErrors(t *testing.T) {
	for _, good := range []int{0, 2} {
		e := newSmall()
		opts := writing(e)
		asked := 0
		opts.ReadbackFunc = func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
			if asked++; asked <= good {
				return e.readback(ctx, q)
			}
			return conformance.ReadbackReply{}, errors.New("cannot log in with the-token-of-the-tests")
		}
		r := judged(t, e, writeCheck, opts)
		said := resultOf(t, r, "WRI-001").Reason
		for _, p := range r.Problems {
			said += p.Message
		}
		require.Contains(t, said, "cannot log in with $DESTKIT_TOKEN")
		require.Empty(t, leaks(t, r, "the-token-of-the-tests"))
	}
}
