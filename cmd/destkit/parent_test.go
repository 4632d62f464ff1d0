package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/matrixtest"
)

// asChild is startedAndEnded for a server with a control API below its URL, which must
// end with status 0.
func asChild(t *testing.T, args ...string) (first command.FirstLine, line, stderr string) {
	t.Helper()
	first, line, stderr = startedAndEnded(t, 0, args...)
	require.Equal(t, first.URL+"/_control", first.Control)
	return first, line, stderr
}

// startedAndEnded starts a server whose first line is JSON, closes its standard input
// once that line is there, and returns all that it has printed. It must end by itself,
// with that status.
func startedAndEnded(t *testing.T, status int, args ...string) (first command.FirstLine, line, stderr string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command("destkit", append(args, "--addr", "127.0.0.1:0", "--json", "--exit-with-stdin")...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+t.TempDir()), &said
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	decoder := json.NewDecoder(stdout)
	require.NoError(t, decoder.Decode(&first))
	require.NoError(t, stdin.Close())
	rest, err := io.ReadAll(io.MultiReader(decoder.Buffered(), stdout))
	require.NoError(t, err)
	require.Equal(t, "\n", string(rest), "standard output is one line")
	_ = cmd.Wait() // the status shows it
	require.Equal(t, status, cmd.ProcessState.ExitCode(), said.String())
	require.Equal(t, cmd.Process.Pid, first.PID)
	require.Equal(t, command.ReadBuild().Version, first.Version)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, first.URL)
	encoded, err := json.Marshal(first)
	require.NoError(t, err)
	return first, string(encoded), said.String()
}

func TestServersOfAnotherProgram(t *testing.T) {
	matrixtest.Long(t)
	t.Run("a service in memory", func(t *testing.T) {
		first, _, stderr := asChild(t, "serve")
		require.Equal(t, first.URL+"/api/v1", first.API)
		require.NotNil(t, first.Organization)
		require.EqualValues(t, 1, first.Organization.OrganizationID)
		require.Contains(t, first.Organization.PersonalAccessToken, "pat_")
		require.Contains(t, first.Organization.WorkspaceAPIKey, "secret-token:")
		require.NotContains(t, stderr, first.Organization.WorkspaceAPIKey)
	})

	t.Run("what else there is to say goes to standard error", func(t *testing.T) {
		_, _, stderr := asChild(t, "serve", "--data", filepath.Join(t.TempDir(), "data"))
		require.Regexp(t, `(?m)^made the master key `, stderr)
	})

	t.Run("the second start of a data directory makes no organization", func(t *testing.T) {
		t.Setenv(command.MasterKeyVariable, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
		data := filepath.Join(t.TempDir(), "data")
		first, _, _ := asChild(t, "serve", "--data", data)
		require.NotNil(t, first.Organization)
		first, line, _ := asChild(t, "serve", "--data", data)
		require.Nil(t, first.Organization)
		require.NotContains(t, line, "organization")
	})

	t.Run("tokens of the environment are not shown", func(t *testing.T) {
		t.Setenv(command.AccessTokenVariable, "given-access-token-1234567890")
		t.Setenv(command.WorkspaceKeyVariable, "given-workspace-key-1234567890")
		first, line, stderr := asChild(t, "serve")
		require.Empty(t, first.Organization.PersonalAccessToken)
		require.Empty(t, first.Organization.WorkspaceAPIKey)
		require.NotContains(t, line+stderr, "given-")
	})

	t.Run("a simulator", func(t *testing.T) {
		first, _, stderr := asChild(t, "destsim", "--violate", "RES-002")
		require.Empty(t, first.API)
		require.Nil(t, first.Organization)
		require.Regexp(t, `(?m)^breaking RES-002: `, stderr)
	})

	t.Run("a proxy", func(t *testing.T) {
		_, line, said := startedAndEnded(t, exit.NotTested, "proxy", "--to", "http://127.0.0.1:1/")
		require.NotContains(t, line, "control_url", "there is no second port")
		require.Contains(t, said, "unknown: ", "the verdict goes to standard error")
		first, _, stderr := startedAndEnded(t, exit.NotTested, "proxy", "--to", "http://127.0.0.1:1/", "--control-addr", "127.0.0.1:0")
		require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, first.Control)
		require.NotEqual(t, first.URL, first.Control)
		require.Contains(t, stderr, "control "+first.Control)
	})

	t.Run("standard input that has ended already", func(t *testing.T) {
		out, err := exec.Command("destkit", "destsim", "--addr", "127.0.0.1:0", "--exit-with-stdin").CombinedOutput()
		require.NoError(t, err, string(out))
	})
}

