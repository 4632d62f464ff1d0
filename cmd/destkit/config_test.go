package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/testkit"
)

// configured parses args, applies a configuration file and resolves.
func configured(t *testing.T, src string, args ...string) (*judgement, conformance.Options, error) {
	t.Helper()
	file := testkit.WriteFile(t, "c.yaml", src)
	j := &judgement{}
	cmd := conformCommand(j)
	require.NoError(t, cmd.ParseFlags(append(args, "--config", file)))
	_, options, err := j.resolve(cmd, "http://127.0.0.1:1/")
	return j, options, err
}

func TestEveryFlagCanStandInTheFile(t *testing.T) {
	j, options, err := configured(t, `
write: true
object: [contact, event]
select: RES-*
skip:
  - RES-001
  - RES-003
batch-timeout: 5s
max-records: 100
profile: strict
key-range: -5:9
header: ["X-Team: sync"]
report: [json=r.json]
no-color: true
seed: 18446744073709551615
readback-command: sh -c 'cat "$F"'
readback-window: ~
`)
	require.NoError(t, err)
	require.True(t, options.Write)
	require.Equal(t, []string{"contact", "event"}, options.Objects)
	require.Equal(t, []string{"RES-*"}, options.Select)
	require.Equal(t, []string{"RES-001", "RES-003"}, options.Skip)
	require.Equal(t, 5*time.Second, options.BatchTimeout)
	require.Equal(t, 10*time.Second, options.PlanningTimeout, "not named, so the default")
	require.Equal(t, 100, options.MaxRecords)
	require.Equal(t, conformance.ProfileStrict, options.Profile)
	require.Equal(t, [2]int64{-5, 9}, [2]int64{options.KeyFrom, options.KeyTo})
	require.Equal(t, uint64(18446744073709551615), options.Seed)
	require.Equal(t, []string{"sh", "-c", `cat "$F"`}, options.Readback.Command)
	require.Equal(t, []string{"json=r.json"}, j.reports)
	require.True(t, j.noColor)
}

func TestFixturesKeepTheirDigits(t *testing.T) {
	_, options, err := configured(t, `
fixtures:
  contact:
    age: 9007199254740993
    score: 1.50
    name: "007"
    zip: '01234'
    on: yes
    active: true
    gone: null
    tags: [a, 1, true, null]
    text: |
      two
      lines
    bad: {email: "not an address", age: -1}
    hidden: [password]
  event: {}
`)
	require.NoError(t, err)
	require.Equal(t, map[string]conformance.Fixture{
		"contact": {
			Fields: map[string]string{
				"age": "9007199254740993", "score": "1.50", "name": `"007"`, "zip": `"01234"`, "on": `"yes"`,
				"active": "true", "gone": "null", "tags": `["a",1,true,null]`, "text": `"two\nlines\n"`,
			},
			Bad:    map[string]string{"email": `"not an address"`, "age": "-1"},
			Hidden: []string{"password"},
		},
		"event": {Fields: map[string]string{}, Bad: map[string]string{}},
	}, options.Fixtures)
}

func TestEmptyConfigurationIsFine(t *testing.T) {
	for _, src := range []string{"", "# nothing\n", "---\n"} {
		_, options, err := configured(t, src)
		require.NoError(t, err)
		require.Equal(t, 5000, options.MaxRecords)
	}
}

func FuzzApplyConfig(f *testing.F) {
	for _, seed := range []string{"write: true", "object: [a]", "fixtures: {a: {b: 1}}", "fixtures: {a: &x {b: *x}}", "? [a]\n: b", "<<: {write: true}", "header: !!binary x"} {
		f.Add([]byte(seed))
	}
	file := filepath.Join(f.TempDir(), "c.yaml")
	f.Fuzz(func(t *testing.T, src []byte) {
		require.NoError(t, os.WriteFile(file, src, 0o600))
		_, _ = configfile.Apply(conformCommand(&judgement{}), file)
	})
}
