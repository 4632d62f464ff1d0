package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/demo"
	"github.com/destkit/destkit/cmd/destkit/internal/loads"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/loadgen"
)

// dashboard is what a test reads of a dashboard of Grafana.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

// family is a metric of a scrape with the labels of its samples.
type family struct {
	kind   string // counter, gauge or histogram
	labels []string
}

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	sampleLine = regexp.MustCompile(`(?m)^([a-z_:]+)(?:\{(.*)\})? \S+$`)
	labelName  = regexp.MustCompile(`([a-z_]+)="`)
	inLegend   = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
	ofVariable = regexp.MustCompile(`^label_values\(([a-z_]+), job\)$`)
)

// parseScrape reads the text that Prometheus gets, by the name that queries use.
func parseScrape(text string) map[string]family {
	kinds, all := map[string]string{}, map[string]family{}
	for _, m := range typeLine.FindAllStringSubmatch(text, -1) {
		kinds[m[1]] = m[2]
	}
	for _, m := range sampleLine.FindAllStringSubmatch(text, -1) {
		f := all[m[1]]
		if f.kind = kinds[m[1]]; f.kind == "" {
			f.kind = "histogram" // its parts have no type
		}
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(f.labels, l[1]) {
				f.labels = append(f.labels, l[1])
			}
		}
		all[m[1]] = f
	}
	return all
}

// scraped requests metrics.
func scraped(t *testing.T, url string) map[string]family {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	all := parseScrape(string(text))
	require.NotEmpty(t, all)
	return all
}

// scrapeAll starts a service, a simulator and a load, lets each do what its metrics
// count, and gives what Prometheus would get, by dashboard.
func scrapeAll(t *testing.T) map[string]map[string]family {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	target, err := demo.NewDestination(ctx, destsim.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, target.Stop()) }()
	service, client, err := demo.NewService(ctx, demo.Places{Service: filepath.Join(dir, "s"), Key: filepath.Join(dir, "k")}, target.Certificates.CAPEM())
	require.NoError(t, err)
	defer func() { require.NoError(t, service.Stop()) }()
	w := &demo.World{API: client, Destination: demo.ControlOf(target)}
	require.NoError(t, w.Make(ctx, target.URL, 20))
	_, err = w.RunOnce(ctx, &demo.Demo{Screen: io.Discard, Out: io.Discard}, 20)
	require.NoError(t, err)
	// A fault of each.
	require.NoError(t, client.Control(ctx, http.MethodPost, "/faults", json.RawMessage(`{"kind":"status","operation":"listSyncs"}`), nil))
	require.Error(t, client.Get(ctx, "/syncs", nil))
	require.NoError(t, w.Destination.Control(ctx, http.MethodPost, "/faults", json.RawMessage(`{"kind":"http_status","status":503,"when":{"method":"get_sync_speed"}}`), nil))
	endpoint := *w.Destination
	endpoint.Token = demo.Token
	require.Error(t, endpoint.Call(ctx, http.MethodPost, "/", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"get_sync_speed","params":{}}`), nil))

	var simulator strings.Builder
	answer, err := w.Destination.HTTP.Get(target.URL + "/_control/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	_, err = io.Copy(&simulator, answer.Body)
	require.NoError(t, err)

	var screen strings.Builder
	meter, err := loads.ServeMetrics(context.Background(), "127.0.0.1:0", &screen)
	require.NoError(t, err)
	defer meter.Stop()
	meter.Take(loadgen.Moment{
		Phase: "load", Elapsed: 12 * time.Second, Of: time.Minute, Requests: 600_000, Records: 600_000, Errors: 3, InFlight: 4, Asked: 50_000,
		Latest: loadgen.Point{RequestsPerSecond: 50_012, RecordsPerSecond: 50_012, P50: 0.31, P95: 0.8, P99: 1.7, Max: 123.4, ServiceP50: 0.2, ServiceP99: 1.1},
	})
	return map[string]map[string]family{
		"service.json":   scraped(t, service.URL+"/metrics"),
		"simulator.json": parseScrape(simulator.String()),
		"load.json":      scraped(t, regexp.MustCompile(`http://\S+/metrics`).FindString(screen.String())),
	}
}

// TestDashboards: each query of the dashboards uses a metric that is scraped, with
// labels that it has, as its type allows.
func TestDashboards(t *testing.T) {
	scrapes := scrapeAll(t)
	files, err := filepath.Glob(filepath.Join(deployed, "grafana", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, len(scrapes))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), file)
		metrics := scrapes[filepath.Base(file)]
		require.NotEmpty(t, metrics, file)
		used := map[string]bool{}
		for _, p := range d.Panels {
			require.NotEmpty(t, p.Targets, p.Title)
			for _, target := range p.Targets {
				names, err := checkQuery(target.Expr, target.LegendFormat, metrics)
				require.NoError(t, err, "%s, %s: %s", file, p.Title, target.Expr)
				for _, name := range names {
					used[strings.TrimSuffix(name, "_bucket")] = true
				}
			}
		}
		for _, v := range d.Templating.List {
			if v.Name == "job" {
				m := ofVariable.FindStringSubmatch(v.Definition)
				require.Len(t, m, 2, v.Definition)
				require.Contains(t, metrics, m[1], file)
			}
		}
		for name := range metrics {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if strings.HasPrefix(name, "destsim_") || strings.HasPrefix(name, "destkit_load_") {
				require.True(t, used[name], "%s does not show %s", file, name)
			}
		}
	}
}

// TestQueriesThatAreWrong are found.
func TestQueriesThatAreWrong(t *testing.T) {
	metrics := parseScrape("# TYPE a_total counter\na_total{x=\"1\"} 1\n# TYPE b gauge\nb 2\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n")
	for query, want := range map[string]string{
		`rate(a_total{x="1",job=~"$job"}[$__rate_interval])`:              "",
		`histogram_quantile(0.9, sum by (le) (rate(h_bucket[5m])))`:       "",
		`sum by (x) (rate(a_total[5m])) / sum by (x) (rate(a_total[5m]))`: "",
		`rate(c_total[5m])`:              "no metric c_total",
		`rate(a_total{y="1"}[5m])`:       "a_total has no label y",
		`sum by (y) (rate(a_total[5m]))`: "a_total has no label y",
		`sum(rate(a_total[5m]`:           "parse",
		`rate(b[5m])`:                    "b is a gauge",
		`b * on (y) b`:                   "b has no label y",
		`median_over_time(b[5m])`:        "function median_over_time",
		`rate(a_total)`:                  "without a window",
		`histogram_quantile(0.9, sum by (job) (rate(h_bucket[5m])))`: "without le",
		`h_bucket{le="1"} default 0`:                                 "operator default",
		`{job="x"}`:                                                  "without a name",
		`histogram_quantile(0.9, sum by (le) (rate(h_bucket[5m]))) or nosuch`: "no metric nosuch",
	} {
		_, err := checkQuery(query, "", metrics)
		if want == "" {
			require.NoError(t, err, query)
			continue
		}
		require.ErrorContains(t, err, want, query)
	}
	_, err := checkQuery(`sum by (x) (rate(a_total[5m]))`, "{{x}} {{job}}", metrics)
	require.ErrorContains(t, err, "legend has job")
}
