package destination_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	formats "github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

// processes starts two simulators with one configuration.
func processes(t *testing.T, config destsim.Config) (urls [2]string) {
	for i := range urls {
		sim, err := destsim.New(config)
		require.NoError(t, err)
		server := httptest.NewServer(sim)
		t.Cleanup(func() {
			server.Close()
			require.NoError(t, sim.Close())
		})
		urls[i] = server.URL
	}
	return urls
}

// sharing are two servers before one simulator: replicas with everything in common.
func sharing(t *testing.T, config destsim.Config) (urls [2]string) {
	sim, err := destsim.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	for i := range urls {
		server := httptest.NewServer(sim)
		t.Cleanup(server.Close)
		urls[i] = server.URL
	}
	return urls
}

// judged writes into contact, with all hooks at the first of the processes.
func judged(t *testing.T, hooksAt string, target destination.Target, selected ...string) *conformance.Report {
	report, err := destination.Run(context.Background(), target, conformance.Options{
		Write: true, Objects: []string{"contact"}, Seed: 7, Select: selected,
		Readback: conformance.HookSpec{URL: hooksAt + "/_control/readback"}, Hooks: simHooks(hooksAt),
	})
	require.NoError(t, err)
	return report
}

// broken are the ids of the checks that do not hold.
func broken(report *conformance.Report) map[string]conformance.CheckResult {
	out := map[string]conformance.CheckResult{}
	for _, c := range report.Checks {
		if c.Status == conformance.Fail || c.Status == conformance.Flaky || c.Status == conformance.Warn || c.Status == conformance.HarnessError {
			out[c.ID] = c
		}
	}
	return out
}

// blockedBy are the checks under which another one is folded.
func blockedBy(report *conformance.Report, id string) []string {
	for _, c := range report.Checks {
		if c.ID == id {
			return c.BlockedBy
		}
	}
	return nil
}

// TestReplicasOnOneStoreConform: two replicas on one store are one destination,
// called in turn and behind a balancer.
func TestReplicasOnOneStoreConform(t *testing.T) {
	t.Parallel()
	matrixtest.Long(t)
	urls := sharing(t, destsim.Config{Token: "t0ken"})
	report := judged(t, urls[0], destination.Target{URL: urls[0], Replicas: urls[1:], Token: "t0ken"})
	require.Empty(t, broken(report))
	require.Zero(t, report.ExitStatus, report.Summary)
	require.Equal(t, conformance.TierSemantics, report.Tier)
	require.Equal(t, urls[1:], report.Replicas)

	report = judged(t, urls[0], destination.Target{URL: balancer(t, urls), Token: "t0ken"}, "STA-*", "SEM-*", "DUR-002", "PAR-*")
	require.Empty(t, broken(report))
	require.Zero(t, report.ExitStatus, report.Summary)
}

// TestReplicasWithMemoriesAreCaught: two processes that keep records for themselves are not one
// destination, and the finding names the process that was called.
func TestReplicasWithMemoriesAreCaught(t *testing.T) {
	t.Parallel()
	urls := processes(t, destsim.Config{})
	report, err := destination.Run(context.Background(), destination.Target{URL: urls[0], Replicas: urls[1:]}, conformance.Options{
		Write: true, Objects: []string{"contact"}, Seed: 7,
	})
	require.NoError(t, err)
	require.Equal(t, 1, report.ExitStatus, report.Summary)
	require.Contains(t, broken(report), "OPS-007", "no record that was created is there for the next call")
	require.Equal(t, []string{"OPS-007"}, blockedBy(report, "STA-006"))
	finding := broken(report)["OPS-007"].Findings[0]
	require.Contains(t, urls, finding.Replica)
	require.Contains(t, finding.Actual, "this check sent calls 1, 3, 5, 7 to "+urls[0]+", calls 2, 4, 6, 8 to "+urls[1])
	require.Contains(t, finding.Cause, "a process keeps for itself")
}

// TestOneReplicaAlone: a finding about one process only names it.
func TestOneReplicaAlone(t *testing.T) {
	good, bad := processes(t, destsim.Config{}), processes(t, destsim.Config{Violate: []string{"RPC-003"}})
	for _, test := range []struct{ url, replica, want string }{
		{good[0], bad[0], bad[0]},
		{bad[0], good[0], bad[0]},
		{bad[0], "", ""},
	} {
		target := destination.Target{URL: test.url}
		if test.replica != "" {
			target.Replicas = []string{test.replica}
		}
		report, err := destination.Run(context.Background(), target, conformance.Options{Seed: 7, Select: []string{"RPC-003"}})
		require.NoError(t, err)
		require.Contains(t, broken(report), "RPC-003")
		for _, f := range broken(report)["RPC-003"].Findings {
			require.Equal(t, test.want, f.Replica, f.Actual)
		}
	}
}

