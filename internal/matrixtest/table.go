package matrixtest

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Table is a matrix as it is published: a line of Markdown for each cell. The
// zero value is an empty one. It is safe for parallel use.
type Table[K cmp.Ordered] struct {
	mu    sync.Mutex
	lines map[K]string
}

// Add keeps the line of a cell, without its end.
func (m *Table[K]) Add(cell K, line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lines == nil {
		m.lines = map[K]string{}
	}
	m.lines[cell] = line + "\n"
}

// Write puts the table into a file between head and foot, the cells in their
// order. A matrix that is not whole, or that failed, is not written: the test
// fails.
func (m *Table[K]) Write(t *testing.T, file, head, foot string, cells int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.Failed() || len(m.lines) != cells {
		t.Errorf("the matrix is not whole (%d of %d cells): run it with DESTKIT_TIER=full and mend what fails", len(m.lines), cells)
		return
	}
	var b strings.Builder
	b.WriteString(head)
	for _, cell := range slices.Sorted(maps.Keys(m.lines)) {
		b.WriteString(m.lines[cell])
	}
	b.WriteString(foot)
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
}
