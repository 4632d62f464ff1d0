package dashboard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit/browser"
	"github.com/destkit/destkit/loadgen"
	"github.com/destkit/destkit/server"
)

// unsteady is an endpoint that answers every twentieth batch with 503.
func unsteady(t *testing.T) string {
	t.Helper()
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1)%20 == 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	return server.URL
}

// loading runs a load until its control stops it, and hands its result to finish.
func loading(t *testing.T, o loadgen.Options, finish func(*loadgen.Result) error) <-chan error {
	t.Helper()
	t.Cleanup(o.Control.Stop)
	ended := make(chan error, 1)
	go func() {
		r, err := loadgen.Run(context.Background(), o)
		if err == nil {
			for i := range o.Limits {
				o.Limits[i].Check(r)
			}
			r.Thresholds = o.Limits
			err = finish(r)
		}
		ended <- err
	}()
	return ended
}

// TestMatrixDashboardWalk walks through the page of a load in a real browser: looks at
// it, changes its rate, pauses it, lets it go on and stops it. The page becomes the
// report without being loaded again.
func TestMatrixDashboardWalk(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("a real browser walks with DESTKIT_TIER=full")
	}
	control := &loadgen.Control{}
	limits := []loadgen.Threshold{threshold(t, "p99>1ns"), threshold(t, "errors>50%"), threshold(t, "lost>0")}
	l, server := served(t, LoadConfig{Control: control, Limits: limits})
	b := browser.New(t, server.URL+console.Path)
	b.Do(chromedp.Navigate(server.URL + "/"))
	b.Sees("The first figures come soon.")
	b.Look("load-start")

	o := loadgen.Options{
		Target: loadgen.Target{URL: unsteady(t) + "/"}, Write: true, Control: control, Limits: limits, Connections: 4, Duration: 10 * time.Minute,
		Stages:   []loadgen.Stage{{Duration: time.Minute, From: 50, To: 100}, {Duration: 9 * time.Minute, From: 100, To: 100}},
		Work:     loadgen.Work{Objects: []loadgen.Share{{Name: "contact", Weight: 1}}, BatchSize: 5},
		Progress: l.Moment, Note: l.Note,
	}
	ended := loading(t, o, l.Finish)
	b.Sees("asked for")
	b.Sees("http_status")
	b.Sees("broken")
	require.True(t, b.Until("document.querySelectorAll('.charts path.line').length > 8"), "no curves")
	b.Look("load")
	b.Fill("input[name=rate]", "20")
	b.Click(browser.Button("/rate"))
	b.Sees("The rate is 20 requests/s from now on.")
	b.Sees("of 20 asked for")
	b.Fill("input[name=rate]", "fast")
	b.Click(browser.Button("/rate"))
	b.Sees("must be a number of requests per second")
	b.Look("load-refused")
	b.Open("/")
	pausesAndStops(t, b, ended, "load")
}

// pausesAndStops uses the buttons of a load, up to its report.
func pausesAndStops(t *testing.T, b *browser.Tab, ended <-chan error, name string) {
	b.Click(browser.Button("/pause"))
	b.Sees("paused")
	b.Look(name + "-paused")
	b.Click(browser.Button("/resume"))
	b.Sees("The load goes on.")
	b.Do(chromedp.Evaluate("window.confirm = () => true", nil))
	b.Click(browser.Button("/stop"))
	b.Sees("ended by: stopped")
	require.NoError(t, <-ended)
	b.Look(name + "-report")
}

// unsteadyService is a service that answers every thirtieth request of its API with 503.
// It gives the key of its workspace.
func unsteadyService(t *testing.T) (url, key string) {
	t.Helper()
	service, err := server.New(t.Context(), server.Config{})
	require.NoError(t, err)
	var calls atomic.Int64
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1)%30 == 0 {
			http.Error(w, `{"status":"error","message":"busy","errors":[]}`, http.StatusServiceUnavailable)
			return
		}
		service.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { listening.Close(); require.NoError(t, service.Close()) })
	return listening.URL, service.FirstTokens().WorkspaceAPIKey
}

// TestMatrixServiceDashboardWalk walks through the page of a load on the REST API: it
// speaks of clients, calls and lists, and never of records. Its end is the report.
func TestMatrixServiceDashboardWalk(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("a real browser walks with DESTKIT_TIER=full")
	}
	control := &loadgen.Control{}
	limits := []loadgen.Threshold{threshold(t, "p99>1ns"), threshold(t, "errors>50%")}
	l, page := served(t, LoadConfig{Control: control, Limits: limits})
	url, key := unsteadyService(t)
	b := browser.New(t, page.URL+console.Path)
	b.Do(chromedp.Navigate(page.URL + "/"))
	b.Sees("The first figures come soon.")

	o := loadgen.Options{
		Target: loadgen.Target{URL: url, Token: key}, Service: &loadgen.Service{Scenario: loadgen.ScenarioList}, Control: control, Limits: limits,
		Connections: 4, Duration: 10 * time.Minute, Stages: []loadgen.Stage{{Duration: 10 * time.Minute, From: 60, To: 60}}, Progress: l.Moment, Note: l.Note,
	}
	ended := loading(t, o, l.Finish)
	b.Sees("clients of the REST API")
	b.Sees("asked for")
	b.Sees("http_status")
	b.Sees("broken")
	require.True(t, b.Until("document.querySelectorAll('.charts path.line').length > 4"), "no curves")
	require.True(t, b.Until("!/records/i.test(document.querySelector('main').innerText)"), "the page of a REST API speaks of records")
	b.Look("load-service")
	b.Fill("input[name=rate]", "20")
	b.Click(browser.Button("/rate"))
	b.Sees("The rate is 20 requests/s from now on.")
	b.Sees("of 20 asked for")
	pausesAndStops(t, b, ended, "load-service")
}
