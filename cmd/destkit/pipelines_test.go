package main

import (
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

	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
)

// gitlabPipeline is docs/ci/gitlab-ci.yml, strictly: the keys of one job.
type gitlabPipeline struct {
	Conformance struct {
		Image         string              `yaml:"image"`
		Stage         string              `yaml:"stage"`
		Timeout       string              `yaml:"timeout"`
		ResourceGroup string              `yaml:"resource_group"`
		Interruptible bool                `yaml:"interruptible"`
		Rules         []map[string]string `yaml:"rules"`
		Variables     map[string]string   `yaml:"variables"`
		Before        []string            `yaml:"before_script"`
		Script        []string            `yaml:"script"`
		After         []string            `yaml:"after_script"`
		AllowFailure  struct {
			ExitCodes []int `yaml:"exit_codes"`
		} `yaml:"allow_failure"`
		Artifacts struct {
			When     string            `yaml:"when"`
			ExpireIn string            `yaml:"expire_in"`
			Paths    []string          `yaml:"paths"`
			Reports  map[string]string `yaml:"reports"`
		} `yaml:"artifacts"`
	} `yaml:"conformance"`
}

type branches struct {
	Branches struct {
		Include []string `yaml:"include"`
	} `yaml:"branches"`
}

// azurePipeline is docs/ci/azure-pipelines.yml, strictly.
type azurePipeline struct {
	Trigger   branches `yaml:"trigger"`
	PR        branches `yaml:"pr"`
	Schedules []struct {
		Cron        string `yaml:"cron"`
		DisplayName string `yaml:"displayName"`
		Branches    struct {
			Include []string `yaml:"include"`
		} `yaml:"branches"`
		Always bool `yaml:"always"`
	} `yaml:"schedules"`
	Pool      map[string]string `yaml:"pool"`
	Variables map[string]string `yaml:"variables"`
	Steps     []struct {
		Bash        string            `yaml:"bash"`
		Task        string            `yaml:"task"`
		DisplayName string            `yaml:"displayName"`
		Condition   string            `yaml:"condition"`
		Env         map[string]string `yaml:"env"`
		Inputs      map[string]any    `yaml:"inputs"`
	} `yaml:"steps"`
}

