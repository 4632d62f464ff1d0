package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server"
)

// servePatiently is a service whose judge has no control API and waits for real:
// only that its time passes at once, since each wait moves the service's clock. One
// check at a time, for they share that time.
func servePatiently(t *testing.T, violations ...string) *bench {
	t.Helper()
	b := serving(t, server.Config{}, violations...)
	clock := b.target.ControlURL + "/clock"
	service.InTimeOf(&b.opts, func() time.Time {
		now, err := clockAt(http.Get(clock)) //nolint:noctx // a test's own server
		if err != nil {
			t.Error(err)
		}
		return now
	}, func(ctx context.Context, d time.Duration) error {
		body, err := json.Marshal(map[string]string{"advance": d.String()})
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, clock, bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		_, err = clockAt(http.DefaultClient.Do(r))
		return err
	})
	b.target.ControlURL, b.opts.Patient, b.opts.Serial = "", true, true
	return b
}

// clockAt reads an answer of the clock.
func clockAt(resp *http.Response, err error) (time.Time, error) {
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	var a struct{ Now time.Time }
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		return a.Now, fmt.Errorf("clock answered %d: %w", resp.StatusCode, err)
	}
	return a.Now, nil
}

// undecided are the checks that need more than the API without a control API: those about time, and
// the areas of which some cannot do without one.
func undecided(t *testing.T) []*conformance.Check {
	t.Helper()
	cat := catalogueOf(t, conformance.SuiteService)
	var out []*conformance.Check
	for _, c := range cat.Checks {
		if c.Clock || strings.HasPrefix(c.ID, "ORG-") || strings.HasPrefix(c.ID, "CERT-") {
			out = append(out, c)
		}
	}
	return out
}

// TestWaitingMatrix: without a clock to move, every check about time that can be waited for passes
// when time goes by, and the others report at once what they need.
func TestWaitingMatrix(t *testing.T) {
	b := servePatiently(t)
	checks := undecided(t)
	runs := matrixtest.Sample(t, sharedCode, checkCells(t, checks))
	for i, c := range checks {
		if runs[i] {
			b.opts.Select = append(b.opts.Select, c.ID)
		}
	}
	plan, err := service.Plan(b.target, b.opts)
	require.NoError(t, err)
	r := b.judge(t)
	require.Len(t, r.Checks, len(plan.Checks))
	for i, c := range r.Checks {
		t.Logf("%s %s %s %s %.0f ms", c.Status, c.ID, c.Reason, c.Evidence, c.DurationMS)
		want := plan.Checks[i]
		if want.Runs {
			require.Equal(t, conformance.Pass, c.Status, "%s: %s\n%s", c.ID, c.Reason, explain(r))
			continue
		}
		require.Equal(t, conformance.NotRun, c.Status, c.ID)
		require.Equal(t, []string{want.Reason, "--control-url"}, []string{c.Reason, c.Decider}, c.ID)
	}
}

// TestWaitingFinds: a mistake about time is found by waiting for it, too.
func TestWaitingFinds(t *testing.T) {
	for _, id := range []string{"LIFE-001", "RTRY-011", "THR-001"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			b := servePatiently(t, id)
			b.opts.Select = []string{id}
			r := b.judge(t)
			require.Equal(t, conformance.Fail, status(r, id), explain(r))
		})
	}
}

// TestWaitingForRequests: a patient judge lets a request go unanswered for minutes,
// and knows as soon as the service has given it up.
func TestWaitingForRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for deadlines of real time")
	}
	b := serveImpatient(t)
	b.target.ControlURL, b.opts.Patient, b.opts.RequestTimeout = "", true, 0
	b.opts.Select = []string{"TOUT-001", "TOUT-002", "TOUT-006"}
	r := b.judge(t)
	require.Equal(t, 3, r.Counts[conformance.Pass], explain(r))
}

// TestWaitingIsDocumented: docs/judge-service.md names exactly the checks that no
// a patient run lets run.
func TestWaitingIsDocumented(t *testing.T) {
	o := service.Options{Options: conformance.Options{Seed: 1}, NewSimulator: simulator, Listen: listen, Patient: true}
	p, err := service.Plan(service.Target{BaseURL: "http://127.0.0.1:1/api/v1", WorkspaceAPIKey: "k", PersonalAccessToken: "p"}, o)
	require.NoError(t, err)
	var reasons []string
	ids := map[string][]string{}
	for _, c := range p.Checks {
		if c.Runs {
			continue
		}
		require.Equal(t, "--control-url", c.Decider, c.ID)
		why, ends := strings.CutSuffix(c.Reason, "; needs --control-url")
		require.True(t, ends, c.Reason)
		if ids[why] == nil {
			reasons = append(reasons, why)
		}
		ids[why] = append(ids[why], c.ID)
	}
	table := "| checks | why |\n|---|---|\n"
	for _, why := range reasons {
		table += "| " + strings.Join(ids[why], ", ") + " | " + why + " |\n"
	}
	doc, err := os.ReadFile("../../docs/judge-service.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), "\n\n"+table+"\n")
	require.Contains(t, strings.Join(p.Notes, "\n"), "wait for real")
}
