package destination

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
)

// notASCII reports whether a record holds a character outside ASCII.
func notASCII(r rpc.Record) bool {
	for _, raw := range r {
		if strings.ContainsFunc(exchange.KeyText(raw), func(c rune) bool { return c > 127 }) {
			return true
		}
	}
	return false
}

// refusers are endpoints that keep every rule about form and refuse records of one
// kind, each with the words that a finding must have.
var refusers = []struct {
	name   string
	refuse func(a attempt) string
	told   []string // a finding or a warning with one of these words
	exit   int      // 0 with a warning, 1 with a failure
}{
	{"nothing", func(attempt) string { return "" }, nil, 0},
	{"all text outside ASCII", func(a attempt) string { return say(notASCII(a.record), "only plain characters, please") }, []string{"text outside ASCII"}, 0},
	{"all nulls", func(a attempt) string {
		for _, raw := range a.record {
			if string(raw) == "null" {
				return "a value is missing"
			}
		}
		return ""
	}, []string{"null accepted in"}, 0},
	{"all updates", func(a attempt) string { return say(a.operation == rpc.OperationUpdate, "updates are switched off") }, []string{"update of records that are there"}, 1},
	{"all inserts", func(a attempt) string { return say(a.operation == rpc.OperationInsert, "inserts are switched off") }, []string{"insert of new records"}, 1},
	{"all existing records in upsert", func(a attempt) string { return say(a.operation == rpc.OperationUpsert && a.there, "it exists already") }, []string{"upsert of records that are there"}, 1},
	{"all new records in upsert", func(a attempt) string { return say(a.operation == rpc.OperationUpsert && !a.there, "no such record") }, []string{"upsert of new records"}, 1},
	{"all deletes", func(a attempt) string { return say(a.operation == rpc.OperationDelete, "nothing is ever deleted") }, []string{"delete of records that are there"}, 1},
	{"everything", func(attempt) string { return "the table is locked" }, []string{"of new records"}, 1},
}

func say(refused bool, words string) string {
	if refused {
		return words
	}
	return ""
}

// TestMatrixRefusalsAreReported: each kind of refusal is found by a failure or a warning that
// names it, no check passes about records that were refused, and no run ends with
// exit status 0 in silence. The transcript shows what a reader of the reports sees.
func TestMatrixRefusalsAreReported(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("full runs")
	}
	transcripts := make([]strings.Builder, 2*len(refusers))
	t.Run("each", func(t *testing.T) {
		for i, c := range refusers {
			for way, with := range []string{"with read-back", "without read-back"} {
				t.Run(c.name+" "+with, func(t *testing.T) {
					t.Parallel()
					e := newRefuser(c.refuse)
					opts := conformance.Options{Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun, Serial: true,
						KeyTemplate: "zz-conf-{run}-{check}-{n}@example.com"} // from which the endpoint can derive the check
					if way == 0 {
						opts.ReadbackFunc = e.readback
					}
					r, err := Run(context.Background(), Target{Handler: e, Token: scriptToken}, opts)
					require.NoError(t, err)
					transcript := &transcripts[2*i+way]
					fmt.Fprintf(transcript, "## An endpoint that refuses %s, judged %s\n\n", c.name, with)
					writeTranscript(transcript, e, r)
					if c.told == nil {
						require.Zero(t, r.ExitStatus, r.Summary)
						require.Zero(t, r.Counts[conformance.Fail]+r.Counts[conformance.Flaky]+r.Counts[conformance.Warn], "what the others lead to must come from their refusals")
						return
					}
					require.Equal(t, c.exit, r.ExitStatus, r.Summary)
					require.True(t, r.ExitStatus != 0 || r.Counts[conformance.Warn] > 0, "exit status 0 in silence")
					require.True(t, tells(r, c.told), "no finding names it")
					for _, p := range r.Checks {
						if p.Status == conformance.Pass {
							passesOnAccepted(t, e, p)
						}
					}
				})
			}
		}
	})
	var transcript strings.Builder
	for i := range transcripts {
		transcript.WriteString(transcripts[i].String())
	}
	golden := filepath.Join("testdata", "refusals.golden")
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(golden, []byte(transcript.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err, "run this test with -update")
	require.Equal(t, string(want), transcript.String(), "run this test with -update and read what has changed")
}

