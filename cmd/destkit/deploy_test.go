package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
)

// The files in deploy/ are held against the program: what they ask for exists, and
// goes together.

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

// manifests are all objects for Kubernetes, by kind and name.
func manifests(t *testing.T) map[string]tree {
	t.Helper()
	all := map[string]tree{}
	for _, file := range []string{"api.yaml", "worker.yaml", "secret.yaml.example"} {
		for _, m := range documents(t, "kubernetes", file) {
			all[under[string](t, m, "kind")+"/"+under[string](t, m, "metadata", "name")] = m
		}
	}
	return all
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

// containers are the processes of the program that the files start.
type container struct {
	args        []string
	probe       []string // a command of the program
	environment map[string]string
	grace       time.Duration // until it is killed
	paths       map[string]string
	port        string
}

func composed(t *testing.T) map[string]container {
	t.Helper()
	all := map[string]container{}
	for name, service := range under[tree](t, documents(t, "compose.yaml")[0], "services") {
		if under[string](t, service, "image") != "destkit:latest" {
			continue
		}
		c := container{args: texts(t, under[[]any](t, service, "command")), environment: map[string]string{}, port: "8080"}
		for key := range under[tree](t, service, "environment") {
			c.environment[key] = "some-value-of-the-test"
		}
		var err error
		c.grace, err = time.ParseDuration(under[string](t, service, "stop_grace_period"))
		require.NoError(t, err)
		probe := texts(t, under[[]any](t, service, "healthcheck", "test"))
		require.Equal(t, []string{"CMD", "/destkit"}, probe[:2], name)
		c.probe = probe[2:]
		all[name] = c
	}
	return all
}

func orchestrated(t *testing.T) map[string]container {
	t.Helper()
	all := map[string]container{}
	objects := manifests(t)
	secret := under[tree](t, objects["Secret/destkit"], "stringData")
	for name, m := range objects {
		if !strings.HasPrefix(name, "Deployment/") {
			continue
		}
		pod := under[tree](t, m, "spec", "template", "spec")
		given := under[tree](t, pod, "containers", 0)
		c := container{
			environment: map[string]string{}, paths: map[string]string{},
			grace: time.Duration(under[float64](t, pod, "terminationGracePeriodSeconds")) * time.Second,
		}
		for _, e := range under[[]any](t, given, "env") {
			value := "some-value-of-the-test"
			if e := e.(tree); e["valueFrom"] != nil {
				key := under[string](t, e, "valueFrom", "secretKeyRef", "key")
				require.Equal(t, "destkit", under[string](t, e, "valueFrom", "secretKeyRef", "name"))
				require.Contains(t, secret, key, name)
				if key == "store" {
					value = under[string](t, secret, key)
				}
			}
			c.environment[under[string](t, e, "name")] = value
		}
		for _, arg := range texts(t, under[[]any](t, given, "args")) {
			c.args = append(c.args, regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(arg, func(ref string) string {
				variable := strings.Trim(ref, "$()")
				require.Contains(t, c.environment, variable, name)
				return c.environment[variable]
			}))
		}
		for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
			require.Equal(t, "http", under[string](t, given, probe, "httpGet", "port"), name)
			c.paths[probe] = under[string](t, given, probe, "httpGet", "path")
		}
		require.Equal(t, "http", under[string](t, given, "ports", 0, "name"))
		c.port = json.Number(strings.TrimSuffix(jsonOf(t, under[float64](t, given, "ports", 0, "containerPort")), "\n")).String()
		all[name] = c
	}
	return all
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// TestDeployedCommands starts what the files start, on a database that refuses
// everybody: flags that are unknown or do not go together end otherwise.
func TestDeployedCommands(t *testing.T) {
	t.Setenv(command.MasterKeyVariable, strings.Repeat("0f", 32))
	all := composed(t)
	require.Len(t, all, 3)
	for name, c := range orchestrated(t) {
		all[name] = c
	}
	require.Len(t, all, 5)
	for name, c := range all {
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			for variable, value := range c.environment {
				if variable == command.WorkspaceKeyVariable { // each secret has a value of its own
					value += "-of-the-workspace"
				}
				if variable != command.MasterKeyVariable && variable != "GOMEMLIMIT" {
					t.Setenv(variable, value)
				}
			}
			named, rest, err := newRoot().Find(c.args)
			require.NoError(t, err)
			require.NoError(t, named.ParseFlags(rest))
			require.Empty(t, named.Flags().Args())
			flags := named.Flags()
			require.Equal(t, ":"+c.port, flags.Lookup("addr").Value.String())
			url := flags.Lookup("store").Value.String()
			require.Regexp(t, `^postgres://destkit@[a-z]+:5432/destkit`, url)
			require.NotContains(t, url, "destkit:", "no password")
			if named.Name() == "serve" {
				drain, err := flags.GetDuration("drain-timeout")
				require.NoError(t, err)
				require.Greater(t, c.grace, drain+command.Grace, "the process is killed before it has ended")
			}
			args := append([]string{}, c.args...)
			for i, arg := range args {
				args[i] = regexp.MustCompile(`@[a-z]+:5432/`).ReplaceAllString(arg, "@127.0.0.1:1/")
				args[i] = strings.Replace(args[i], "--addr=:"+c.port, "--addr=127.0.0.1:0", 1)
			}
			status, out := ranWith(t, args...)
			require.Contains(t, out, "connection refused")
			if named.Name() == "serve" { // destsim has one status for both
				require.Equal(t, 3, status, out)
			}
			if c.probe != nil {
				probe, rest, err := newRoot().Find(c.probe)
				require.NoError(t, err)
				require.Equal(t, "ready", probe.Name())
				require.NoError(t, probe.ParseFlags(rest))
				require.NoError(t, probe.Args(probe, probe.Flags().Args()))
			}
		})
	}
}

