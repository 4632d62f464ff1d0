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
	"github.com/destkit/destkit/destsim"
)

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
