package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/control"
)

var updateLedger = flag.Bool("update", false, "write docs/evidence/fidelity.md, docs/evidence/disk-matrix-service.md and internal/control/fidelity_proofs.json again")

const (
	fidelityPage  = "../docs/evidence/fidelity.md"
	fidelityIndex = "internal/control/fidelity_proofs.json"
)

// proves declares which rows of the table a test proves. The calls are read
// from the sources, so the ids must be literals.
func proves(testing.TB, ...string) {}

var (
	testOrProof = regexp.MustCompile(`(?m)^func (Test\w+)\(|^\tproves\(t, ([^)]+)\)`)
	literal     = regexp.MustCompile(`"([^"]+)"`)
)

// testsIn finds the tests of a folder, and their proofs: id to names of tests.
func testsIn(t *testing.T, dir string) (tests map[string]bool, proofs map[string][]string) {
	t.Helper()
	tests, proofs = map[string]bool{}, map[string][]string{}
	names := must(filepath.Glob(filepath.Join(dir, "*_test.go")))(t)
	for _, name := range names {
		text := contentOf(t, name)
		test := ""
		for _, found := range testOrProof.FindAllStringSubmatch(string(text), -1) {
			if found[1] != "" {
				test = found[1]
				tests[test] = true
			}
			for _, id := range literal.FindAllStringSubmatch(found[2], -1) {
				proofs[id[1]] = append(proofs[id[1]], test)
			}
		}
	}
	for _, list := range proofs {
		slices.Sort(list)
	}
	return tests, proofs
}

// TestFidelityLedger holds the table, the checks, the tests and the page together: every
// row has a proof, every id that a test claims exists, every check is one that the kill
// matrix has seen fail, and the published table matches the sources.
func TestFidelityLedger(t *testing.T) {
	rows := must(control.Fidelity())(t)
	rows = slices.Clone(rows)
	_, tests := testsIn(t, ".")
	judged := judgedChecks(t)
	index := must(json.MarshalIndent(tests, "", "\t"))(t)
	index = append(index, '\n')
	var open []string
	for i, row := range rows {
		checks := slices.DeleteFunc(slices.Clone(row.Proof), func(proof string) bool { return strings.HasPrefix(proof, "Test") })
		for _, check := range checks {
			require.True(t, judged[check], "%s: the kill matrix has no check %s", row.ID, check)
		}
		rows[i].Proof = append(checks, tests[row.ID]...)
		if len(rows[i].Proof) == 0 {
			open = append(open, row.ID+" "+row.Rule)
		}
		delete(tests, row.ID)
	}
	require.Empty(t, tests, "tests claim to prove what the table does not have")
	page := fidelityTable(rows)
	if *updateLedger {
		require.NoError(t, os.WriteFile(fidelityIndex, index, 0o644))
		require.NoError(t, os.WriteFile(fidelityPage, page, 0o644))
	}
	require.Empty(t, open, "rows of the table without a proof")
	for name, want := range map[string][]byte{fidelityIndex: index, fidelityPage: page} {
		kept := contentOf(t, name)
		require.Equal(t, string(want), string(kept), "run go test ./server -run TestFidelityLedger -update")
	}
}

// judgedChecks are the checks of destkit conform service that fail when their rule is
// broken: those of its kill matrix, which make matrix measures and compares.
func judgedChecks(t *testing.T) map[string]bool {
	t.Helper()
	text := contentOf(t, "../docs/evidence/service-kill-matrix.md")
	judged := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z]+-\d+)[^|]*\|[^|]*\| (FAIL|WARN) `).FindAllStringSubmatch(string(text), -1) {
		judged[row[1]] = true
	}
	require.NotEmpty(t, judged)
	return judged
}

// fidelityTable is docs/evidence/fidelity.md.
func fidelityTable(rows []control.FidelityRow) []byte {
	var b bytes.Buffer
	counts := map[string]int{}
	for _, row := range rows {
		counts[row.State]++
	}
	fmt.Fprintf(&b, `# Fidelity

Every rule of sections 2 to 9 of the specification that concerns the REST API, its
basis, and what proves it: the checks of `+"`destkit conform service`"+`, each of which fails
when its rule is broken ([service-kill-matrix.md](service-kill-matrix.md)), and tests of
the service. The running service shows the rules at `+"`GET /_control/fidelity`"+`. This page
is generated.

| state | rows | meaning |
|---|---|---|
| specified | %d | the specification says so |
| published | %d | not in the specification; published pages or clients say so |
| assumed | %d | no source says so; a choice of this service |
| unknown | %d | no source says so; do not rely on this behaviour |
`, counts[control.Specified], counts[control.Published], counts[control.Assumed], counts[control.Unknown])
	section := ""
	for _, row := range rows {
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(&b, "\n## Section %s\n\n| id | rule | state | proof |\n|---|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.ID, strings.ReplaceAll(row.Rule, "|", `\|`), row.State, strings.Join(row.Proof, ", "))
	}
	return b.Bytes()
}

func TestFigures(t *testing.T) {
	w := newWorld(t)
	id := w.newSync()
	w.do("GET", "/syncs", w.key, nil).want(200)
	w.do("GET", "/syncs", "wrong", nil).want(401)
	w.do("GET", "/nothing/secret-path", w.key, nil).want(404)
	w.trigger(id)
	w.fault(map[string]any{"kind": "rate_limited", "operation": "listSyncs"})
	w.do("GET", "/syncs", w.key, nil).want(429)
	text := string(w.control("GET", "/metrics", nil).want(200).text)
	for _, line := range []string{
		`destkit_requests_total{operation="listSyncs",status="200"} 1`,
		`destkit_requests_total{operation="listSyncs",status="401"} 1`,
		`destkit_requests_total{operation="listSyncs",status="429"} 1`,
		`destkit_requests_total{operation="none",status="404"} 1`,
		`destkit_request_duration_seconds_count{operation="listSyncs"} 3`,
		`destkit_destination_calls_total{method="list_objects",outcome="ok"} 1`,
		`destkit_faults_fired_total{kind="rate_limited"} 1`,
		`destkit_stored_rows{kind="syncs"} 1`,
		`destkit_sync_runs{status=`,
		`destkit_store_bytes `,
		`go_goroutines `,
	} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, "secret-path")
}