// githubWorkflow is docs/ci/github-workflow.yml or a workflow of this repository, strictly.
type githubWorkflow struct {
	Name        string            `yaml:"name"`
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Concurrency struct {
		Group  string `yaml:"group"`
		Cancel bool   `yaml:"cancel-in-progress"`
	} `yaml:"concurrency"`
	Jobs map[string]struct {
		If      string `yaml:"if"`
		RunsOn  string `yaml:"runs-on"`
		Timeout int    `yaml:"timeout-minutes"`
		Steps   []struct {
			ID   string            `yaml:"id"`
			If   string            `yaml:"if"`
			Uses string            `yaml:"uses"`
			With map[string]any    `yaml:"with"`
			Run  string            `yaml:"run"`
			Env  map[string]string `yaml:"env"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// pipeline is the path of an example.
func pipeline(name string) string { return filepath.Join(repository, "docs", "ci", name) }

// shellRun is a script in its environment, in the manner of the runners of a
// pipeline: it ends at the first command that fails.
func shellRun(t *testing.T, dir string, env []string, script string) (int, string) {
	t.Helper()
	cmd := exec.Command("bash", "-eo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err, string(out))
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestPipelinesRun runs the scripts of the examples as they are, against a
// destination that obeys and one that does not.
func TestPipelinesRun(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	needTools(t, "bash", "curl", "sha256sum", "tar")
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the examples are made for runners with linux and amd64")
	}
	g := newGitHub(t)
	var gitlab gitlabPipeline
	require.NoError(t, configfile.Read(pipeline("gitlab-ci.yml"), &gitlab))
	var azure azurePipeline
	require.NoError(t, configfile.Read(pipeline("azure-pipelines.yml"), &azure))
	clean, broken := startSimulator(t), startSimulator(t, "RES-002", "RPC-002")

	run := map[string]func(*testing.T, string, []string) (int, string){
		"gitlab": func(t *testing.T, dir string, env []string) (int, string) {
			status, log := shellRun(t, dir, env, strings.Join(slices.Concat(gitlab.Conformance.Before, gitlab.Conformance.Script), "\n"))
			_, more := shellRun(t, dir, env, strings.Join(gitlab.Conformance.After, "\n"))
			return status, log + more
		},
		"azure": func(t *testing.T, dir string, env []string) (int, string) {
			status, log := 0, ""
			for _, step := range azure.Steps {
				if step.Bash == "" || status != 0 && step.Condition != "succeededOrFailed()" {
					continue
				}
				now, more := shellRun(t, dir, env, step.Bash)
				status, log = max(status, now), log+more
			}
			return status, log
		},
	}
	for name, play := range run {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, g, nil)
			known, err := os.ReadFile(filepath.Join(repository, "conformance", "report", "testdata", "sample.json"))
			require.NoError(t, err)
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.dir, "XDG_CONFIG_HOME=" + os.DevNull, "REAL=" + j.env["REAL"], "ARGUMENTS=" + j.env["ARGUMENTS"],
				"CURL_CA_BUNDLE=" + g.roots, "ENDPOINT_TOKEN=open-sesame-7431",
				"DESTKIT_RELEASE=" + g.URL + "/releases/latest/download", "RELEASE=" + g.URL + "/releases/latest/download"}
			status, log := play(t, j.dir, append(env, "DESTKIT_URL="+clean))
			require.Equal(t, 0, status, log)
			require.Contains(t, log, "destkit_linux_amd64.tar.gz: OK")
			require.Contains(t, log, "conformant in part")
			for _, file := range []string{"junit.xml", "report.json", "report.html", "report.md"} {
				require.FileExists(t, filepath.Join(j.dir, "destkit-reports", file))
			}
			// Now with settings, without which a broken result cannot be seen, and with a baseline to compare with.
			require.NoError(t, os.WriteFile(filepath.Join(j.dir, "destkit.yaml"), []byte("write: true\nobject: [contact]\nselect: [RES-002, RPC-002]\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(j.dir, "destkit-baseline.json"), known, 0o600))
			status, log = play(t, j.dir, append(env, "DESTKIT_URL="+broken))
			require.Equal(t, 1, status, log)
			require.Contains(t, log, "settings of destkit.yaml: write, object, select ")
			require.Contains(t, log, "FAIL  RES-002")
			require.Contains(t, readOrEmpty(filepath.Join(j.dir, "destkit-reports", "diff.md")), "Got worse")
			require.NotContains(t, log+readOrEmpty(j.env["ARGUMENTS"]), "open-sesame-7431")
		})
	}
}

// TestPipelinesPublish asserts that a pipeline publishes the files that it wrote.
func TestPipelinesPublish(t *testing.T) {
	var gitlab gitlabPipeline
	require.NoError(t, configfile.Read(pipeline("gitlab-ci.yml"), &gitlab))
	require.Contains(t, strings.Join(gitlab.Conformance.Script, "\n"), "junit="+gitlab.Conformance.Artifacts.Reports["junit"])
	require.Equal(t, []int{exit.StaleWaiver}, gitlab.Conformance.AllowFailure.ExitCodes)
	require.Equal(t, "always", gitlab.Conformance.Artifacts.When)
	var azure azurePipeline
	require.NoError(t, configfile.Read(pipeline("azure-pipelines.yml"), &azure))
	var scripts string
	for _, step := range azure.Steps {
		scripts += step.Bash
		require.NotEqual(t, step.Bash == "", step.Task == "", step.DisplayName)
		if file, ok := step.Inputs["testResultsFiles"]; ok {
			require.Contains(t, scripts, "junit="+file.(string))
		}
	}
	require.NotEmpty(t, azure.Variables["release"], "it reaches the scripts as $RELEASE")
}

// TestWorkflowUsesTheAction holds the example against action.yml.
func TestWorkflowUsesTheAction(t *testing.T) {
	var workflow githubWorkflow
	require.NoError(t, configfile.Read(pipeline("github-workflow.yml"), &workflow))
	a := readAction(t)
	uses := 0
	for _, step := range workflow.Jobs["destination"].Steps {
		require.NotEqual(t, step.Run == "", step.Uses == "")
		require.NotContains(t, step.Run, "${{", "text of a workflow becomes part of the script")
		if !strings.HasPrefix(step.Uses, "destkit/destkit@") {
			continue
		}
		uses++
		for name := range step.With {
			require.Contains(t, a.Inputs, name)
		}
		require.Contains(t, step.Env, step.With["token-env"])
	}
	require.Equal(t, 1, uses)
	source, err := os.ReadFile(pipeline("github-workflow.yml"))
	require.NoError(t, err)
	outputs := regexp.MustCompile(`steps\.destkit\.outputs\.([a-z-]+)`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, outputs)
	for _, m := range outputs {
		require.Contains(t, a.Outputs, m[1])
	}
}

// TestGuidesUseTheAction holds every use of the action in the guides against
// action.yml.
func TestGuidesUseTheAction(t *testing.T) {
	a := readAction(t)
	for file, want := range map[string]int{"README.md": 1, filepath.Join("docs", "ci.md"): 3} {
		b, err := os.ReadFile(filepath.Join(repository, file))
		require.NoError(t, err)
		uses := 0
		for i, block := range strings.Split(string(b), "```") {
			if i%2 == 0 || !strings.Contains(block, "uses: destkit/destkit@") {
				continue
			}
			uses++
			var steps []struct {
				ID   string            `yaml:"id"`
				Uses string            `yaml:"uses"`
				With map[string]any    `yaml:"with"`
				Env  map[string]string `yaml:"env"`
			}
			require.NoError(t, configfile.Decode(file, []byte(strings.TrimPrefix(block, "yaml")), &steps))
			for name := range steps[0].With {
				require.Contains(t, a.Inputs, name)
			}
			if name, ok := steps[0].With["token-env"]; ok {
				require.Contains(t, steps[0].Env, name)
			}
		}
		require.Equal(t, want, uses, file)
	}
}

