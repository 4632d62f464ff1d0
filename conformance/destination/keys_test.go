package destination

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

func TestKeysOfTwoRunsDiffer(t *testing.T) {
	a, b := line.WithDefaults(conformance.Options{Seed: 1}), line.WithDefaults(conformance.Options{Seed: 2})
	require.NotEqual(t, a.RunID, b.RunID)
	require.Equal(t, a.RunID, line.WithDefaults(conformance.Options{Seed: 1}).RunID, "the run id comes from the seed")
}

func TestKeyTemplates(t *testing.T) {
	cases := []struct {
		template string
		want     string // "" when it is good
	}{
		{"zz-{run}-{n}", ""},
		{"é-{run}-{n}", ""},
		{"\"{run}\\{n}\n", ""},
		{"zz-{run}", "needs {run} and {n}"},
		{"zz-{n}", "needs {run} and {n}"},
		{"zz", "needs {run} and {n}"},
		{"\xff-{run}-{n}", "is not UTF-8"},
	}
	for _, c := range cases {
		s, err := newSession(Target{Handler: newSmall()}, conformance.Options{KeyTemplate: c.template})
		if c.want != "" {
			requireUsage(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		s.Close()
		require.True(t, json.Valid(values.Quote(s.Keys.NextText("RES-002"))))
	}
}

// TestKeyRangeIsUsedUp: no key outside the closed range is ever sent; a check that would need one
// is NOT_RUN.
func TestKeyRangeIsUsedUp(t *testing.T) {
	e := newSmall()
	e.fields[0].Type = rpc.TypeInteger
	opts := conformance.Options{Write: true, Objects: []string{"contact"}, KeyFrom: 100, KeyTo: 104 + trialOfSmall, Serial: true, SkipConvention: conformance.SkipFailure}
	there := strings.ReplaceAll(writeCheck, "is stored exactly", "is in the destination") // which witnesses show
	r := judged(t, e, there+strings.ReplaceAll(there, "WRI-001", "WRI-002"), opts)
	require.Equal(t, conformance.Pass, resultOf(t, r, "WRI-001").Status, resultOf(t, r, "WRI-001").Reason)
	got := resultOf(t, r, "WRI-002")
	require.Equal(t, conformance.NotRun, got.Status)
	require.Equal(t, "--key-range", got.Decider)
	require.NotEmpty(t, e.deleted)
	for _, key := range e.deleted {
		n, err := strconv.Atoi(key)
		require.NoError(t, err)
		require.True(t, n >= 100 && n <= 104+trialOfSmall, key)
	}
}

// TestKeysOfARowDifferAsWritten: two rows whose keys differ by one thing do so in an
// address, too.
func TestKeysOfARowDifferAsWritten(t *testing.T) {
	for row, want := range map[string][2]string{ // with the keys k-1 and k-1@a.io
		`"{key}-end"`:       {`"k-1-end"`, `"k-1-end@a.io"`},
		`"{key}-end "`:      {`"k-1-end "`, `"k-1-end@a.io "`},
		`"{key}+a"`:         {`"k-1+a"`, `"k-1+a@a.io"`},
		`"{key}-{to 64}a"`:  {`"k-1-{to 64}a"`, `"k-1-{to 64}a@a.io"`},
		`"1728486000001"`:   {`"1728486000001"`, `"1728486000001"`},
		`"001728486000001"`: {`"001728486000001"`, `"001728486000001"`},
	} {
		require.Equal(t, want, [2]string{judge.KeyIn(row, "k-1"), judge.KeyIn(row, "k-1@a.io")}, row)
	}
}
