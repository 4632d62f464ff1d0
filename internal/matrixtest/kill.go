package matrixtest

import (
	"fmt"
	"strings"
	"testing"
)

// CheckOf is the check that a violation is named for: RES-002 of RES-002.2.
func CheckOf(violation string) string {
	id, _, _ := strings.Cut(violation, ".")
	return id
}

// KillTable is the matrix of violations and of the checks that see them.
type KillTable struct{ table Table[string] }

// Add keeps a row: what the violation changes, the verdict of its own check, and
// what else trips, each with its reason ("PACE-009: ...").
func (k *KillTable) Add(violation, changes, verdict string, also []string) {
	cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
	k.table.Add(violation, fmt.Sprintf("| %s | %s | %s | %s |", violation, cell(changes), verdict, cell(strings.Join(also, "; "))))
}

// Write writes the page: what stands in front of the table, then every row.
func (k *KillTable) Write(t *testing.T, file, front string, violations int) {
	t.Helper()
	head := front + "\n\n| violation | what it changes | verdict of its check | also trips |\n|---|---|---|---|\n"
	k.table.Write(t, file, head, fmt.Sprintf("\n%d violations, each caught.\n", violations), violations)
}
