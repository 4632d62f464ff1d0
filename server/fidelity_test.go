package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// proves says which rows of the table a test proves. The calls are read from
// the sources, so the ids must be literals.
func proves(t testing.TB, ids ...string) {
	t.Helper()
	rows, err := control.Fidelity()
	require.NoError(t, err)
	require.NotEmpty(t, ids)
	for _, id := range ids {
		require.True(t, slices.ContainsFunc(rows, func(row control.FidelityRow) bool { return row.ID == id }), "the table has no row %s", id)
	}
}

// proofsIn finds the calls of proves in the tests of this package: id to names
// of tests.
func proofsIn(t *testing.T, dir string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	files := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, name := range names {
		file, err := parser.ParseFile(files, name, nil, 0)
		require.NoError(t, err)
		for _, declared := range file.Decls {
			test, ok := declared.(*ast.FuncDecl)
			if !ok || test.Recv != nil || !strings.HasPrefix(test.Name.Name, "Test") {
				continue
			}
			ast.Inspect(test, func(node ast.Node) bool {
				called, ok := node.(*ast.CallExpr)
				if name, isName := calledName(called, ok); !isName || name != "proves" {
					return true
				}
				for _, arg := range called.Args[1:] {
					literal, ok := arg.(*ast.BasicLit)
					require.True(t, ok && literal.Kind == token.STRING, "%s: proves takes literals", files.Position(arg.Pos()))
					id, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					if !slices.Contains(found[id], test.Name.Name) {
						found[id] = append(found[id], test.Name.Name)
					}
				}
				return true
			})
		}
	}
	for _, tests := range found {
		slices.Sort(tests)
	}
	return found
}

func calledName(called *ast.CallExpr, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	name, ok := called.Fun.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name, true
}

// TestFidelityLedger holds the table, the tests and the page together: every
// row has a test, every id that a test claims exists, and what is shown is what
// the sources and the last run of make mutations say.
func TestFidelityLedger(t *testing.T) {
	rows, err := control.Fidelity()
	require.NoError(t, err)
	proofs := proofsIn(t, ".")
	known := map[string]bool{}
	var open []string
	for _, row := range rows {
		known[row.ID] = true
		if len(proofs[row.ID]) == 0 {
			open = append(open, row.ID+" "+row.Rule)
		}
	}
	for id, tests := range proofs {
		require.True(t, known[id], "%s claim to prove %s, which the table does not have", tests, id)
	}
	index, err := json.MarshalIndent(proofs, "", "\t")
	require.NoError(t, err)
	index = append(index, '\n')
	page := fidelityTable(rows, proofs, keptMutations(t, rows), judgedViolations(t))
	if *updateLedger {
		require.NoError(t, os.WriteFile(fidelityIndex, index, 0o644))
		require.NoError(t, os.WriteFile(fidelityPage, page, 0o644))
	}
	require.Empty(t, open, "rows of the table without a test")
	for name, want := range map[string][]byte{fidelityIndex: index, fidelityPage: page} {
		kept, err := os.ReadFile(name)
		if err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		require.Equal(t, string(want), string(kept), "run go test ./server -run TestFidelityLedger -update")
	}
}

// fidelityTable is docs/evidence/fidelity.md.
func fidelityTable(rows []control.FidelityRow, proofs map[string][]string, results map[string]mutation, judged map[string]bool) []byte {
	var b bytes.Buffer
	counts := map[string]int{}
	for _, row := range rows {
		counts[row.State]++
	}
	fmt.Fprintf(&b, `# Fidelity

Every rule of sections 2 to 9 of the specification that concerns the REST API, its
basis, and the tests that prove it. The running service shows the rules at
`+"`GET /_control/fidelity`"+`. This page is generated.

%s

`+"`make mutations`"+` runs the tests of each claim against a service that breaks it on
purpose, by a violation or by another value in its responses. The column "broken
once" says "proven" if these tests fail under every mutation that contradicts the
rule, and "by the judge" if they pass and the check of that name fails
([service-kill-matrix.md](service-kill-matrix.md)). It names every mutation that
neither detects.

| state | rows | meaning |
|---|---|---|
| specified | %d | the specification says so |
| published | %d | not in the specification; published pages or clients say so |
| assumed | %d | no source says so; a choice of this service |
| unknown | %d | no source says so; do not rely on this behaviour |
`, mutationScore(rows, results, judged), counts[control.Specified], counts[control.Published], counts[control.Assumed], counts[control.Unknown])
	section := ""
	for _, row := range rows {
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(&b, "\n## Section %s\n\n| id | rule | state | tests | broken once |\n|---|---|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.ID, strings.ReplaceAll(row.Rule, "|", `\|`), row.State,
			strings.Join(proofs[row.ID], ", "), brokenOnce(results[row.ID], judged))
	}
	return b.Bytes()
}
