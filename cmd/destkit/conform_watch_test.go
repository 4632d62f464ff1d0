package main

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
)

// cmdWatches is `watches NAME ARG...`: it runs `destkit ARG...` until `stops NAME` or
// the end of the script. `sees` reads its output.
func cmdWatches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: watches NAME ARG...")
	}
	cmd := program(ts, args[1:]...)
	cmd.Env = append(cmd.Env, "TMPDIR="+ts.Getenv("TMPDIR"))
	cmd.Stderr = ts.Stderr()
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	r := &running{cmd: cmd, out: bufio.NewReader(out)}
	ts.Defer(func() { _, _ = r.stop(os.Interrupt) })
	key := ts.Getenv("WORK") + " " + args[0] // scripts run beside each other
	simulators.Store(key, r)
	ts.Setenv(args[0], key)
}

// cmdSees is `sees NAME TEXT...`: it reads lines until each text has come, in that
// order, and prints them.
func cmdSees(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sees NAME TEXT...")
	}
	r, ok := simulators.Load(ts.Getenv(args[0]))
	if !ok {
		ts.Fatalf("no program is called %s", args[0])
	}
	var seen strings.Builder
	for _, text := range args[1:] {
		// A program that never says it is ended, so that its output ends too.
		late := time.AfterFunc(patience, func() { _ = r.(*running).cmd.Process.Kill() })
		for {
			line, err := r.(*running).out.ReadString('\n')
			_, _ = ts.Stdout().Write([]byte(line))
			seen.WriteString(line)
			if err != nil {
				ts.Fatalf("the output ended before %q: %v", text, err)
			}
			if strings.Contains(line, text) {
				break
			}
		}
		late.Stop()
	}
	checkOffers(ts, seen.String(), false)
}

// TestChangesOfARun: fixed and new checks by their ids.
func TestChangesOfARun(t *testing.T) {
	of := func(a, b conformance.Status) *conformance.Report {
		return &conformance.Report{Checks: []conformance.CheckResult{
			{ID: "RES-002", Status: a, Gating: true}, {ID: "SEM-005", Status: b, Gating: true}}}
	}
	first, second := of(conformance.Fail, conformance.Pass), of(conformance.Pass, conformance.Fail)
	require.Equal(t, []string{"fixed: RES-002; new: SEM-005"}, changeLines(report.Compare(first, second)))
	require.Equal(t, []string{"nothing changed since the run before"}, changeLines(report.Compare(first, first)))
	require.Equal(t, []string{"SEM-005"}, failedIn(second))
	require.Empty(t, brokenOf(second, []string{"RES-002"}))
}
