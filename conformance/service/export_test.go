package service

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
)

// SuiteOf is an open suite, for tests of the catalogue.
func SuiteOf(t *testing.T, target Target, opts Options) *engine.Suite {
	t.Helper()
	opts.RunID, opts.Timeout = "tests", time.Hour
	r, err := newRun(target, &opts)
	require.NoError(t, err)
	t.Cleanup(r.close)
	s := r.suite()
	report := conformance.Report{RunID: "tests", Started: time.Now()}
	ready, err := s.Open(t.Context(), &report, nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.True(t, ready)
	return s
}

// InTimeOf lets the checks of a run wait by another time than that of the machine.
func InTimeOf(opts *Options, now func() time.Time, sleep func(context.Context, time.Duration) error) {
	opts.time = timepiece{now: now, sleep: sleep}
}