// repository is the root, with action.yml.
var repository = filepath.Join("..", "..")

// action is action.yml, as far as a composite action of shell steps goes. It is
// decoded strictly: an unknown key is one that the runner would refuse.
type action struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Author      string `yaml:"author"`
	Branding    struct {
		Icon  string `yaml:"icon"`
		Color string `yaml:"color"`
	} `yaml:"branding"`
	Inputs map[string]struct {
		Description string  `yaml:"description"`
		Required    bool    `yaml:"required"`
		Default     *string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string       `yaml:"using"`
		Steps []actionStep `yaml:"steps"`
	} `yaml:"runs"`
}

type actionStep struct {
	ID    string            `yaml:"id"`
	Name  string            `yaml:"name"`
	If    string            `yaml:"if"`
	Shell string            `yaml:"shell"`
	Env   map[string]string `yaml:"env"`
	Run   string            `yaml:"run"`
}

func readAction(t *testing.T) action {
	t.Helper()
	var a action
	require.NoError(t, configfile.Read(filepath.Join(repository, "action.yml"), &a))
	return a
}

// needTools skips a test that cannot run here.
func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			matrixtest.Missing(t, tool, "%s is not installed", tool)
		}
	}
}

// job is one use of the action in a workflow, and its results.
type job struct {
	with map[string]string // inputs
	env  map[string]string // of the step that uses the action
	dir  string            // the workspace

	status  int
	log     string
	summary string
	outputs map[string]string
}

// expression is the text between ${{ and }}.
var expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

// run plays the runner: it evaluates the expressions, gives each step its own
// files for outputs and ends at the first step that fails.
func (j *job) run(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the action runs in processes of its own")
	}
	needTools(t, "bash", "curl", "jq")
	a := readAction(t)
	values := map[string]string{"github.token": "ghs_of_the_job", "github.action_ref": j.env["ACTION_REF_OF_TEST"]}
	evaluate := func(s string) string {
		return expression.ReplaceAllStringFunc(s, func(m string) string {
			for name := range strings.SplitSeq(expression.FindStringSubmatch(m)[1], "||") {
				if v := values[strings.TrimSpace(name)]; v != "" {
					return v
				}
			}
			return ""
		})
	}
	for name := range j.with {
		require.Contains(t, a.Inputs, name)
	}
	for name, input := range a.Inputs {
		value, given := j.with[name]
		if !given && input.Default != nil {
			value = evaluate(*input.Default)
		}
		values["inputs."+name] = value
	}
	files := t.TempDir()
	summary := filepath.Join(files, "summary")
	env := j.environment(files, summary)
	var log bytes.Buffer
	for _, step := range a.Runs.Steps {
		if name, ok := strings.CutSuffix(step.If, " != ''"); ok && values[name] == "" {
			continue
		}
		output, path := filepath.Join(files, step.ID+".output"), filepath.Join(files, step.ID+".path")
		stepEnv := maps.Clone(env)
		stepEnv["GITHUB_OUTPUT"], stepEnv["GITHUB_PATH"] = output, path
		for name, value := range step.Env {
			stepEnv[name] = evaluate(value)
		}
		script := filepath.Join(files, step.ID+".sh")
		require.NoError(t, os.WriteFile(script, []byte(step.Run), 0o600))
		cmd := exec.Command("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script)
		cmd.Dir, cmd.Stdout, cmd.Stderr = j.dir, &log, &log
		for name, value := range stepEnv {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		err := cmd.Run()
		for line := range strings.Lines(readOrEmpty(output)) {
			name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			require.True(t, ok, "an output is NAME=VALUE: %q", line)
			values["steps."+step.ID+".outputs."+name] = value
		}
		for dir := range strings.FieldsSeq(readOrEmpty(path)) {
			env["PATH"] = dir + string(os.PathListSeparator) + env["PATH"]
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			j.status = exit.ExitCode()
			break
		}
		require.NoError(t, err)
	}
	j.log, j.summary, j.outputs = log.String(), readOrEmpty(summary), map[string]string{"PATH": env["PATH"]}
	for name, output := range a.Outputs {
		j.outputs[name] = evaluate(output.Value)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("exit status %d, outputs %v\n%s", j.status, j.outputs, j.log)
		}
	})
}