// TestGuideSettings: the settings in the guide are those of the command.
func TestGuideSettings(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(repository, "docs", "ci.md"))
	require.NoError(t, err)
	_, settings, found := strings.Cut(string(guide), "\n# destkit.yaml\n")
	require.True(t, found)
	settings, _, _ = strings.Cut(settings, "```")
	file := testkit.WriteFile(t, "destkit.yaml", settings)
	j := &judgement{}
	cmd := conformCommand(j)
	j.config = file
	_, options, err := j.resolve(cmd, "http://127.0.0.1:1/")
	require.NoError(t, err)
	require.True(t, options.Write)
	require.Equal(t, []string{"contact", "order"}, options.Objects)
	require.NotEmpty(t, options.Readback.URL)
	require.Contains(t, options.Fixtures, "contact")
}

// TestOwnWorkflow: each change runs .ci/run and each night make ci-full, with actions
// pinned to a commit, and permission to read only.
func TestOwnWorkflow(t *testing.T) {
	t.Parallel()
	var workflow githubWorkflow
	require.NoError(t, configfile.Read(filepath.Join(repository, ".github", "workflows", "ci.yml"), &workflow))
	require.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions)
	require.Subset(t, slices.Collect(maps.Keys(workflow.On)), []string{"push", "pull_request", "schedule", "workflow_dispatch"})
	for name, run := range map[string]string{"change": ".ci/run", "night": "make ci-full"} {
		job := workflow.Jobs[name]
		require.NotEmpty(t, job.If)
		require.NotZero(t, job.Timeout)
		var runs []string
		for _, step := range job.Steps {
			if step.Uses != "" {
				require.Regexp(t, `^actions/[a-z-]+@[0-9a-f]{40}$`, step.Uses)
			} else {
				runs = append(runs, step.Run)
			}
		}
		require.Equal(t, []string{run}, runs)
		require.EqualValues(t, 0, job.Steps[0].With["fetch-depth"], "the sample looks at the commits before")
	}
	out, err := exec.Command("bash", "-n", filepath.Join(repository, ".ci", "run")).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
