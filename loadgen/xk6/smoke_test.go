package xk6

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/loadgen"
)

// testRun is what a test does of the manifest for the operator of k6.
type testRun struct {
	Spec struct {
		Script struct {
			ConfigMap struct {
				File string `yaml:"file"`
			} `yaml:"configMap"`
		} `yaml:"script"`
		Arguments string `yaml:"arguments"`
	} `yaml:"spec"`
}

// k6 runs the program that was built, as a shell without an environment would.
func k6(program string, env []string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = "example"
	cmd.Env = append([]string{"HOME=" + filepath.Dir(program), "K6_NO_USAGE_REPORT=true"}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// summary is what k6 writes at the end, as far as it is looked at.
type summary struct {
	Metrics map[string]struct {
		Count  float64 `json:"count"`
		Passes float64 `json:"passes"`
		Fails  float64 `json:"fails"`
		Max    float64 `json:"max"`
	} `json:"metrics"`
}

// TestTheProgram builds k6 with the extension and runs the examples with it.
func TestTheProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "k6")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "./cmd/k6").CombinedOutput()
	require.NoError(t, err, string(out))
	t.Run("operator", func(t *testing.T) { asTheOperatorDoes(t, program) })
	t.Run("mixed", func(t *testing.T) { mixed(t, program) })
}

// asTheOperatorDoes gives the commands that the operator of k6 gives: it reads the
// script without an environment, then two instances run a half each at the same
// time. Their counts match the simulator's records.
func asTheOperatorDoes(t *testing.T, program string) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, plain)
	manifest, err := os.ReadFile(filepath.Join("..", "..", "deploy", "k6", "testrun.yaml"))
	require.NoError(t, err)
	var run testRun
	require.NoError(t, yaml.Unmarshal(manifest, &run))
	arguments := strings.NewReplacer(
		"https://example.com/destination", server.URL+"/", "RATE=4000", "RATE=50", "DURATION=10m", "DURATION=2s",
	).Replace(run.Spec.Arguments)
	given := append(strings.Fields(arguments), "-e", "BATCH_SIZE=10", "-e", "P99_MS=60000")
	script := run.Spec.Script.ConfigMap.File

	archive := filepath.Join(t.TempDir(), script+".tar")
	text, err := k6(program, nil, append([]string{"archive", script, "-O", archive}, given...)...)
	require.NoError(t, err, text)
	text, err = k6(program, nil, "inspect", "--execution-requirements", archive)
	require.NoError(t, err, text)
	require.Contains(t, text, `"maxVUs": 200`)
	require.Zero(t, stored(t, server, "contact"), "reading a script sends nothing")

	segments := []string{"0:1/2", "1/2:1"}
	summaries := make([]summary, len(segments))
	var both sync.WaitGroup
	for i, segment := range segments {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("summary-%d.json", i))
		both.Go(func() {
			args := append([]string{"run", "--execution-segment=" + segment, "--execution-segment-sequence=0,1/2,1"}, given...)
			args = append(args, script, "--address=127.0.0.1:0", "--tag", fmt.Sprintf("instance_id=%d", i+1), "--summary-export", path)
			text, err := k6(program, []string{"DESTKIT_TOKEN=s3cret-token"}, args...)
			if err != nil {
				t.Errorf("instance %d: %v\n%s", i+1, err, text)
				return
			}
			if strings.Contains(text, "s3cret-token") {
				t.Errorf("instance %d tells the token", i+1)
			}
			if err := readJSON(path, &summaries[i]); err != nil {
				t.Errorf("instance %d: %v", i+1, err)
			}
		})
	}
	both.Wait()
	require.False(t, t.Failed())
	total := 0.0
	for i, s := range summaries {
		m := s.Metrics
		batches := m["destkit_batches"].Count
		require.Positive(t, batches, "instance %d", i+1)
		require.InDelta(t, batches, m["iterations"].Count, 1, "every iteration sends one batch")
		require.Equal(t, 10*batches, m["destkit_records"].Count)
		require.Equal(t, 10*batches, m["destkit_records_acknowledged"].Count)
		require.Equal(t, batches, m["destkit_batch_failed"].Fails, "none has failed")
		require.Zero(t, m["destkit_batch_failed"].Passes)
		require.Zero(t, m["destkit_errors"].Count)
		require.Zero(t, m["checks"].Fails)
		require.Positive(t, m["destkit_batch_duration"].Max)
		require.Greater(t, m["data_sent"].Count, 1000*batches)
		require.Positive(t, m["data_received"].Count)
		total += m["destkit_records_acknowledged"].Count
	}
	require.EqualValues(t, total, stored(t, server, "contact"), "no two instances have written the same key")
}

// mixed cleans up at the end; a run that must not go on reports why.
func mixed(t *testing.T, program string) {
	server := simulate(t, destsim.Config{Token: "s3cret-token"}, plain)
	journal := filepath.Join(t.TempDir(), "journal.json")
	given := []string{
		"run", "-q", "--address=127.0.0.1:0", "--vus=2", "--iterations=24", "mixed.js",
		"-e", "DESTKIT_URL=" + server.URL + "/", "-e", "BATCH_SIZE=10", "-e", "JOURNAL=" + journal,
	}
	for _, c := range []struct {
		env    []string
		status int
		want   string
	}{
		{[]string{"OBJECT=contact"}, 0, "records deleted, 0 left"},
		{[]string{"OBJECT=contact", "MAX_RECORDS=100"}, 108, "nothing more to send: maxRecords"},
		{[]string{"OBJECT=nothing"}, 108, `has no object \"nothing\"`},
		{[]string{"OBJECT=contact", "MAX_RECORDS=many"}, 107, "maxRecords: it must be a whole number"},
	} {
		text, err := k6(program, append(c.env, "DESTKIT_TOKEN=s3cret-token"), given...)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			require.Equal(t, c.status, exit.ExitCode(), text)
		} else {
			require.NoError(t, err)
			require.Zero(t, c.status, text)
		}
		require.Contains(t, text, c.want)
		require.Zero(t, stored(t, server, "contact"), "%s: teardown has deleted them", c.env)
		if c.status == 0 {
			require.Contains(t, text, "24 batches")
			keys, err := loadgen.ReadKeys(journal)
			require.NoError(t, err)
			require.Positive(t, keys[0].Count)
		}
	}
}

func readJSON(path string, to any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}