// environment is what the runner gives to every step, and nothing else of this
// machine.
func (j *job) environment(files, summary string) map[string]string {
	action, err := filepath.Abs(repository)
	if err != nil {
		panic(err)
	}
	env := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": files, "CI": "true", "GITHUB_ACTIONS": "true",
		"RUNNER_TEMP": files, "RUNNER_OS": map[string]string{"linux": "Linux", "darwin": "macOS"}[runtime.GOOS],
		"RUNNER_ARCH":         map[string]string{"amd64": "X64", "arm64": "ARM64"}[runtime.GOARCH],
		"GITHUB_STEP_SUMMARY": summary, "GITHUB_ACTION_PATH": action, "GITHUB_WORKSPACE": j.dir,
		// Where Go is, it may still write its telemetry when the test has ended.
		"XDG_CONFIG_HOME": os.DevNull,
		"GITHUB_JOB":      "judge", "GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY": "acme/crm",
	}
	maps.Copy(env, j.env)
	return env
}

func readOrEmpty(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(b)
}

// TestActionFile holds action.yml together: declared and used names match,
// and no text of a workflow becomes part of a script.
func TestActionFile(t *testing.T) {
	a := readAction(t)
	require.Equal(t, "composite", a.Runs.Using)
	require.NotEmpty(t, a.Name+a.Description+a.Author+a.Branding.Icon+a.Branding.Color)
	used := map[string]bool{}
	note := func(s string) {
		for _, m := range regexp.MustCompile(`(?:inputs|steps)\.[a-z-]+(?:\.outputs\.[a-z-]+)?|github\.[a-z_]+`).FindAllString(s, -1) {
			used[m] = true
		}
	}
	known := []string{"github.token", "github.action_ref"}
	for name, input := range a.Inputs {
		known = append(known, "inputs."+name)
		require.NotEmpty(t, input.Description, name)
		require.NotEqual(t, input.Required, input.Default != nil, "%s is required or has a default", name)
		if input.Default != nil {
			note(*input.Default)
		}
	}
	for _, step := range a.Runs.Steps {
		require.Equal(t, "bash", step.Shell, step.ID)
		require.NotContains(t, step.Run, "${{", "step %s", step.ID)
		require.NotEmpty(t, step.Name, step.ID)
		script := scriptOf(t, step)
		for name, value := range step.Env {
			note(value)
			require.Regexp(t, `\b`+name+`\b`, script, "step %s does not use %s", step.ID, name)
		}
		for _, name := range regexp.MustCompile(`\bINPUT_[A-Z_]+`).FindAllString(script, -1) {
			require.Contains(t, step.Env, name, "step %s", step.ID)
		}
		require.Regexp(t, `^(inputs\.[a-z-]+ != '')?$`, step.If)
		note(step.If)
		// The outputs of scripts are declared.
		for _, m := range regexp.MustCompile(`printf '([a-z-]+)=%s`).FindAllStringSubmatch(script, -1) {
			known = append(known, "steps."+step.ID+".outputs."+m[1])
		}
	}
	for _, name := range []string{"verdict", "tier", "summary", "json", "junit", "sarif", "html"} { // written in loops
		known = append(known, "steps.judge.outputs."+name)
	}
	known = append(known, "steps.compare.outputs.diff") // the second line of one printf
	for name, output := range a.Outputs {
		require.NotEmpty(t, output.Description, name)
		note(output.Value)
	}
	for name := range used {
		require.Contains(t, known, name)
	}
	for name := range a.Inputs {
		require.True(t, used["inputs."+name], "the input %s is not used", name)
	}
}

// scriptOf returns the script that a step runs.
func scriptOf(t *testing.T, step actionStep) string {
	m := regexp.MustCompile(`^bash "\$GITHUB_ACTION_PATH/(\.ci/action/[a-z]+\.sh)"$`).FindStringSubmatch(step.Run)
	require.NotNil(t, m, "step %s", step.ID)
	b, err := os.ReadFile(filepath.Join(repository, m[1]))
	require.NoError(t, err)
	require.Contains(t, string(b), "\nset -euo pipefail\n")
	return string(b)
}

// TestShellScripts lets bash, and shellcheck where there is one, read every
// script of the pipeline and of the action.
func TestShellScripts(t *testing.T) {
	needTools(t, "bash")
	scripts, err := filepath.Glob(filepath.Join(repository, ".ci", "action", "*.sh"))
	require.NoError(t, err)
	require.Len(t, scripts, 4)
	scripts = append(scripts, filepath.Join(repository, ".ci", "run"))
	for _, script := range scripts {
		out, err := exec.Command("bash", "-n", script).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	if shellcheck, err := exec.LookPath("shellcheck"); err == nil {
		out, err := exec.Command(shellcheck, slices.Concat([]string{"--severity=warning"}, scripts)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}