// TestDeployedProbes: what is asked for by path is there.
func TestDeployedProbes(t *testing.T) {
	service, err := server.New(t.Context(), server.Config{})
	require.NoError(t, err)
	defer service.Close()
	ask := func(h http.Handler, path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	for name, c := range orchestrated(t) {
		for probe, path := range c.paths {
			require.Equal(t, http.StatusOK, ask(service, path), "%s %s %s", name, probe, path)
		}
		require.Equal(t, "/readyz", c.paths["readinessProbe"])
		require.Equal(t, "/healthz", c.paths["livenessProbe"], "a database that is away must not restart the process")
	}
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	defer sim.Close()
	require.Contains(t, composed(t)["simulator"].probe[2], "/healthz")
	require.Equal(t, http.StatusOK, ask(sim, "/healthz"))
}

// TestDeployedManifestsFitTogether: labels, ports and budgets name what is there.
func TestDeployedManifestsFitTogether(t *testing.T) {
	all := manifests(t)
	for name, m := range all {
		if strings.HasPrefix(name, "Secret/") {
			continue
		}
		require.NotContains(t, under[tree](t, m, "metadata"), "namespace", "the caller says where")
		var chosen tree
		switch kind := under[string](t, m, "kind"); kind {
		case "Service":
			chosen = under[tree](t, m, "spec", "selector")
			require.Equal(t, "http", under[string](t, m, "spec", "ports", 0, "targetPort"))
		default:
			chosen = under[tree](t, m, "spec", "selector", "matchLabels")
		}
		found := 0
		for other, d := range all {
			if strings.HasPrefix(other, "Deployment/") && jsonOf(t, under[tree](t, d, "spec", "template", "metadata", "labels")) == jsonOf(t, chosen) {
				found++
			}
		}
		require.Equal(t, 1, found, "%s chooses the pods of one deployment", name)
	}
	for key, value := range under[tree](t, all["Secret/destkit"], "stringData") {
		if key != "store" {
			require.Empty(t, value, "no secret stands in the example")
		}
	}
}

// TestDeployedContainersAreLocked: no root, nothing to write but /tmp.
func TestDeployedContainersAreLocked(t *testing.T) {
	for name, m := range manifests(t) {
		if !strings.HasPrefix(name, "Deployment/") {
			continue
		}
		pod := under[tree](t, m, "spec", "template", "spec")
		require.True(t, under[bool](t, pod, "securityContext", "runAsNonRoot"))
		given := under[tree](t, pod, "containers", 0)
		require.True(t, under[bool](t, given, "securityContext", "readOnlyRootFilesystem"))
		require.False(t, under[bool](t, given, "securityContext", "allowPrivilegeEscalation"))
		require.NotEmpty(t, under[tree](t, given, "resources", "requests"))
		require.NotEmpty(t, under[tree](t, given, "resources", "limits"))
	}
	for name, service := range under[tree](t, documents(t, "compose.yaml")[0], "services") {
		if under[string](t, service, "image") == "destkit:latest" {
			require.True(t, under[bool](t, service, "read_only"), name)
		}
	}
	image, err := os.ReadFile(filepath.Join(deployed, "Dockerfile"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^USER [1-9]\d*:[1-9]\d*$`, string(image))
	require.Regexp(t, `(?m)^EXPOSE 8080$`, string(image))
}

// TestDeployedEnvironment: every variable that compose asks for stands in the
// example, empty, and the other way round.
func TestDeployedEnvironment(t *testing.T) {
	compose, err := os.ReadFile(filepath.Join(deployed, "compose.yaml"))
	require.NoError(t, err)
	example, err := os.ReadFile(filepath.Join(deployed, ".env.example"))
	require.NoError(t, err)
	asked, offered := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(string(compose), -1) {
		asked[m[1]] = true
	}
	for _, line := range strings.Split(string(example), "\n") {
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
