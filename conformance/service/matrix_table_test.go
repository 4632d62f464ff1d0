package service_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/server"
)

var update = flag.Bool("update", false, "write docs/service-kill-matrix.md")

// killTable is the matrix as it is published.
type killTable struct {
	mu      sync.Mutex
	rows    map[string]string
	skipped bool
}

func newKillTable() *killTable { return &killTable{rows: map[string]string{}} }

func (k *killTable) add(v server.Violation, r *conformance.Report) {
	status := ""
	for _, c := range r.Checks {
		if c.ID == checkOf(v.ID) {
			status = string(c.Status)
		}
	}
	var also []string
	for _, a := range v.Also {
		also = append(also, a.ID+": "+a.Why)
	}
	cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rows[v.ID] = fmt.Sprintf("| %s | %s | %s | %s |", v.ID, cell(v.Changes), status, cell(strings.Join(also, "; ")))
}

// finish writes the table when it was asked for, and only when it is whole.
func (k *killTable) finish(t *testing.T) {
	if !*update {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.skipped || t.Failed() || len(k.rows) != len(server.Violations()) {
		t.Errorf("the matrix is not whole: run it with DESTKIT_TIER=matrix and mend what fails")
		return
	}
	require.NoError(t, os.WriteFile("../../docs/service-kill-matrix.md", []byte(k.text()), 0o644))
}

func (k *killTable) text() string {
	var b strings.Builder
	b.WriteString("# Kill matrix of the service suite\n\nEach violation of the reference service (`destkit serve --violate ID`) changes one behaviour; the\n" +
		"check that it is named for must see it (FAIL, or WARN below the gate). What else the same behaviour\n" +
		"breaks in its area is listed with its reason and compared exactly. Written by `make docs`.\n\n" +
		"| violation | what it changes | verdict of its check | also trips |\n|---|---|---|---|\n")
	for _, id := range slices.Sorted(maps.Keys(k.rows)) {
		b.WriteString(k.rows[id] + "\n")
	}
	fmt.Fprintf(&b, "\n%d violations, each caught.\n", len(k.rows))
	return b.String()
}