// tells reports whether a failure or a warning contains one of the words.
func tells(r *conformance.Report, words []string) bool {
	for _, c := range r.Checks {
		if c.Status != conformance.Fail && c.Status != conformance.Warn && c.Status != conformance.Flaky {
			continue
		}
		for _, f := range c.Findings {
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(f.Expected+" "+f.Actual, w) }) {
				return true
			}
		}
	}
	return false
}

// passesOnAccepted compares the evidence of a pass with what the endpoint itself
// has accepted of the records of that check.
func passesOnAccepted(t *testing.T, e *refuser, c conformance.CheckResult) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	check, ok := cat.Check(c.ID)
	require.True(t, ok)
	sender := c.ID
	if c.ID == "TIM-002" {
		sender = "SPD-006" // its full batches are judged
	}
	got := e.of(sender)
	if check.Last && strings.HasPrefix(c.ID, "DUR-") { // it is about the records of all
		got = &fates{}
		for _, of := range e.fates {
			got.created, got.changed, got.deleted = got.created+of.created, got.changed+of.changed, got.deleted+of.deleted
		}
	}
	for _, kind := range check.Evidence {
		switch kind {
		case conformance.SeenAccepted, conformance.SeenStored:
			require.Positive(t, got.created+got.changed, "%s passes, and not one of its records was accepted", c.ID)
		case conformance.SeenChanged:
			require.Positive(t, got.changed, "%s passes, and no change was accepted", c.ID)
		case conformance.SeenDeleted:
			require.Positive(t, got.deleted, "%s passes, and no delete was accepted", c.ID)
		case conformance.SeenKept:
			require.Positive(t, got.created, "%s passes, and nothing was there that could be kept", c.ID)
			if c.ID != "SEM-002" { // a skip is its subject
				require.Positive(t, got.changed+got.deleted, "%s passes, and no batch that could have touched others was accepted", c.ID)
			}
		case conformance.SeenRefused:
			require.Positive(t, got.refused+got.skipped, "%s passes, and nothing was refused", c.ID)
		}
	}
}

// writeTranscript is what a reader of a report sees first.
func writeTranscript(out *strings.Builder, e *refuser, r *conformance.Report) {
	fmt.Fprintf(out, "exit status %d, %s\n", r.ExitStatus, r.Verdict)
	by := map[conformance.Status][]conformance.CheckResult{}
	for _, c := range r.Checks {
		if c.Level != conformance.Info {
			by[c.Status] = append(by[c.Status], c)
		}
	}
	for _, status := range []conformance.Status{conformance.Fail, conformance.Flaky, conformance.Warn} {
		for _, c := range by[status] {
			fmt.Fprintf(out, "\n%s %s: %s\n", status, c.ID, c.Title)
			for _, f := range c.Findings[:min(2, len(c.Findings))] {
				fmt.Fprintf(out, "  expected %s\n  actual   %s\n", f.Expected, f.Actual)
			}
		}
	}
	var folded, undecided, passed []string
	for _, c := range append(by[conformance.NotRun], by[conformance.Inconclusive]...) {
		switch {
		case len(c.BlockedBy) > 0:
			folded = append(folded, c.ID+" under "+strings.Join(c.BlockedBy, ", "))
		case c.Status == conformance.Inconclusive:
			undecided = append(undecided, fmt.Sprintf("  %s: %s", c.ID, c.Reason))
		}
	}
	for _, c := range by[conformance.Pass] {
		if got := e.of(c.ID); got.refused > 0 {
			passed = append(passed, fmt.Sprintf("  %s: %s (%s; the endpoint refused %d of its records)", c.ID, c.Title, c.Evidence, got.refused))
		}
	}
	if len(folded) > 0 {
		fmt.Fprintf(out, "\nfolded: %s\n", strings.Join(folded, "; "))
	}
	if len(undecided) > 0 {
		slices.Sort(undecided)
		fmt.Fprintf(out, "\nINCONCLUSIVE\n%s\n", strings.Join(undecided, "\n"))
	}
	if len(passed) > 0 {
		fmt.Fprintf(out, "\nPASS, though records of the check were refused\n%s\n", strings.Join(passed, "\n"))
	}
	out.WriteByte('\n')
}
