package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
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

// The files in deploy/ are held against the program: their settings exist, and go
// together.

var deployed = filepath.Join("..", "..", "deploy")

// tree is a mapping of a YAML file.
type tree = map[string]any

// documents reads a YAML file of one or several.
func documents(t *testing.T, parts ...string) (all []tree) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(append([]string{deployed}, parts...)...))
	require.NoError(t, err)
	for dec := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var document tree
		if err := dec.Decode(&document); err == io.EOF {
			return all
		} else {
			require.NoError(t, err, "%v", parts)
		}
		// By JSON, so that numbers and mappings are those of every other reader.
		text, err := json.Marshal(document)
		require.NoError(t, err)
		document = nil
		require.NoError(t, json.Unmarshal(text, &document))
		all = append(all, document)
	}
}

// under follows keys and indexes.
func under[T any](t *testing.T, from any, path ...any) (found T) {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := from.(tree)
			require.True(t, ok, "%v", path)
			require.Contains(t, m, step)
			from = m[step]
		case int:
			list, ok := from.([]any)
			require.True(t, ok && step < len(list), "%v", path)
			from = list[step]
		}
	}
	found, ok := from.(T)
	require.True(t, ok, "%v is %T", path, from)
	return found
}

func texts(t *testing.T, list []any) (all []string) {
	t.Helper()
	for _, v := range list {
		text, ok := v.(string)
		require.True(t, ok, "%v is no text", v)
		all = append(all, text)
	}
	return all
}

// container is a process of the program that compose starts.
type container struct {
	args  []string
	probe []string // a command of the program
	grace time.Duration
	given tree
}

func composed(t *testing.T) map[string]container {
	t.Helper()
	all := map[string]container{}
	for name, service := range under[tree](t, documents(t, "compose.yaml")[0], "services") {
		c := container{args: texts(t, under[[]any](t, service, "command")), given: service.(tree)}
		var err error
		c.grace, err = time.ParseDuration(under[string](t, service, "stop_grace_period"))
		require.NoError(t, err)
		probe := texts(t, under[[]any](t, service, "healthcheck", "test"))
		require.Equal(t, []string{"CMD", "/destkit"}, probe[:2], name)
		c.probe = probe[2:]
		all[name] = c
	}
	require.Len(t, all, 2)
	return all
}

// ended calls stop when the program reports where it listens.
type ended struct {
	bytes.Buffer
	stop func()
}

func (e *ended) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("listening ")) {
		e.stop()
	}
	return e.Buffer.Write(b)
}

// TestDeployedCommands starts what compose starts: flags that are unknown or do not go
// together end otherwise.
func TestDeployedCommands(t *testing.T) {
	for name, c := range composed(t) {
		t.Run(name, func(t *testing.T) {
			for variable := range under[tree](t, c.given, "environment") {
				value := "some-value-of-the-test-for-" + variable // each secret has another
				if variable == command.MasterKeyVariable {
					value = strings.Repeat("0f", 32)
				}
				t.Setenv(variable, value)
			}
			data := t.TempDir()
			args := slices.Clone(c.args)
			require.Contains(t, args, "--addr=:8080")
			for i, arg := range args {
				args[i] = strings.Replace(strings.Replace(arg, "/data", data, 1), "=:8080", "=127.0.0.1:0", 1)
			}
			ctx, stop := context.WithCancel(t.Context())
			out := &ended{stop: stop}
			root := newRoot()
			root.SetOut(out)
			root.SetErr(io.Discard)
			require.Zero(t, command.Execute(ctx, root, args), out)
			require.Error(t, ctx.Err(), "it has listened")
			files, err := os.ReadDir(data)
			require.NoError(t, err)
			require.NotEmpty(t, files, "a new container finds what the one before has stored")
			require.Contains(t, under[string](t, c.given, "volumes", 0), ":/data")
			require.Greater(t, c.grace, command.Grace, "the process is killed before it has ended")

			probe, rest, err := newRoot().Find(c.probe)
			require.NoError(t, err)
			require.Equal(t, "ready", probe.Name())
			require.NoError(t, probe.ParseFlags(rest))
			require.NoError(t, probe.Args(probe, probe.Flags().Args()))
		})
	}
}

// TestDeployedProbes: the paths of the probes exist.
func TestDeployedProbes(t *testing.T) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	defer sim.Close()
	require.Contains(t, composed(t)["simulator"].probe[2], "/healthz")
	w := httptest.NewRecorder()
	sim.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	require.Equal(t, http.StatusOK, w.Code)
}

// TestDeployedContainersAreLocked: no root, nothing to write but /tmp and /data; no
// secret is in a file.
func TestDeployedContainersAreLocked(t *testing.T) {
	for name, c := range composed(t) {
		require.True(t, under[bool](t, c.given, "read_only"), name)
	}
	image, err := os.ReadFile(filepath.Join(deployed, "Dockerfile"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^USER [1-9]\d*:[1-9]\d*$`, string(image))
	require.Regexp(t, `(?m)^EXPOSE 8080$`, string(image))

	spec := under[tree](t, documents(t, "k6", "testrun.yaml")[0], "spec")
	require.FileExists(t, filepath.Join(deployed, "..", "loadgen", "xk6", "example", under[string](t, spec, "script", "configMap", "file")))
	require.NotContains(t, under[string](t, spec, "arguments"), "TOKEN", "a manifest is no place for it")
	runner := under[tree](t, spec, "runner")
	require.NotEmpty(t, under[string](t, runner, "envFrom", 0, "secretRef", "name"))
	require.NotEmpty(t, under[string](t, runner, "resources", "limits", "memory"))
	require.True(t, under[bool](t, runner, "securityContext", "runAsNonRoot"))
	require.False(t, under[bool](t, runner, "containerSecurityContext", "allowPrivilegeEscalation"))
	own, err := os.ReadFile(filepath.Join(deployed, "k6", "Dockerfile"))
	require.NoError(t, err)
	require.Contains(t, string(own), " -t "+under[string](t, runner, "image")+" .\n")
	require.Contains(t, string(own), fmt.Sprintf("\nUSER %v\n", under[float64](t, runner, "securityContext", "runAsUser")))
}

// TestDeployedEnvironment: every variable that compose requires is in the
// example, empty, and vice versa.
func TestDeployedEnvironment(t *testing.T) {
	compose, err := os.ReadFile(filepath.Join(deployed, "compose.yaml"))
	require.NoError(t, err)
	example, err := os.ReadFile(filepath.Join(deployed, ".env.example"))
	require.NoError(t, err)
	asked, offered := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(string(compose), -1) {
		asked[m[1]] = true
	}
	for line := range strings.SplitSeq(string(example), "\n") {
		if name, value, is := strings.Cut(line, "="); is && !strings.HasPrefix(line, "#") {
			require.Empty(t, value, "no secret stands in the example")
			offered[name] = true
		}
	}
	require.Equal(t, asked, offered)
	for name, pattern := range map[string]string{".gitignore": ".env", ".dockerignore": "**/.env"} {
		ignored, err := os.ReadFile(filepath.Join(deployed, "..", name))
		require.NoError(t, err)
		require.Contains(t, strings.Split(string(ignored), "\n"), pattern, name)
	}
}