// TestReplicaThatIsNotThere: nothing is judged, and the report names it; its URL may
// hold a secret.
func TestReplicaThatIsNotThere(t *testing.T) {
	urls := processes(t, destsim.Config{})
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, name := range map[string]string{gone.URL: gone.URL, gone.URL + "/?key=s3cret": "$DESTKIT_URL (replica 1)"} {
		target := destination.Target{URL: urls[0] + strings.TrimPrefix(url, gone.URL), Replicas: []string{url}}
		report, err := destination.Run(context.Background(), target, conformance.Options{})
		require.NoError(t, err)
		require.Equal(t, 3, report.ExitStatus, report.Summary)
		require.Equal(t, conformance.Unknown, report.Verdict)
		require.Len(t, report.Problems, 1)
		require.Equal(t, "unreachable", report.Problems[0].Kind)
		require.Contains(t, report.Problems[0].Message, "no HTTP response from the replica "+name+": nothing listens at ")
		_, err = destination.Plan(context.Background(), target, conformance.Options{})
		require.ErrorContains(t, err, "no HTTP response from the replica "+name)
	}
}

// TestReplicasKeepTheirSecrets: no report shows the secrets in any of their URLs.
func TestReplicasKeepTheirSecrets(t *testing.T) {
	t.Parallel()
	urls := processes(t, destsim.Config{})
	report, err := destination.Run(context.Background(), destination.Target{
		URL: withSecrets(urls[0], "one"), Replicas: []string{withSecrets(urls[1], "two")},
	}, conformance.Options{Write: true, Objects: []string{"contact"}, Seed: 7, Select: []string{"STA-006"}})
	require.NoError(t, err)
	require.Contains(t, broken(report), "OPS-007", report.Summary)
	finding := broken(report)["OPS-007"].Findings[0]
	require.Contains(t, finding.Actual, "this check sent calls 1, 3, 5, 7 to $DESTKIT_URL, calls 2, 4, 6, 8 to $DESTKIT_URL (replica 1)")
	require.Contains(t, finding.Cause, "a process keeps for itself")
	require.Contains(t, []string{"$DESTKIT_URL", "$DESTKIT_URL (replica 1)"}, finding.Replica)
	require.Equal(t, []string{"$DESTKIT_URL (replica 1)"}, report.Replicas)
	text, err := json.Marshal(report)
	require.NoError(t, err)
	require.NotContains(t, string(text), "s3cret")
	for _, format := range formats.Formats() {
		var page strings.Builder
		require.NoError(t, formats.Options{}.Write(format, &page, report))
		require.NotContains(t, page.String(), "s3cret", format)
		if format == formats.JUnit || format == formats.SARIF {
			require.Contains(t, page.String(), "shown by $DESTKIT_URL", format)
			require.Contains(t, page.String(), "calls 2, 4, 6, 8 to $DESTKIT_URL (replica 1)", format)
		}
	}
}

// withSecrets puts a secret into each part of a URL that may hold one.
func withSecrets(raw, n string) string {
	return strings.Replace(raw, "http://", "http://user"+n+":s3cret-pass-"+n+"@", 1) + "/?key=s3cret-" + n
}

// balancer spreads connections over servers, as any TCP balancer does.
func balancer(t *testing.T, urls [2]string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	var turn atomic.Int64
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(urls[turn.Add(1)%2], "http://"))
			if err != nil {
				client.Close()
				continue
			}
			pipe := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				to.Close()
				from.Close()
			}
			go pipe(server, client)
			go pipe(client, server)
		}
	}()
	return "http://" + ln.Addr().String()
}

// TestReplicasThatCannotBe are refused before anything is sent, and no message
// repeats a URL.
func TestReplicasThatCannotBe(t *testing.T) {
	for name, test := range map[string]struct {
		replicas []string
		want     string
	}{
		"no URL":     {[]string{"127.0.0.1:8080"}, "replica 1 "},
		"scheme":     {[]string{"ftp://10.0.0.2/s3cret"}, "the URL of the replica 1 must start with https://"},
		"no host":    {[]string{"http:///s3cret"}, "the URL of the replica 1 has no host"},
		"port":       {[]string{"http://10.0.0.2:99999/s3cret"}, `the URL of the replica 1 has the port "99999"`},
		"other line": {[]string{"https://10.0.0.2/s3cret"}, "the URL of the replica 1 is https and that of the endpoint http"},
		"the same":   {[]string{"http://10.0.0.2/s3cret", "http://10.0.0.1:80/s3cret"}, "the URL of the replica 2 is given twice"},
	} {
		_, err := destination.Run(context.Background(), destination.Target{URL: "http://10.0.0.1/s3cret", Replicas: test.replicas}, conformance.Options{})
		var usage *conformance.UsageError
		require.ErrorAs(t, err, &usage, name)
		require.ErrorContains(t, err, test.want, name)
		require.NotContains(t, err.Error(), "s3cret", name)
	}
	_, err := destination.Run(context.Background(), destination.Target{Handler: httptest.NewServer(nil).Config.Handler, Replicas: []string{"http://10.0.0.2/"}}, conformance.Options{})
	require.Error(t, err)
	_, err = destination.Run(context.Background(), destination.Target{URL: "http://10.0.0.1/?k=a", Replicas: []string{"http://10.0.0.2/"}}, conformance.Options{URLSecret: "query:k"})
	require.ErrorContains(t, err, `no query parameter "k"`)
}
